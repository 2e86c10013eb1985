package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Files is where a [Cache] lies. Names have slashes and no folder above; a name is
// written once, and always with the same content. Methods are safe for concurrent use.
type Files interface {
	// List returns the names that begin with a folder and a slash; none if there is no such folder.
	List(ctx context.Context, folder string) ([]string, error)
	Read(ctx context.Context, name string) ([]byte, error)
	Write(ctx context.Context, name string, data []byte) error
}

// A Cache keeps what is known of recordings, in pages. A page is a [Job] with some
// outcomes, packed with zstd. Its name is made of the recording's hash and of the keys of
// its outcomes: so nothing is ever changed, and many processes may share a cache. A page
// that is damaged, or of another version, is as good as none.
type Cache struct{ files Files }

// NewCache returns the cache in some files.
func NewCache(f Files) *Cache { return &Cache{f} }

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) // without options that can be wrong
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))
)

// Get adds to a job what the cache knows of its recording. It returns false if that is
// nothing. An error is of reading: what was read is right.
func (c *Cache) Get(ctx context.Context, j *Job) (known bool, err error) {
	names, err := c.files.List(ctx, folderOf(j.Hash))
	for _, name := range names {
		data, failed := c.files.Read(ctx, name)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		page, failed := readPage(data)
		if failed != nil || page.Hash != j.Hash {
			continue
		}
		j.Bytes, j.Features = page.Bytes, page.Features
		if j.Outcomes == nil {
			j.Outcomes = make(Outcomes)
		}
		maps.Copy(j.Outcomes, page.Outcomes)
		known = true
	}
	return known, err
}

// Put keeps the outcomes of a job that have these keys.
func (c *Cache) Put(ctx context.Context, j *Job, keys []string) error {
	page := *j
	page.Outcomes = make(Outcomes, len(keys))
	for _, k := range keys {
		page.Outcomes[k] = j.Outcomes[k]
	}
	text, err := json.Marshal(page)
	if err != nil {
		return err
	}
	name := path.Join(folderOf(j.Hash), digest(slices.Sorted(maps.Keys(page.Outcomes))))
	return c.files.Write(ctx, name, packer.EncodeAll(append([]byte{Version}, text...), nil))
}

func folderOf(hash string) string { return path.Join(hash[:2], hash[2:]) }

func readPage(data []byte) (*Job, error) {
	text, err := unpacker.DecodeAll(data, nil)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 || text[0] != Version {
		return nil, ErrVersion
	}
	j := new(Job)
	return j, json.Unmarshal(text[1:], j)
}

// Folder is the [Files] of a folder of the local system. Files appear in it whole. They
// are not forced to the disk: after a power cut a page may be damaged, and is then
// computed again.
type Folder string

// List implements [Files].
func (f Folder) List(_ context.Context, folder string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(string(f), filepath.FromSlash(folder)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != partialEnding {
			names = append(names, path.Join(folder, e.Name()))
		}
	}
	return names, err
}

// partialEnding is that of a file that is being written.
const partialEnding = ".partial"

// Read implements [Files].
func (f Folder) Read(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
}

// Write implements [Files].
func (f Folder) Write(_ context.Context, name string, data []byte) error {
	full := filepath.Join(string(f), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(full), "*"+partialEnding)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), full)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("fleet: cache: %w", err)
	}
	return nil
}
