package pool

import (
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/trace"
)

// Own leaves block b to the collector: it goes back to the pool once owner
// cannot be reached any more. It is for adaptors to libraries that have a type
// of their own for what owns memory; [Array] is ours. Owner must be as
// [gc.Track] says, and b must not be given to Free after that. The only error
// is that of a pool that is closed, or of [gc.New]: b is then still the caller's.
func Own[T any](p *Pool, owner *T, b Block) (Owned, error) {
	k, err := p.collector()
	if err != nil {
		return Owned{}, err
	}
	return Owned{p, gc.Track(k.owners, owner, p.core.headers.at(uint32(b.ref)).size, b)}, nil
}

// Owned is a block that [Own] left to the collector. It may be dropped. The
// zero value is none.
type Owned struct {
	pool *Pool
	slot gc.Slot
}

// Free gives the block back now. It returns false, and does nothing, if it has
// gone back before.
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
