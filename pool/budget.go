package pool

import (
	"sync"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// budgetInterval is how long an estimate of a budget holds, as in CUDA.jl.
const budgetInterval = 10 * time.Second

// A budget estimates the bytes that a space may hold, as CUDA.jl 5.4 does. It is the hard limit, or
// else the soft limit. Without limits it is the free, live and cached bytes together, estimated
// anew every ten seconds. When the space does not answer, the last estimate stays, and Failed gets
// the first failure in a row. (In CUDA.jl one failure switches eager collection off for good,
// CUDA.jl#2795.)
//
// Set the fields before the first use, and Limits later by SetLimits only. The methods are safe for
// concurrent use.
type budget struct {
	Limits pressure.Limits
	Info   func() (pressure.Info, error) // asks the space
	Failed func(error)                   // told of a failure, once

	mu     sync.Mutex
	asking bool          // a caller asks the space, without the lock
	known  bool          // there is an estimate
	failed bool          // the last one failed
	next   time.Duration // when to estimate anew
	last   estimate
	free   int64 // free + reserved at the last success; 0 = none yet
}

// An estimate is one answer of a budget, in bytes; 0 = none known.
type estimate struct {
	Soft, Hard int64 // the limits, shares of the total resolved
	Budget     int64 // bytes that the space may hold
}

// At returns the estimate at time now of any monotonic clock. Reserved is the number of bytes taken
// from the space (live and cached). At asks the space at the first call and when the last estimate
// is budgetInterval old. Meanwhile other callers get the last estimate and do not wait.
func (b *budget) At(now time.Duration, reserved int64) estimate {
	b.mu.Lock()
	e, due := b.last, !b.asking && !(b.known && now < b.next)
	b.asking = b.asking || due
	b.mu.Unlock()
	if !due {
		return e
	}
	info, err := b.Info()
	b.mu.Lock()
	first := err != nil && !b.failed
	b.asking, b.known, b.failed, b.next = false, true, err != nil, now+budgetInterval
	b.update(info, err, reserved)
	e = b.last
	b.mu.Unlock()
	if first {
		b.Failed(err)
	}
	return e
}

// SetLimits changes the limits. The next At estimates anew.
func (b *budget) SetLimits(l pressure.Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Limits, b.known = l, false
	b.last.Soft, b.last.Hard = 0, 0
}

// update works out the budget. If the space did not answer, it uses the last answer.
func (b *budget) update(info pressure.Info, err error, reserved int64) {
	if err == nil {
		b.free = max(info.Free, 0) + reserved
	}
	if soft, err := b.Limits.Soft.Of(info.Total); err == nil {
		b.last.Soft = soft
	}
	if hard, err := b.Limits.Hard.Of(info.Total); err == nil {
		b.last.Hard = hard
	}
	switch e := &b.last; {
	case e.Hard > 0:
		e.Budget = e.Hard
	case e.Soft > 0:
		e.Budget = e.Soft
	default:
		e.Budget = b.free
	}
}
