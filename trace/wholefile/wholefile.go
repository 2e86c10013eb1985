// Package wholefile writes files that appear whole or not at all. Until Close a
// file has a name that ends in .partial, in the folder of its final name. What
// was at the final name stays as it is until then, and after any error.
//
// A device, a pipe or a socket is no file: it is written through, never replaced.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A File is being written. It is for one goroutine at a time.
type File struct {
	file    *os.File
	path    string
	through bool // path is no regular file: file is what is there
	closed  bool
	whole   bool // it has its final name
}

// Create starts a file that [File.Close] puts at path. The partial file is
// path.partial, or path.2.partial and so on if there is one already; it is always a
// new file, never a file or link that is there.
func Create(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	case err == nil && !info.Mode().IsRegular() || isSystem(path):
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{file: file, path: path, through: true}, nil
	}
	name := path + ".partial"
	for n := 2; ; n++ {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		switch {
		case err == nil:
			f := &File{file: file, path: path}
			open.add(f)
			return f, nil
		case !errors.Is(err, fs.ErrExist) || n > 1000:
			return nil, err
		}
		name = path + "." + strconv.Itoa(n) + ".partial"
	}
}

// isSystem says whether path is in a folder of the system, where nothing is to be
// replaced: /dev/stdout may be a link to a regular file.
func isSystem(path string) bool {
	full, err := filepath.Abs(path)
	return err == nil && (strings.HasPrefix(full, "/dev/") || strings.HasPrefix(full, "/proc/")) && !strings.HasPrefix(full, "/dev/shm/")
}

// Name returns the name that the file has now.
func (f *File) Name() string { return f.file.Name() }

// Write appends b.
func (f *File) Write(b []byte) (int, error) { return f.file.Write(b) }

// Close waits until the disk has the file, and gives it its final name. It
// replaces a file or link of that name; it does not follow the link. After an
// error the partial file stays. A second Close does nothing.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	if f.through {
		return f.Keep()
	}
	err := flush(f.file)
	open.mu.Lock() // until it has its name
	defer open.mu.Unlock()
	if closing := f.keep(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		return err
	}
	f.whole = true
	syncFolder(filepath.Dir(f.path))
	return nil
}

// Keep closes the file under its partial name: what is in it may be of use. It
// does nothing after Close.
func (f *File) Keep() error {
	open.mu.Lock()
	defer open.mu.Unlock()
	return f.keep()
}

func (f *File) keep() error {
	if f.closed {
		return nil
	}
	f.closed = true
	delete(open.files, f)
	return f.file.Close()
}

// Discard closes and removes the partial file. It does nothing to a file that has
// its final name.
func (f *File) Discard() {
	f.Keep()
	if !f.through && !f.whole {
		os.Remove(f.file.Name())
	}
}

// open are the partial files of the process.
var open partials

type partials struct {
	mu    sync.Mutex
	files map[*File]bool
}

func (r *partials) add(f *File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = make(map[*File]bool)
	}
	r.files[f] = true
}

// DiscardAll removes all partial files of the process, which must end then: no
// file can be closed any more.
func DiscardAll() {
	open.mu.Lock()
	for f := range open.files {
		os.Remove(f.file.Name())
	}
}

// flush is a variable so that a test sees it called.
var flush = (*os.File).Sync

// syncFolder makes a rename durable. It ignores errors: not every system can do
// it, and the file is whole anyway.
func syncFolder(path string) {
	if dir, err := os.Open(path); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
}
