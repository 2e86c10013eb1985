package live

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/sim"
)

// Calibration says what to measure. The zero value is usable.
type Calibration struct {
	Heap   int64         // bytes of the app's Go heap with pointers
	Memory Memory        // of the app's pool: giving it back is most of what freeing costs
	Busy   int           // other goroutines of the app that keep cores busy
	Time   time.Duration // to take; 0: 30 s
}

// Calibrate measures what cycles and allocations cost on this machine, in the
// app's conditions: with its heap of pointers and its memory, caches that the app
// has used since the last cycle, and its busy goroutines. It returns the machine,
// and how well that explains cycles that it was not fitted to. It takes the time
// that it is given, and as much memory as the heap. Nothing else should run
// meanwhile.
func Calibrate(ctx context.Context, cal Calibration) (*sim.Machine, Fit, error) {
	if cal.Time == 0 {
		cal.Time = 30 * time.Second
	}
	defer spin(cal.Busy)()
	bare, err := cal.measure(ctx, 0, cal.Time/10) // to tell what the heap costs from the rest
	if err != nil {
		return nil, Fit{}, err
	}
	full, err := cal.measure(ctx, cal.Heap, cal.Time-cal.Time/10)
	if err != nil {
		return nil, Fit{}, err
	}
	m, fit, err := FitMachine(cal.Heap, full.seen)
	if err != nil {
		return nil, fit, err
	}
	if base := fitShape(bare.seen).x[0]; cal.Heap > 0 {
		heap := min(float64(m.Mark.Base), max(0, float64(m.Mark.Base+m.Start)-base))
		m.Mark.Base -= time.Duration(heap)
		m.Mark.PerGiB = heap / float64(cal.Heap) * (1 << 30)
	}
	m.Alloc.Base, m.Ladder, m.IdleGap = median(full.allocs), median(full.ladders), idleGap
	m.Slowdown, err = slowdown(cal.Heap, 11)
	return m, fit, err
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// The program that is measured keeps up to mostKept objects and drops up to
// mostDropped between two cycles, of 4 KiB to 256 KiB, under a limit that leaves
// room for both.
const (
	mostKept      = 4000
	mostDropped   = 2000
	poolLimit     = 1 << 30
	leastObject   = 4 << 10
	objectDoubles = 6
)

// A tester is that program, and what it has measured.
type tester struct {
	cal       *Calibration
	collector *gc.Collector
	pool      *pool.Pool
	asker     asker
	random    *rand.Rand
	kept      []pool.Array[byte]
	dropped   []time.Duration // when each object was dropped, oldest first
	end       time.Duration   // of the last cycle

	seen    []Observation
	allocs  []time.Duration
	ladders []time.Duration
}

// measure runs cycles in every condition for a time.
func (cal *Calibration) measure(ctx context.Context, heap int64, d time.Duration) (*tester, error) {
	ballast := NewBallast(heap)
	defer runtime.KeepAlive(ballast)
	t := &tester{cal: cal, random: rand.New(rand.NewPCG(1, uint64(heap)))}
	var err error
	if t.collector, err = gc.New(gc.Config{Policy: &t.asker}); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	defer t.collector.Close()
	if t.pool, err = cal.Memory.newPool(t.collector, poolLimit, nil); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	defer t.pool.Close()
	t.collector.Collect(gc.TriggerExplicit)
	for begin := time.Now(); len(t.seen) < 2*minObservations || time.Since(begin) < d; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := t.round(); err != nil {
			return nil, fmt.Errorf("live: %w", err)
		}
	}
	return t, nil
}

// round makes garbage, works for a while, and measures one cycle: held, beside the
// program, beside a wait, or by a refusal.
func (t *tester) round() error {
	if err := t.keep(t.random.IntN(mostKept) >> t.random.IntN(8)); err != nil {
		return err
	}
	if err := t.litter(t.random.IntN(mostDropped) >> t.random.IntN(8)); err != nil {
		return err
	}
	if gap := t.gap(); t.random.IntN(2) == 0 {
		work(gap)
	} else {
		time.Sleep(gap)
	}
	before, begin := t.collector.Stats(), t.collector.Now()
	o := Observation{Gap: begin - t.end, Start: -1}
	var c gc.Cycle
	var err error
	switch t.random.IntN(8) {
	case 0, 1, 2:
		c = t.collector.Collect(gc.TriggerExplicit)
		o.Held = c.Duration
	case 3, 4, 5:
		if c, err = t.beside(); err != nil {
			return err
		}
		o.Working = c.Duration
	case 6:
		t.asker.want.Store(true)
		_ = t.pool.Sync(nil, func() error { c = t.asker.wait(func() { time.Sleep(100 * time.Microsecond) }); return nil })
		o.Held = c.Duration
	default:
		if c, err = t.refusal(); err != nil {
			return err
		}
		o.Held = c.Duration
	}
	after := t.collector.Stats()
	t.end = t.collector.Now()
	if after.Cycles[gc.TriggerNatural] != before.Cycles[gc.TriggerNatural] || c.Duration == 0 {
		return nil // the runtime collected, too
	}
	o.Objects, o.Bytes = int(after.Objects-before.Objects), after.Freed-before.Freed
	o.Tracked = after.Tracked + o.Objects
	if found := int(after.Objects); o.Working > 0 && found > 0 && found < len(t.dropped) {
		o.Start = max(0, t.dropped[found-1]-c.Start) // what was dropped until then was found
	}
	t.seen = append(t.seen, o)
	return nil
}

