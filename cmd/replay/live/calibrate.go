package live

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// Calibration says what to measure. The zero value is usable.
type Calibration struct {
	Heaps   []int64 // sizes of the Go heap with pointers to measure, in bytes; nil: 16, 64 and 256 MiB
	Objects int     // number of tracked objects, ten times that of freed ones; 0: 100,000
	Memory  Memory  // of the freed objects: giving it back is most of what freeing costs
	Busy    int     // number of goroutines that keep cores busy meanwhile
	Repeat  int     // cycles to take the median of; 0: 11
}

// A Measurement is the length of a blocking cycle in one condition, as its caller
// sees it. Between two cycles is a break as long as a cycle: without it, a cycle
// would first sweep what the one before it left, and take up to twice as long.
type Measurement struct {
	Heap    int64 // bytes of Go heap with pointers
	Tracked int   // objects that the collector knows
	Freed   int   // how many of them each cycle finds dead
	Busy    int   // goroutines that keep cores busy
	Median  time.Duration
	Least   time.Duration
	Most    time.Duration
}

// Calibrate measures cycles on this machine. It returns the cost model that they
// follow, for a Go heap of so many bytes with pointers, and the measurements. One
// of them is of that heap: there the model is exact. 0 takes the largest heap.
// It takes seconds, and as much memory as the largest heap. Nothing else should
// run meanwhile.
func Calibrate(ctx context.Context, heap int64, cal Calibration) (sim.Cost, []Measurement, error) {
	if cal.Heaps == nil {
		cal.Heaps = []int64{16 << 20, 64 << 20, 256 << 20}
	}
	if cal.Objects == 0 {
		cal.Objects = 100_000
	}
	if cal.Repeat == 0 {
		cal.Repeat = 11
	}
	defer spin(cal.Busy)()
	at, heaps := slices.Max(cal.Heaps), slices.Clone(cal.Heaps)
	if heap > 0 {
		at, heaps = heap, append(heaps, heap)
	}
	slices.Sort(heaps)
	heaps = slices.Compact(heaps)
	var (
		cost = sim.Cost{HeapMiB: mib(heap)}
		all  []Measurement
	)
	measure := func(m Measurement) (time.Duration, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		m.Busy = cal.Busy
		if err := m.run(&cal.Memory, cal.Repeat); err != nil {
			return 0, fmt.Errorf("live: %w", err)
		}
		all = append(all, m)
		return m.Median, nil
	}
	var err error
	if cost.Base, err = measure(Measurement{}); err != nil {
		return cost, all, err
	}
	var full time.Duration // of a cycle of the heap at
	for _, h := range heaps {
		d, err := measure(Measurement{Heap: h})
		if err != nil {
			return cost, all, err
		}
		if h == at {
			full = d
		}
	}
	cost.PerMiB = max(0, time.Duration(float64(full-cost.Base)/mib(at)))
	tracked, err := measure(Measurement{Tracked: cal.Objects})
	if err != nil {
		return cost, all, err
	}
	n := max(1, cal.Objects/10)
	// With a heap: giving memory back costs more on cores that have just marked one.
	freed, err := measure(Measurement{Heap: at, Tracked: n, Freed: n})
	if err != nil {
		return cost, all, err
	}
	cost.PerTracked = max(0, float64(tracked-cost.Base)/float64(cal.Objects))
	cost.PerFreed = max(0, float64(freed-full)/float64(n)-cost.PerTracked)
	cost.Slowdown, err = slowdown(at, cal.Repeat)
	return cost, all, err
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// An owned is an object that the collector knows.
type owned struct {
	_ *owned
	_ [5]uint64
}

// freedBytes is the size of a block that is freed. It matters little: to give back
// a mapping of 32 MiB, of which one page was written, takes a fifth longer.
const freedBytes = 64 << 10

// run fills in the times of n cycles.
func (m *Measurement) run(memory *Memory, n int) error {
	ballast := NewBallast(m.Heap)
	c, err := gc.New(gc.Config{Policy: new(gc.Never)})
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := memory.newPool(c, 0, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	r := gc.NewWeakRegistry(c.Watch(nothing{}), 1<<20, func(gc.Slot, uint64, int64) {})
	defer r.Close()
	kept := make([]*owned, m.Tracked-m.Freed)
	for i := range kept {
		kept[i] = new(owned)
		gc.Track(r, kept[i], 0, 0)
	}
	c.Collect(gc.TriggerExplicit)
	var all []time.Duration
	for range n {
		for range m.Freed {
			a, err := pool.NewArray[byte](p, freedBytes, 0)
			if err != nil {
				return err
			}
			if err := memory.touch(a); err != nil {
				return err
			}
		}
		began := time.Now()
		c.Collect(gc.TriggerExplicit)
		took := time.Since(began)
		all = append(all, took)
		time.Sleep(took) // for the sweep, which would be part of the next
	}
	m.Median, m.Least, m.Most = median(all), slices.Min(all), slices.Max(all)
	runtime.KeepAlive(ballast)
	runtime.KeepAlive(kept)
	return nil
}

// spin keeps n goroutines busy until the function that it returns is called.
func spin(n int) (stop func()) {
	var quit atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !quit.Load() {
			}
		})
	}
	return func() {
		quit.Store(true)
		all.Wait()
	}
}

// slowdown measures how much longer a goroutine takes for its work beside
// cycles than alone.
func slowdown(heap int64, n int) (float64, error) {
	ballast := NewBallast(heap)
	c, err := gc.New(gc.Config{Policy: new(gc.Never)})
	if err != nil {
		return 0, fmt.Errorf("live: %w", err)
	}
	defer c.Close()
	c.Watch(nothing{})
	var beats atomic.Int64
	var quit atomic.Bool
	var worker sync.WaitGroup
	worker.Go(func() {
		for !quit.Load() {
			beats.Add(1)
		}
	})
	var beside, alone float64 // beats per ns
	for range n {
		before, began := beats.Load(), time.Now()
		c.Collect(gc.TriggerExplicit)
		took := time.Since(began)
		beside += float64(beats.Load()-before) / float64(took)
		before, began = beats.Load(), time.Now()
		time.Sleep(took)
		alone += float64(beats.Load()-before) / float64(time.Since(began))
	}
	quit.Store(true)
	worker.Wait()
	runtime.KeepAlive(ballast)
	if beside == 0 {
		return 0, fmt.Errorf("live: a busy goroutine did not get to run beside a cycle")
	}
	return max(0, alone/beside-1), nil
}

// nothing is a memory that holds none.
type nothing struct{}

func (nothing) Sample() pressure.Sample { return pressure.Sample{} }
func (nothing) Allocated() int64        { return 0 }
