package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A folder receives results. Files appear in it whole, or not at all.
type folder struct {
	path  string
	files atomic.Int64 // written so far
}

// openFolder makes path and opens it. It refuses a symbolic link there, because the user did not
// name its target.
func openFolder(path string) (*folder, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a symbolic link: name the folder itself", path)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return &folder{path: path}, nil
}

// canWrite reports, before the work, that a file or a folder cannot be written. It makes
// nothing. An empty path is no output.
func canWrite(path string, inputs ...string) error {
	if path == "" {
		return nil
	}
	dir := path
	info, err := os.Stat(dir)
	for _, input := range inputs {
		if from, wrong := os.Stat(input); err == nil && wrong == nil && info.Mode().IsRegular() && os.SameFile(info, from) {
			return fmt.Errorf("%s is the input, and would be replaced", path)
		}
	}
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil // a device or a pipe
	}
	for ; err != nil || !info.IsDir(); info, err = os.Stat(dir) {
		if err == nil && dir != path {
			return fmt.Errorf("%s cannot be written: %s is not a folder", path, dir)
		}
		if filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".replay-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// writeFile writes a file in whole at path, and makes its folder if necessary.
func writeFile(path string, make func(io.Writer) error) error {
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	return dir.write(filepath.Base(path), make)
}

// write writes a file in whole to the folder.
func (f *folder) write(name string, make func(io.Writer) error) error {
	path := filepath.Join(f.path, name)
	if name != filepath.Base(path) {
		return fmt.Errorf("%q is not the name of a file", name)
	}
	file, whole, err := create(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	out := bufio.NewWriterSize(file, 64<<10)
	if err = make(out); err == nil {
		err = out.Flush()
	}
	if err = whole(err); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.files.Add(1)
	return nil
}

// create starts a file of another name. Its function whole renames the file, or removes it after
// an error. It replaces a link at path and does not follow it. It writes directly to a device or
// a pipe, and to the files of the system, since /dev/stdout may be a link to a file.
func create(path string) (file *os.File, whole func(error) error, err error) {
	info, err := os.Stat(path)
	full, _ := filepath.Abs(path)
	system := strings.HasPrefix(full, "/dev/") && !strings.HasPrefix(full, "/dev/shm/") || strings.HasPrefix(full, "/proc/")
	switch {
	case err == nil && info.IsDir():
		return nil, nil, errors.New("is a directory")
	case err == nil && !info.Mode().IsRegular() || system:
		file, err = os.OpenFile(path, os.O_WRONLY, 0)
		return file, func(err error) error { return errors.Join(err, file.Close()) }, err
	}
	partial := fmt.Sprintf("%s.%d.partial", path, os.Getpid())
	if file, err = os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, nil, err
	}
	return file, func(err error) error {
		if err = errors.Join(err, file.Close()); err == nil {
			err = os.Rename(partial, path)
		}
		if err != nil {
			os.Remove(partial)
		}
		return err
	}, nil
}

func (f *folder) report(stderr io.Writer) {
	fmt.Fprintf(stderr, "replay: wrote %s to %s\n", chart.Counted(int(f.files.Load()), "file"), recording.Plain(f.path))
}

// saveGrid writes the results of a grid to a folder, and prints the folder.
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
	if err := dir.savePictures(chart.OfGrid(g), []string{"svg"}); err != nil {
		return err
	}
	dir.report(stderr)
	return nil
}
