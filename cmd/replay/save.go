package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/eagergc/eagergc/sim/experiment"
)

// A folder is where results go. Files appear in it whole, by renaming, and no
// symbolic link leads out of it.
type folder struct {
	path  string
	root  *os.Root
	files atomic.Int64 // written so far
}

// openFolder makes path and opens it. A symbolic link there is refused: what
// it points to was not named by the user.
func openFolder(path string) (*folder, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a symbolic link: name the folder itself", path)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folder{path: path, root: root}, nil
}

// write puts a file into the folder once all of it has been made.
func (f *folder) write(name string, make func(io.Writer) error) error {
	var b bytes.Buffer
	if err := make(&b); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(f.path, name), err)
	}
	temp := fmt.Sprintf(".%s.%d.tmp", name, os.Getpid())
	if err := f.root.WriteFile(temp, b.Bytes(), 0o644); err != nil {
		_ = f.root.Remove(temp)
		return err
	}
	if err := f.root.Rename(temp, name); err != nil {
		_ = f.root.Remove(temp)
		return err
	}
	f.files.Add(1)
	return nil
}

// report says what was written where.
func (f *folder) report(stderr io.Writer) {
	fmt.Fprintf(stderr, "replay: wrote %d files to %s\n", f.files.Load(), f.path)
}

func (f *folder) close() error { return f.root.Close() }

// saveGrid writes the results of a grid to a folder and says so.
func saveGrid(g *experiment.Grid, path string, stderr io.Writer) error {
	dir, err := openFolder(path)
	if err != nil {
		return err
	}
	defer dir.close()
	for _, out := range []struct{ name, format string }{
		{"table.txt", "table"}, {"results.json", "json"}, {"results.csv", "csv"}, {"results.bench", "bench"},
	} {
		if err := dir.write(out.name, func(w io.Writer) error { return writers[out.format](w, g) }); err != nil {
			return err
		}
	}
	pictures, err := drawGrid(g)
	if err != nil {
		return err
	}
	if err := dir.savePictures(pictures, []string{"svg"}); err != nil {
		return err
	}
	dir.report(stderr)
	return nil
}
