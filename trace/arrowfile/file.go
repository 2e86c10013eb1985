package arrowfile

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/wholefile"
)

// A File is a trace that is being written to disk. Until Close its name ends in
// .partial, in the folder of its final name, as package wholefile describes. If the
// program is killed, the partial file stays and can be read. A File is a
// [trace.BatchWriter], for one goroutine at a time.
type File struct {
	*Writer
	file *wholefile.File
}

// Create starts a file that [File.Close] will put at path, with the Name, Start
// and Meta of t. A device, pipe or socket at path is written to as it is.
func Create(path string, t *trace.Trace) (*File, error) {
	file, err := wholefile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("arrowfile: %w", err)
	}
	w, err := NewWriter(file, t)
	if err != nil {
		err = fmt.Errorf("%w (%s)", err, file.Name())
		file.Discard()
		return nil, err
	}
	return &File{Writer: w, file: file}, nil
}

// Partial returns the name that the file has until Close.
func (f *File) Partial() string { return f.file.Name() }

// Close ends the stream, waits until the disk has it, and gives the file its final
// name. It replaces a file or link of that name; it does not follow the link. After
// an error the partial file stays, with all that was written to it. A second Close
// does nothing.
func (f *File) Close() error {
	err := f.Writer.Close()
	if err != nil {
		f.file.Keep()
	} else {
		err = f.file.Close()
	}
	if err != nil {
		return fmt.Errorf("arrowfile: %s: %w", f.file.Name(), err)
	}
	return nil
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
	if err = f.WriteBatch(t.Events, t.Labels); err == nil {
		err = f.Writer.Close()
	}
	if err == nil {
		err = f.file.Close()
	}
	if err != nil {
		f.file.Discard()
		return fmt.Errorf("arrowfile: %s: %w", path, err)
	}
	return nil
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
