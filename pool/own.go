package pool

import (
	"fmt"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
)

// collecting binds a pool to a collector.
type collecting struct {
	c       *gc.Collector
	gate    *gc.Gate
	owners  *gc.WeakRegistry[Block] // of the memory that was left to the collector
	private bool                    // the pool made the collector
}

// Owners from large bytes on get a weak pointer at once, so that the runtime's own cycles find
// them. That costs 0.4 us, little beside the work on that much memory.
const large = 1 << 20

func (p *Pool) attach(c *gc.Collector, private bool) *collecting {
	k := &collecting{c: c, gate: p.group.gate(c), private: private}
	k.owners = gc.NewWeakRegistry(k.gate, large, func(_ gc.Slot, b Block, _ int64) { p.free(b, trace.FreeCycle) })
	p.collect.Store(k)
	return k
}

// collector returns the pool's collector. If the pool was given none, it makes a private one with
// the policy never: then only the ladder collects.
func (p *Pool) collector() (*collecting, error) {
	if k := p.collect.Load(); k != nil {
		return k, nil
	}
	p.once.Lock()
	defer p.once.Unlock()
	if k := p.collect.Load(); k != nil {
		return k, nil
	}
	if p.closed.Load() {
		return nil, ErrClosed
	}
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New(), Recorder: p.sink.Load().orNil()})
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	return p.attach(c, true), nil
}

// Own leaves block b to the collector: b goes back to the pool once owner is unreachable. It is for
// adaptors to a library whose own type holds the memory; other programs use pool/array. For owner
// see [gc.Track]. After Own, b must not be given to [Pool.Free]. If Own fails, with [ErrClosed] or
// the error of [gc.New], b still belongs to the caller.
func Own[T any](p *Pool, owner *T, b Block) (Owned, error) {
	k, err := p.collector()
	if err != nil {
		return Owned{}, err
	}
	return Owned{p, gc.Track(k.owners, owner, p.core.headers.at(uint32(b.ref)).size, b)}, nil
}

// Owned is a block that [Own] left to the collector. A program that never frees it by hand need not
// keep it. The zero value is no block.
type Owned struct {
	pool *Pool
	slot gc.Slot
}

// Free gives the block back now. If the block was given back before, Free does nothing and returns
// false.
func (o Owned) Free() bool {
	if o.pool == nil {
		return false
	}
	b, _, ok := o.pool.collect.Load().owners.Untrack(o.slot)
	if ok {
		o.pool.free(b, trace.FreeExplicit)
	}
	return ok
}
