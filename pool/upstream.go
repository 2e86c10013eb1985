package pool

import "github.com/eagergc/eagergc/pressure"

// An Upstream is where a pool gets its segments. The pool calls it without
// holding a lock, from any goroutine, several at once.
type Upstream interface {
	// Allocate returns the address of bytes of memory, aligned to 512 bytes or
	// more, for work that stream queues from now on. It fails with any error if
	// the memory is not to be had; the pool then makes room and tries again.
	Allocate(bytes int64, stream uint32) (addr uintptr, err error)
	// Release gives back what Allocate returned, once the work that stream has
	// queued is done. If it fails, the pool keeps the memory and may try again.
	Release(addr uintptr, bytes int64, stream uint32) error
	// Info returns what the space has and has free, whoever uses the rest.
	Info() (pressure.Info, error)
}

// A Synchronizer is an upstream whose memory may still be in use by queued work
// when it is freed.
type Synchronizer interface {
	// Synchronize blocks until all work queued so far is done.
	Synchronize() error
}

// A Fencer is an upstream that can tell when a stream has done its work. Without
// it, memory that a stream other than its own has used waits for a sync point.
type Fencer interface {
	// Fence marks the end of the work that stream has queued so far.
	Fence(stream uint32) (Fence, error)
}

// A Fence is a mark in the work of one stream.
type Fence interface {
	Done() (bool, error) // has the stream passed the mark; does not block
	Close() error        // gives the mark back
}

// A Mover is an upstream whose memory the processor cannot address: arrays
// reach it through these calls. Calls return when the host's side of the memory
// may be used again; they are ordered after the work that stream has queued.
type Mover interface {
	Upload(to uintptr, from []byte, stream uint32) error
	Download(to []byte, from uintptr, stream uint32) error
	Copy(to, from uintptr, bytes int64, stream uint32) error
	Fill(to uintptr, pattern []byte, count int64, stream uint32) error // pattern, count times
}
