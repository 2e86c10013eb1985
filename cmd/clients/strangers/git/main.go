// Git reads files and compares versions of a repository with libgit2. The finalizers of git2go free
// the objects.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/libgit2/git2go/v34"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const (
	versions = 4
	files    = 40
	lines    = 2000 // of a file
)

func main() {
	frame.Main("git", frame.Client{Workers: 2, Requests: 800, Start: start})
}

// start makes a repository in a temporary folder, which the parent process removes.
func start(w *frame.Way) (frame.Service, error) {
	folder, err := os.MkdirTemp("", "git")
	if err != nil {
		return nil, err
	}
	repo, err := git.InitRepository(folder, true)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	var trees []*git.Tree
	var blobs []*git.Oid
	for version := range versions {
		tree, err := repo.TreeBuilder()
		if err != nil {
			return nil, err
		}
		for f := range files {
			blob, err := repo.CreateBlobFromBuffer(text(random, version))
			if err == nil {
				err = tree.Insert(fmt.Sprintf("file%d", f), blob, git.FilemodeBlob)
			}
			if err != nil {
				return nil, err
			}
			blobs = append(blobs, blob)
		}
		id, err := tree.Write()
		if err != nil {
			return nil, err
		}
		written, err := repo.LookupTree(id)
		if err != nil {
			return nil, err
		}
		trees = append(trees, written)
	}
	return func(i int) error { return serve(w, folder, trees, blobs, i) }, nil
}

func text(random *rand.Rand, version int) (all []byte) {
	for range lines {
		all = fmt.Appendf(all, "%x version %d\n", random.Uint64N(100), version)
	}
	return all
}

// serve opens the repository, as a service with many repositories does. It reads some files and
// compares two versions.
func serve(w *frame.Way, folder string, trees []*git.Tree, blobs []*git.Oid, i int) error {
	repo, err := git.OpenRepository(folder)
	if err != nil {
		return err
	}
	defer frame.Hold(w, repo, 64<<10, repo.Free)()
	for k := range 20 {
		blob, err := repo.LookupBlob(blobs[(i+k)%len(blobs)])
		if err != nil {
			return err
		}
		defer frame.Hold(w, blob, blob.Size(), blob.Free)()
	}
	older, err := repo.LookupTree(trees[i%versions].Id())
	if err != nil {
		return err
	}
	defer frame.Hold(w, older, 4<<10, older.Free)()
	newer, err := repo.LookupTree(trees[(i+1)%versions].Id())
	if err != nil {
		return err
	}
	defer frame.Hold(w, newer, 4<<10, newer.Free)()
	diff, err := repo.DiffTreeToTree(older, newer, nil)
	if err != nil {
		return err
	}
	defer frame.Hold(w, diff, 64<<10, func() { diff.Free() })()
	patch, err := diff.Patch(i % files)
	if err != nil {
		return err
	}
	defer frame.Hold(w, patch, 256<<10, func() { patch.Free() })()
	if text, err := patch.String(); err != nil || len(text) == 0 {
		return fmt.Errorf("version %d is as the next: %v", i%versions, err)
	}
	return nil
}