// gap is the time to the next cycle: 50 us to 200 ms, evenly drawn in its logarithm.
func (t *tester) gap() time.Duration {
	return time.Duration(float64(50*time.Microsecond) * math.Exp(t.random.Float64()*math.Log(4000)))
}

// keep makes the number of objects that are reachable n.
func (t *tester) keep(n int) error {
	for len(t.kept) < n {
		a, err := t.object(leastObject)
		if err != nil {
			return err
		}
		t.kept = append(t.kept, a)
	}
	for len(t.kept) > n {
		t.kept[len(t.kept)-1] = pool.Array[byte]{}
		t.kept = t.kept[:len(t.kept)-1]
		t.dropped = append(t.dropped, t.collector.Now())
	}
	return nil
}

// litter makes n objects and drops each at once. It notes what an allocation takes.
func (t *tester) litter(n int) error {
	begin := t.collector.Now()
	for range n {
		if _, err := t.object(leastObject << t.random.IntN(objectDoubles)); err != nil {
			return err
		}
		t.dropped = append(t.dropped, t.collector.Now())
	}
	if n > 0 {
		t.allocs = append(t.allocs, (t.collector.Now()-begin)/time.Duration(n))
	}
	return nil
}

func (t *tester) object(bytes int) (pool.Array[byte], error) {
	a, err := pool.NewArray[byte](t.pool, bytes, 0)
	if err != nil {
		return a, err
	}
	return a, t.cal.Memory.touch(a)
}

// beside starts a cycle beside the program, which goes on to allocate and drop.
func (t *tester) beside() (gc.Cycle, error) {
	t.asker.want.Store(true)
	var err error
	c := t.asker.wait(func() {
		if _, e := t.object(leastObject); e != nil {
			err = e
		}
		t.dropped = append(t.dropped, t.collector.Now())
		work(50 * time.Microsecond)
	})
	return c, err
}

// refusal asks for more than there is room for, after some garbage. It notes what
// the ladder takes beyond its cycle.
func (t *tester) refusal() (gc.Cycle, error) {
	const large = poolLimit / 8
	for before := t.collector.Stats().Cycles[gc.TriggerRefusal]; ; {
		begin := t.collector.Now()
		if _, err := t.object(large); err != nil {
			return gc.Cycle{}, err
		}
		took := t.collector.Now() - begin
		t.dropped = append(t.dropped, t.collector.Now())
		s := t.collector.Stats()
		if n := s.Cycles[gc.TriggerRefusal] - before; n > 0 {
			t.ladders = append(t.ladders, max(0, took-s.Last.Duration))
			return s.Last, nil
		}
	}
}

// An asker is a policy that asks for a cycle beside the program when it is told to.
type asker struct {
	want atomic.Bool
	mu   sync.Mutex
	last gc.Cycle
	n    int
}

func (a *asker) Decide(gc.Point) gc.Decision {
	if a.want.CompareAndSwap(true, false) {
		return gc.Decision{Action: gc.Overlap, Reason: "calibration"}
	}
	return gc.Decision{Reason: "not now"}
}

func (a *asker) Observe(c gc.Cycle) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = c
	a.n++
}

func (a *asker) String() string { return "calibration" }

func (a *asker) seen() (gc.Cycle, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last, a.n
}

// wait goes on with the program until a cycle has ended.
func (a *asker) wait(program func()) gc.Cycle {
	for _, before := a.seen(); ; {
		program()
		if c, n := a.seen(); n != before {
			return c
		}
	}
}

// work keeps the processor busy.
func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
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

// slowdown measures how much longer a goroutine takes for its work beside n cycles
// than alone.
func slowdown(heap int64, n int) (float64, error) {
	ballast := NewBallast(heap)
	c, err := gc.New(gc.Config{Policy: new(gc.Never)})
	if err != nil {
		return 0, fmt.Errorf("live: %w", err)
	}
	defer c.Close()
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
