package pool

import (
	"slices"

	"github.com/eagergc/eagergc/pool/internal/guard"
)

// A Reclaimable is a cache or workspace that can give memory of the pool back.
// Its methods run on a goroutine that needs memory. They must not allocate from
// the pool, and must not wait for a goroutine that does.
type Reclaimable interface {
	Purge() // gives back what is cheap to make again
	Drop()  // gives back everything that can be made again
}

// Register makes the ladder ask r for memory, until cancel is called.
func (p *Pool) Register(r Reclaimable) (cancel func()) {
	l := &p.ladder
	l.mu.Lock()
	defer l.mu.Unlock()
	key := new(Reclaimable)
	*key = r
	l.reclaimables = append(l.reclaimables, key)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reclaimables = slices.DeleteFunc(l.reclaimables, func(k *Reclaimable) bool { return k == key })
	}
}

func (p *Pool) eachReclaimable(do func(Reclaimable)) (first error) {
	p.ladder.mu.Lock()
	list := slices.Clone(p.ladder.reclaimables)
	p.ladder.mu.Unlock()
	for _, r := range list {
		if err := guard.Error(func() error { do(*r); return nil }); err != nil && first == nil {
			first = err
		}
	}
	return first
}
