package pool

import (
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pool/internal/guard"
)

// manyStreams in header.used: two or more streams besides the home stream.
const manyStreams = ^uint32(0)

// Use says that work that stream has queued so far uses b. After Free, b is used again only when
// stream has done that work. Call Use for every stream other than the one that Alloc was given.
func (p *Pool) Use(b Block, stream uint32) {
	h := p.core.headers.find(uint32(b.ref))
	if h == nil || h.gen.Load() != uint32(b.ref>>32) || h.stream == stream {
		return
	}
	if note := stream + 1; note == 0 || !h.used.CompareAndSwap(0, note) && h.used.Load() != note {
		h.used.Store(manyStreams) // for the last stream there is no note: it counts as many
	}
}

// inFlight holds pieces that were freed while a stream other than their own may still use them.
type inFlight struct {
	n    atomic.Int64
	mu   sync.Mutex // held for list operations only
	list []waiting
}

// A waiting piece waits for its fence. Without a fence it waits for the whole device.
type waiting struct {
	piece uint32
	fence Fence
}

// add takes a piece in, unless it need not wait. It reports whether it did.
func (l *inFlight) add(p *Pool, piece, used uint32) bool {
	var fence Fence
	if up, ok := p.cfg.Upstream.(Fencer); ok && used != manyStreams {
		f, err := guard.Value(func() (Fence, error) { return up.Fence(used - 1) })
		if err == nil {
			fence = f
		} else {
			p.warn(err) // without a fence it waits for the device
		}
	}
	if _, ok := p.cfg.Upstream.(Synchronizer); !ok && fence == nil {
		return false // the upstream has no work that runs beside the program
	}
	l.put([]waiting{{piece, fence}})
	return true
}

func (l *inFlight) put(more []waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, more...)
	l.n.Store(int64(len(l.list)))
}

func (l *inFlight) takeAll() []waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.list
	l.list = nil
	l.n.Store(0)
	return all
}

// poll gives the pieces whose fence has passed back to the core. It reports whether there were any.
func (l *inFlight) poll(p *Pool) (any bool) {
	if l.n.Load() == 0 {
		return false
	}
	var wait []waiting
	for _, x := range l.takeAll() {
		if x.fence != nil {
			done, err := guard.Value(x.fence.Done)
			if err != nil {
				p.warn(err)
			} else if done {
				any = true
				l.leave(p, x)
				continue
			}
		}
		wait = append(wait, x)
	}
	l.put(wait)
	return any
}

// synchronize waits for the device. Then it gives back to the core every piece that was in flight
// when the wait began.
func (l *inFlight) synchronize(p *Pool) error {
	up, ok := p.cfg.Upstream.(Synchronizer)
	if !ok {
		l.poll(p)
		return nil
	}
	all := l.takeAll()
	if err := guard.Error(up.Synchronize); err != nil {
		l.put(all)
		return err
	}
	for _, x := range all {
		l.leave(p, x)
	}
	return nil
}

func (l *inFlight) leave(p *Pool, x waiting) {
	if x.fence != nil {
		if err := guard.Error(x.fence.Close); err != nil {
			p.warn(err)
		}
	}
	p.retire(x.piece)
}
