package pool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// ErrInjected is in every error that a [Faulty] upstream makes up.
var ErrInjected = errors.New("injected fault")

// A Fault is a kind of failure of an upstream.
type Fault int

const (
	FaultRefuse  Fault = iota // Allocate fails
	FaultOutage               // Allocate fails, and so do the next OutageLength calls
	FaultSlow                 // Allocate takes Delay longer
	FaultRelease              // Release fails, and keeps the memory
	FaultSync                 // Synchronize fails
	FaultInfo                 // Info fails
	FaultPanic                // Allocate panics
	faults
)

// String returns the name of the fault in lower case.
func (f Fault) String() string {
	return [...]string{"refuse", "outage", "slow", "release", "sync", "info", "panic"}[f]
}

// Faulty passes calls on to Upstream and lets some of them fail, for tests of what
// is built on it. Seed and the order of the calls decide which ones fail, so a test
// with one goroutine always fails in the same way. The fields must not change after
// the first call. It is safe for concurrent use.
type Faulty struct {
	Upstream     pool.Upstream
	Seed         uint64
	Rate         map[Fault]float64 // share of the calls that fail, 0..1
	OutageLength int               // calls of Allocate
	Delay        time.Duration     // of FaultSlow

	mu     sync.Mutex
	random *rand.Rand
	outage int
	count  [faults]int64
}

// Injected returns how many faults of a kind there were.
func (u *Faulty) Injected(f Fault) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count[f]
}

// roll decides whether this call is to fail with f. The caller holds mu.
func (u *Faulty) roll(f Fault) bool {
	if u.random == nil {
		u.random = rand.New(rand.NewPCG(u.Seed, 0))
	}
	if u.random.Float64() >= u.Rate[f] {
		return false
	}
	u.count[f]++
	return true
}

func (u *Faulty) fails(f Fault) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.roll(f) {
		return fmt.Errorf("%w: %v", ErrInjected, f)
	}
	return nil
}

// Allocate passes on, or fails with [ErrInjected].
func (u *Faulty) Allocate(bytes int64, stream uint32) (uintptr, error) {
	slow, err := u.beforeAllocate()
	if slow {
		time.Sleep(u.Delay)
	}
	if err != nil {
		return 0, err
	}
	return u.Upstream.Allocate(bytes, stream)
}

func (u *Faulty) beforeAllocate() (slow bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	slow = u.roll(FaultSlow)
	switch {
	case u.outage > 0:
		u.outage--
		u.count[FaultOutage]++
		err = fmt.Errorf("%w: %v", ErrInjected, FaultOutage)
	case u.roll(FaultOutage):
		u.outage = u.OutageLength
		err = fmt.Errorf("%w: %v", ErrInjected, FaultOutage)
	case u.roll(FaultRefuse):
		err = fmt.Errorf("%w: %v", ErrInjected, FaultRefuse)
	case u.roll(FaultPanic):
		panic(ErrInjected)
	}
	return slow, err
}

// Release passes on, or fails with [ErrInjected].
func (u *Faulty) Release(addr uintptr, bytes int64, stream uint32) error {
	if err := u.fails(FaultRelease); err != nil {
		return err
	}
	return u.Upstream.Release(addr, bytes, stream)
}

// Granule passes on if the upstream is a [pool.Mapper], and else returns 0.
func (u *Faulty) Granule() int64 {
	if m, ok := u.Upstream.(pool.Mapper); ok {
		return m.Granule()
	}
	return 0
}

// Range passes on.
func (u *Faulty) Range(chunk int64, stream uint32) (uintptr, int64, error) {
	return u.Upstream.(pool.Mapper).Range(chunk, stream)
}

// FreeRange passes on.
func (u *Faulty) FreeRange(addr uintptr) error { return u.Upstream.(pool.Mapper).FreeRange(addr) }

// Map passes on, or fails as Allocate does.
func (u *Faulty) Map(to, from []pool.Span, stream uint32) error {
	slow, err := u.beforeAllocate()
	if slow {
		time.Sleep(u.Delay)
	}
	if err != nil {
		return err
	}
	return u.Upstream.(pool.Mapper).Map(to, from, stream)
}

// Unmap passes on, or fails as Release does.
func (u *Faulty) Unmap(s pool.Span) error {
	if err := u.fails(FaultRelease); err != nil {
		return err
	}
	return u.Upstream.(pool.Mapper).Unmap(s)
}

// Info passes on, or fails with [ErrInjected].
func (u *Faulty) Info() (pressure.Info, error) {
	if err := u.fails(FaultInfo); err != nil {
		return pressure.Info{}, err
	}
	return u.Upstream.Info()
}

// Synchronize passes on if the upstream is a [pool.Synchronizer], or fails with
// [ErrInjected].
func (u *Faulty) Synchronize() error {
	if err := u.fails(FaultSync); err != nil {
		return err
	}
	if s, ok := u.Upstream.(pool.Synchronizer); ok {
		return s.Synchronize()
	}
	return nil
}
