package arrowfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// A File is a trace that is being written to disk. Until Close its name ends in
// .partial, in the folder of its final name. If the program is killed, the partial
// file stays and can be read. A File is a [trace.BatchWriter], for one goroutine at
// a time.
type File struct {
	*Writer
	file *os.File
	path string
}

// Create starts a file that [File.Close] will put at path, with the Name, Start
// and Meta of t. The partial file is path.partial, or path.2.partial and so on
// if there is one already; it is always a new file.
func Create(path string, t *trace.Trace) (*File, error) {
	file, err := createPartial(path)
	if err != nil {
		return nil, fmt.Errorf("arrowfile: %w", err)
	}
	w, err := NewWriter(file, t)
	if err != nil {
		discard(file)
		return nil, fmt.Errorf("%w (%s)", err, file.Name())
	}
	return &File{Writer: w, file: file, path: path}, nil
}

// createPartial always makes a new file: it never opens a file or link that is
// already there.
func createPartial(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	}
	name := path + ".partial"
	for n := 2; ; n++ {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, fs.ErrExist) || n > 1000 {
			return file, err
		}
		name = path + "." + strconv.Itoa(n) + ".partial"
	}
}

// Partial returns the name that the file has until Close.
func (f *File) Partial() string { return f.file.Name() }

// Close ends the stream, waits until the disk has it, and gives the file its final
// name. It replaces a file or link of that name; it does not follow the link. After
// an error the partial file stays, with all that was written to it. A second Close
// does nothing.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	defer func() { f.file = nil }()
	err := f.Writer.Close()
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("arrowfile: %s: %w", file.Name(), err)
	}
	if err := os.Rename(file.Name(), f.path); err != nil {
		return fmt.Errorf("arrowfile: %w", err)
	}
	syncFolder(filepath.Dir(f.path))
	return nil
}

// syncFolder makes a rename durable. It ignores errors: not every system can do
// it, and the file is whole anyway.
func syncFolder(path string) {
	if dir, err := os.Open(path); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
}

// discard removes a partial file that holds nothing worth keeping.
func discard(file *os.File) {
	file.Close()
	os.Remove(file.Name())
}

// Record starts a recording into the file path: a recorder that writes to a [File].
// The file gets the Name and Meta of t; its Start is now.
func Record(path string, t *trace.Trace, c trace.RecorderConfig) (*trace.Recorder, error) {
	from := trace.Trace{Name: t.Name, Meta: t.Meta, Start: time.Now()}
	f, err := Create(path, &from)
	if err != nil {
		return nil, err
	}
	return trace.NewRecorder(f, c), nil
}

// WriteFile writes t to the file path, whole or not at all: see [File.Close].
func WriteFile(path string, t *trace.Trace) error {
	f, err := Create(path, t)
	if err != nil {
		return err
	}
	partial := f.file
	if err = f.WriteBatch(t.Events, t.Labels); err == nil {
		err = f.Close()
	}
	if err != nil {
		discard(partial)
	}
	return err
}

// ReadFile reads the trace in the file path, as [Read] does. Errors name the
// file; a trace without a name gets the file's stem.
func ReadFile(path string) (*trace.Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("arrowfile: %w", err)
	}
	defer file.Close()
	t, err := Read(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if t != nil && t.Name == "" {
		base := filepath.Base(path)
		t.Name = base[:len(base)-len(filepath.Ext(base))]
	}
	return t, err
}
