package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/trace/wholefile"
)

// A folder is where results go. Files appear in it whole: see package wholefile.
type folder struct {
	path  string
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
	return &folder{path: path}, nil
}

// writeFile puts a file at path once all of it has been made, in a folder that
// is made if need be.
func writeFile(path string, make func(io.Writer) error) error {
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	return dir.write(filepath.Base(path), make)
}

// write puts a file into the folder once all of it has been made.
func (f *folder) write(name string, make func(io.Writer) error) error {
	path := filepath.Join(f.path, name)
	if name != filepath.Base(path) {
		return fmt.Errorf("%q is no name of a file", name)
	}
	file, err := wholefile.Create(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer file.Discard()
	out := bufio.NewWriterSize(file, 64<<10)
	if err = make(out); err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.files.Add(1)
	return nil
}

// report says what was written where.
func (f *folder) report(stderr io.Writer) {
	fmt.Fprintf(stderr, "replay: wrote %d files to %s\n", f.files.Load(), f.path)
}

// saveGrid writes the results of a grid to a folder and says so.
func saveGrid(g *experiment.Grid, path string, stderr io.Writer) error {
	dir, err := openFolder(path)
	if err != nil {
		return err
	}
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
