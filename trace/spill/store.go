// Package spill holds the lists that a reader makes of a recording. It answers two
// questions apart: how much a file may make its reader hold, and where that lies.
//
// A [Store] counts what is held. It allows 64 MiB and 30 times the bytes of the
// input, counted as they are packed. Real recordings need 3 to 12 times; a file that
// is made to fill the memory needs hundreds.
//
// A [List] lies in memory while it is small. After [UseFiles], a large one moves to a
// temporary file that is mapped into memory (on Linux). Then a recording may be
// larger than memory: the system writes to disk what it has no memory for. The file
// has no name, and is gone when the process ends.
package spill

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	free  = 64 << 20 // bytes that the smallest input may make its reader hold
	ratio = 30       // bytes that each byte of the input adds
)

// ErrTooLarge reports an input that needs more than its store allows.
var ErrTooLarge = errors.New("needs more memory than its size allows")

// A Store counts what a reader holds. A nil Store allows everything, in memory.
// It is for one goroutine at a time.
type Store struct {
	Memory int64 // bytes that may be held in any case; 64 MiB if it is less

	read, held int64
	err        error
}

// Of returns the store of a reader that has one, as unpack.Reader does, or nil.
func Of(r io.Reader) *Store {
	if r, ok := r.(interface{ Store() *Store }); ok {
		return r.Store()
	}
	return nil
}

// Read counts n more bytes of the input.
func (s *Store) Read(n int) { s.read += int64(n) }

// Hold counts bytes that the reader holds. Err says whether they are too many; the
// reader need not ask after each Hold.
func (s *Store) Hold(bytes int64) {
	if s != nil {
		s.held += bytes
	}
}

// Release counts bytes that the reader does not hold any more.
func (s *Store) Release(bytes int64) { s.Hold(-bytes) }

// Err returns an error once more is held than the input may ask for, or once a
// list could not grow because the disk is full.
func (s *Store) Err() error {
	if s == nil {
		return nil
	}
	if allowed := max(free+ratio*s.read, s.Memory); s.err == nil && s.held > allowed {
		return fmt.Errorf("%w: %d bytes so far, after %d bytes of the file (--max-memory allows more)", ErrTooLarge, s.held, s.read)
	}
	return s.err
}

func (s *Store) fail(err error) {
	if s != nil && s.err == nil {
		s.err = err
	}
}

var files atomic.Bool

// UseFiles says whether large lists of the process go to temporary files, in $TMPDIR
// or else /var/tmp. It is for a program to decide, not for a library.
func UseFiles(on bool) { files.Store(on) }
