package pool

import (
	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
)

// An Upstream is where a pool gets its segments. The pool calls it without holding a lock, from any
// goroutine, several at once.
type Upstream interface {
	// Allocate returns the address of memory of the given size, aligned to 512 bytes or more, for
	// work that stream queues from now on. If there is no memory it returns any error; the pool
	// then makes room and tries again.
	Allocate(bytes int64, stream uint32) (addr uintptr, err error)
	// Release gives back what Allocate returned. Work that stream has queued before may still use
	// the memory until it is done. If Release fails, the pool keeps the memory and may try again.
	Release(addr uintptr, bytes int64, stream uint32) error
	// Info returns the total and the free bytes of the space. Bytes that other processes use are
	// not free.
	Info() (pressure.Info, error)
}

// A Synchronizer is an upstream whose memory may still be in use by queued work when it is freed.
type Synchronizer interface {
	// Synchronize blocks until all work queued so far is done.
	Synchronize() error
}

// A Fencer is an upstream that can tell when a stream has done its work. If an upstream is no
// Fencer, freed memory that a second stream has used waits for the next Synchronize. A Fencer must
// be a [Synchronizer], too: [New] refuses one that is not, since a Fence may fail.
type Fencer interface {
	// Fence returns the end of the work that stream has queued so far.
	Fence(stream uint32) (Fence, error)
}

// A Fence is a place in the work of one stream.
type Fence interface {
	Done() (bool, error) // whether the stream has passed it; does not block
	Close() error        // gives the fence back
}

func (p *Pool) upstreamRelease(s span) error {
	err := guard.Error(func() error { return p.cfg.Upstream.Release(s.addr, s.bytes, s.stream) })
	if err == nil && p.upstream.cacher != nil { // it keeps the memory for now
		p.setUpstreamCached(func(cached int64) int64 { return cached + s.bytes })
	}
	return err
}

func (p *Pool) upstreamInfo() (pressure.Info, error) { return guard.Value(p.cfg.Upstream.Info) }

// Host is the [Upstream] of this machine's memory, outside the Go heap. It uses mmap on Linux,
// macOS and the BSDs. New memory reads as zero and takes no physical memory until it is touched. On
// other systems Allocate returns an error that wraps errors.ErrUnsupported. The zero value is ready
// to use.
type Host struct{}

// Info returns how much memory this process may use: see [pressure.HostMemory].
func (Host) Info() (pressure.Info, error) { return pressure.HostMemory() }
