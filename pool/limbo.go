package pool

import (
	"sync"
	"sync/atomic"
)

// manyStreams in header.used: more than one stream besides the block's own.
const manyStreams = ^uint32(0)

// Use says that work of stream, queued so far, uses b. When b is freed it goes
// back in stream order: to its own stream's later work once stream has done
// that work. Call it for every stream other than the one that Alloc was given.
func (p *Pool) Use(b Block, stream uint32) {
	h := p.core.headers.find(uint32(b.ref))
	if h == nil || h.gen.Load() != uint32(b.ref>>32) || h.stream == stream {
		return
	}
	if !h.used.CompareAndSwap(0, stream+1) && h.used.Load() != stream+1 {
		h.used.Store(manyStreams)
	}
}

// limbo holds pieces that were freed while a stream other than their own may
// still use them.
type limbo struct {
	n    atomic.Int64
	mu   sync.Mutex // held for list operations only
	lost []lost
}

// A lost piece waits for a fence, or for the whole device if there is none.
type lost struct {
	piece uint32
	fence Fence
}

// add takes a piece in and reports whether it has to wait at all.
func (l *limbo) add(p *Pool, piece, used uint32) bool {
	var fence Fence
	if up, ok := p.cfg.Upstream.(Fencer); ok && used != manyStreams {
		f, err := guarded(func() (Fence, error) { return up.Fence(used - 1) })
		if err != nil {
			p.warn(err) // without a fence it waits for the device
		}
		fence = f
	}
	if _, ok := p.cfg.Upstream.(Synchronizer); !ok && fence == nil {
		return false // nothing runs on its own
	}
	l.put([]lost{{piece, fence}})
	return true
}

func (l *limbo) put(more []lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, more...)
	l.n.Store(int64(len(l.lost)))
}

func (l *limbo) takeAll() []lost {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.lost
	l.lost = nil
	l.n.Store(0)
	return all
}

// poll gives pieces whose fence has passed back to the core, and reports
// whether there were any.
func (l *limbo) poll(p *Pool) (any bool) {
	if l.n.Load() == 0 {
		return false
	}
	var wait []lost
	for _, x := range l.takeAll() {
		if x.fence != nil {
			done, err := guarded(x.fence.Done)
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

// synchronize waits for the device and gives every piece back to the core that
// was in limbo before.
func (l *limbo) synchronize(p *Pool) error {
	up, ok := p.cfg.Upstream.(Synchronizer)
	if !ok {
		l.poll(p)
		return nil
	}
	all := l.takeAll()
	if err := guard(up.Synchronize); err != nil {
		l.put(all)
		return err
	}
	for _, x := range all {
		l.leave(p, x)
	}
	return nil
}

func (l *limbo) leave(p *Pool, x lost) {
	if x.fence != nil {
		if err := guard(x.fence.Close); err != nil {
			p.warn(err)
		}
	}
	p.retire(x.piece)
}
