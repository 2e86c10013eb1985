package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A File is a native file that is being written to disk. Until Close its name ends in .partial, in
// the folder of its final name. If the program is killed, the partial file stays and can be read. A
// File is a [BatchWriter], for one goroutine at a time.
type File struct {
	*Writer
	file *os.File
	path string // its name once it is whole; "" if it has it already
}

// Create starts a file that [File.Close] will put at path, with the Name, Start and Meta of t. The
// partial file is path.partial, or path.2.partial and so on if there is one already. A device or
// pipe at path is written to as it is; to open a pipe waits for its reader.
func Create(path string, t *Trace) (*File, error) {
	f := &File{}
	var err error
	switch info, stat := os.Stat(path); {
	case stat == nil && info.IsDir():
		err = &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	case stat == nil && !info.Mode().IsRegular() || isSystem(path):
		f.file, err = os.OpenFile(path, os.O_WRONLY, 0)
	default:
		f.path = path
		f.file, err = createPartial(path)
	}
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if f.Writer, err = NewWriter(f.file, t); err != nil {
		f.discard()
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return f, nil
}

// isSystem reports whether path is in a folder where no file may be replaced. For example,
// /dev/stdout may be a link to a regular file.
func isSystem(path string) bool {
	full, err := filepath.Abs(path)
	return err == nil && (strings.HasPrefix(full, "/dev/") && !strings.HasPrefix(full, "/dev/shm/") || strings.HasPrefix(full, "/proc/"))
}

func createPartial(path string) (*os.File, error) {
	name := path + ".partial"
	for n := 2; ; n++ {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, fs.ErrExist) || n > 1000 {
			return file, err
		}
		name = path + "." + strconv.Itoa(n) + ".partial"
	}
}

// Close ends the stream, syncs the file to disk, and gives it its final name. It replaces a file or
// a link of that name, and does not follow the link. After an error the partial file stays. A second
// Close does nothing.
func (f *File) Close() error {
	err := f.Writer.Close()
	if err == nil && f.path != "" {
		err = f.file.Sync()
	}
	if closed := f.file.Close(); err == nil && !errors.Is(closed, os.ErrClosed) {
		err = closed
	}
	if err == nil && f.path != "" {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("trace: %s: %w", f.file.Name(), err)
	}
	f.path = ""
	return nil
}

func (f *File) discard() {
	f.file.Close()
	if f.path != "" {
		os.Remove(f.file.Name())
	}
}

// Record starts a recording into the file path: a recorder that writes to a [File]. The file gets
// the Name and Meta of t; its Start is now.
func Record(path string, t *Trace, c RecorderConfig) (*Recorder, error) {
	f, err := Create(path, &Trace{Name: t.Name, Meta: t.Meta, Start: time.Now()})
	if err != nil {
		return nil, err
	}
	return NewRecorder(f, c), nil
}

// WriteFile writes t to the file path, whole or not at all: see [File.Close].
func WriteFile(path string, t *Trace) error {
	f, err := Create(path, t)
	if err != nil {
		return err
	}
	if _, err = f.WriteBatch(t.Events, t.Labels); err == nil {
		err = f.Close()
	}
	if err != nil {
		f.discard()
	}
	return err
}

// ReadFile reads the native file path, as [Read] does. Errors name the file; a trace without a name
// gets the name of the file without its ending.
func ReadFile(path string) (*Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer file.Close()
	t, err := Read(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if t != nil && t.Name == "" {
		t.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return t, err
}
