package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// An open recording is one that is being replayed.
type open struct {
	source  Source
	rec     *Recording
	job     *Job
	missing []int     // cells to replay
	found   []Outcome // of missing, each written by who took the cell
	taken   int       // of missing
	left    atomic.Int64
}

func (o *open) close() {
	if o.rec != nil {
		o.rec.Close()
	}
}

// Complete returns a source's job with outcomes for cells [from, to): from a cache, which
// may be nil, or replayed on this goroutine and kept there. Memory is as in [Read].
func (m *Mapper) Complete(ctx context.Context, c *Cache, s Source, memory int64, from, to int) (*Job, error) {
	o, err := m.prepare(ctx, c, s, memory, from, to)
	if err != nil {
		return nil, err
	}
	defer o.close()
	for _, i := range o.missing {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		o.found = append(o.found, m.Run(o.rec, i))
	}
	_ = m.keep(ctx, c, o) // what is not kept is replayed again
	return o.job, nil
}

// keep puts what was found into the job, and into the cache.
func (m *Mapper) keep(ctx context.Context, c *Cache, o *open) error {
	keys := make([]string, len(o.missing))
	for k, i := range o.missing {
		keys[k] = m.keys[i]
		o.job.Outcomes[keys[k]] = o.found[k]
	}
	if c == nil || len(keys) == 0 {
		return nil
	}
	return c.Put(ctx, o.job, keys)
}

// prepare asks the cache, and reads the recording if cells in [from, to) are missing.
func (m *Mapper) prepare(ctx context.Context, c *Cache, s Source, memory int64, from, to int) (*open, error) {
	job, err := s.known(ctx, c)
	if err != nil {
		return nil, err
	}
	o := &open{source: s, job: job}
	if job != nil {
		if o.missing = m.Missing(job, from, to); len(o.missing) == 0 {
			return o, nil
		}
	}
	if o.rec, err = s.read(memory); err != nil {
		return nil, err
	}
	if job == nil || job.Hash != o.rec.Hash { // or the file has changed meanwhile
		o.job = m.Job(o.rec)
		o.missing = m.Missing(o.job, from, to)
	}
	return o, nil
}

// known returns what a cache knows of a source; nil if that is nothing. An error is of
// the source: one of the cache costs only time.
func (s *Source) known(ctx context.Context, c *Cache) (*Job, error) {
	if c == nil {
		return nil, nil
	}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := new(Job)
	if j.Hash, _, err = Hash(f); err != nil {
		return nil, &storageError{err}
	}
	if ok, _ := c.Get(ctx, j); !ok {
		return nil, nil
	}
	return j, nil
}

// read reads the recording of a source.
func (s *Source) read(memory int64) (rec *Recording, err error) {
	defer func() { // a reader that fails on a file is no reason to lose the others
		if p := recover(); p != nil {
			rec, err = nil, fmt.Errorf("the reader fails: %v", p)
		}
	}()
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, memory)
}

// open opens a source. Its errors do not name the path, which differs between machines:
// the job has a name.
func (s *Source) open() (File, error) {
	f, err := s.Open()
	if err == nil {
		return f, nil
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return nil, &storageError{err}
}

// A storageError is of where a recording lies, not of what is in it.
type storageError struct{ err error }

func (e *storageError) Error() string { return e.err.Error() }
func (e *storageError) Unwrap() error { return e.err }

// IsRecording reports whether an error of [Read] or [Mapper.Complete] is of the recording: it is
// not there, may not be read, or has a wrong content. Then it is broken wherever it is
// read. Other errors are of the machine or of a storage (a full disk, a lost
// connection): another try may give another answer, so none is given.
func IsRecording(err error) bool {
	var storage *storageError
	if errors.As(err, &storage) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}
