package pool

import (
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/trace"
)

// Own leaves block b to the collector: b goes back to the pool once owner is
// unreachable. It is for adaptors to a library whose own type holds the memory;
// other programs use [Array]. For owner see [gc.Track]. After Own, b must not be
// given to [Pool.Free]. Own fails with [ErrClosed], or with the error of [gc.New]; then
// b still belongs to the caller.
func Own[T any](p *Pool, owner *T, b Block) (Owned, error) {
	k, err := p.collector()
	if err != nil {
		return Owned{}, err
	}
	return Owned{p, gc.Track(k.owners, owner, p.core.headers.at(uint32(b.ref)).size, b)}, nil
}

// Owned is a block that [Own] left to the collector. A program that never frees
// it by hand need not keep it. The zero value is no block.
type Owned struct {
	pool *Pool
	slot gc.Slot
}

// Free gives the block back now. If the block was given back before, Free does
// nothing and returns false.
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
