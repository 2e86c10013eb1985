package pressure

import (
	"sync"
	"time"
)

// BudgetInterval is how long an estimate of a [Budget] holds, as in CUDA.jl.
const BudgetInterval = 10 * time.Second

// A Budget says what a space may hold, as CUDA.jl 5.4 estimates it: the hard
// limit, else the soft limit, else free + live + cached bytes, estimated anew
// every ten seconds. When the space cannot be asked, the last estimate stays and
// Failed is told once; it is told again only after a success in between. (In
// CUDA.jl one failure switches eager collection off for good, CUDA.jl#2795.)
//
// Set the fields before the first use. Limit is safe for concurrent use.
type Budget struct {
	Limits Limits
	Info   func() (Info, error) // asks the space; nil = nothing is known but absolute limits
	Failed func(error)          // told of a failure, once; nil = nobody is

	mu     sync.Mutex
	known  bool
	failed bool
	next   time.Duration // when to estimate anew
	soft   int64
	hard   int64
	free   int64 // free + reserved at the last estimate; 0 = never known
}

// Info is what a space says of itself. Both are bytes.
type Info struct {
	Free  int64 // what could be taken from it now
	Total int64 // what it has in all
}

// An Estimate is one answer of a [Budget], in bytes; 0 = none known.
type Estimate struct {
	Soft, Hard int64 // the limits, shares of the total resolved
	Budget     int64 // what the space may hold
}

// At returns the estimate at time now of any monotonic clock, for a space of
// which reserved bytes are taken (live + cached). It asks the space at the first
// call and when the last estimate is [BudgetInterval] old.
func (b *Budget) At(now time.Duration, reserved int64) Estimate {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known || now >= b.next {
		b.estimate(reserved)
		b.known, b.next = true, now+BudgetInterval
	}
	e := Estimate{Soft: b.soft, Hard: b.hard}
	switch {
	case e.Hard > 0:
		e.Budget = e.Hard
	case e.Soft > 0:
		e.Budget = e.Soft
	default:
		e.Budget = b.free
	}
	return e
}

func (b *Budget) estimate(reserved int64) {
	info, err := b.ask()
	b.hear(err)
	if err == nil {
		b.free = max(info.Free, 0) + reserved
	}
	// A share of an unknown total leaves the last known value in place.
	if soft, err := b.Limits.Soft.Of(info.Total); err == nil {
		b.soft = soft
	}
	if hard, err := b.Limits.Hard.Of(info.Total); err == nil {
		b.hard = hard
	}
}

func (b *Budget) ask() (Info, error) {
	if b.Info == nil {
		return Info{}, nil
	}
	return b.Info()
}

// hear tells of the first failure in a row.
func (b *Budget) hear(err error) {
	if err != nil && !b.failed && b.Failed != nil {
		b.Failed(err)
	}
	b.failed = err != nil
}
