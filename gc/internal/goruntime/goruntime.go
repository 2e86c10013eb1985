// Package goruntime is the seam between a collector and Go's runtime.
package goruntime

import (
	"cmp"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/eagergc/eagergc/gc/policy"
)

// An Engine runs cycles, reports on Go's runtime, and has the clock. A collector uses a [Runtime], or
// the engine of a test. Its methods are safe for concurrent use.
type Engine interface {
	// Now is the time since the engine was made. It never goes back.
	Now() time.Duration
	// Read returns a reading of the runtime.
	Read() Reading
	// Mark runs a cycle until weak pointers to dead objects are nil. Swept is the time before its mark
	// began, in which it ended the sweep of the last cycle.
	Mark() (swept time.Duration)
	// Processor is the processor time of the cycles of the process so far, without work that only
	// idle processors did. It changes when a mark ends.
	Processor() time.Duration
	// Used is the processor time of the process so far; 0 if it is unknown.
	Used() time.Duration
	// Spare reports whether a processor of GOMAXPROCS has nothing to do.
	Spare() bool
	// Pending returns the progress of sweeps, finalizers and cleanups.
	Pending() Pending
	// Watch, called once, makes the engine call ended after each cycle of the process, until the
	// engine is unreachable. Ended must not block.
	Watch(ended func())
	// Close waits until the goroutines of the engine have ended.
	Close()
}

// A Reading is the state of the runtime.
type Reading struct {
	Cycles uint64 // number of cycles of the process whose mark has ended
	Scan   uint64 // bytes of the Go heap that a cycle has to scan
}

const (
	cyclesMetric = "/gc/cycles/total:gc-cycles"     // counts a cycle when its mark ends, before its sweep
	stopsMetric  = "/sched/pauses/total/gc:seconds" // a histogram: two for each cycle
)

// A Runtime is the engine of the process. Make one with [New].
type Runtime struct {
	start   time.Time
	marking sync.WaitGroup // calls of runtime.GC
	calls   atomic.Int64   // of runtime.GC
	returns atomic.Int64   // number of calls that have returned
	last    atomic.Pointer[mark]
	ended   func()

	mu   sync.Mutex
	paid [2]time.Duration // at the last call of Processor: of cycles as Go counts them, and of the process
	sum  time.Duration    // of cycles so far
}

// New returns the engine of the process.
func New() *Runtime { return &Runtime{start: time.Now()} }

func (r *Runtime) Now() time.Duration { return time.Since(r.start) }

func (r *Runtime) Read() Reading {
	v := read(cyclesMetric, "/gc/scan/heap:bytes")
	return Reading{Cycles: v[0], Scan: v[1]}
}

// read returns the values of up to four metrics; 0 for one that this runtime does not have.
func read(names ...string) (values [4]uint64) {
	var s [4]metrics.Sample
	for i, name := range names {
		s[i].Name = name
	}
	metrics.Read(s[:len(names)])
	for i := range names {
		if s[i].Value.Kind() == metrics.KindUint64 {
			values[i] = s[i].Value.Uint64()
		}
	}
	return values
}

// Mark does not wait until runtime.GC returns. That is after the sweep, which on busy cores ends
// seconds after the mark. Swept is the least time that the sweep of the last cycle took.
func (r *Runtime) Mark() (swept time.Duration) {
	marked, takeBack := r.lend()
	defer marked()
	var samples [2]metrics.Sample
	before, stops := progress(&samples)
	probe := newProbe()
	returned := make(chan struct{})
	r.calls.Add(1)
	r.marking.Add(1)
	go func() {
		defer r.marking.Done()
		defer takeBack()
		defer close(returned)
		defer r.returns.Add(1)
		runtime.GC()
	}()
	began, last := time.Now(), time.Duration(0)
	defer func() { r.last.Store(&mark{time.Since(began) - swept, r.Now(), r.Used(), read(cyclesMetric)[0]}) }()
	for nap := time.NewTimer(0); ; {
		cycles, now := progress(&samples)
		// The first cycle that ends may have begun before the probe died. Such a cycle keeps the
		// probe, and the next one finds it dead.
		if n := cycles - before; n >= 2 || n == 1 && probe.Value() == nil {
			return swept
		}
		if now != stops { // a mark began since the last poll, or that of an older cycle ended
			swept = last
		}
		stops, last = now, time.Since(began)
		nap.Reset(min(max(last/8, 200*time.Microsecond), time.Millisecond))
		select {
		case <-returned:
			return swept
		case <-nap.C:
		}
	}
}

// progress returns the number of cycles of the process whose mark has ended, and how often the world
// stopped to begin or end a mark. It uses the memory of s again.
func progress(s *[2]metrics.Sample) (cycles, stops uint64) {
	s[0].Name, s[1].Name = cyclesMetric, stopsMetric
	metrics.Read(s[:])
	for _, n := range s[1].Value.Float64Histogram().Counts {
		stops += n
	}
	return s[0].Value.Uint64(), stops
}

// newProbe returns a weak pointer to an object that is garbage from the start.
//
//go:noinline
func newProbe() weak.Pointer[policy.Cycle] { return weak.Make(new(policy.Cycle)) }

// Processor takes Go's count, which is by the clock. If other programs use the processors, that is
// more than the process got, so the processor time of the process bounds it.
func (r *Runtime) Processor() time.Duration { return r.pay(1) }

// pay adds a share of what Go has counted since the last call, and returns the sum.
func (r *Runtime) pay(share float64) time.Duration {
	s := [...]metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	r.mu.Lock()
	defer r.mu.Unlock()
	metrics.Read(s[:])
	now := [2]time.Duration{time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))}
	now[1] = cmp.Or(r.Used(), now[0])
	r.sum += max(0, min(time.Duration(share*float64(now[0]-r.paid[0])), now[1]-r.paid[1]))
	r.paid = now
	return r.sum
}

// Spare takes about 1 us.
func (r *Runtime) Spare() bool {
	n := read("/sched/goroutines/running:goroutines")[0]
	return 0 < n && n < uint64(runtime.GOMAXPROCS(0))
}

// sentinelsRun is the number of cleanups of sentinels that have run.
var sentinelsRun atomic.Int64

func (r *Runtime) Watch(ended func()) {
	r.ended = ended
	arm(weak.Make(r))
}

// A sentinel is garbage from the start. Its cleanup runs after a cycle.
type sentinel struct{ _ [4]*sentinel }

// arm makes the next sentinel. It does not keep r alive.
func arm(r weak.Pointer[Runtime]) {
	runtime.AddCleanup(new(sentinel), cycleEnded, r)
}

// cycleEnded is the sentinel's cleanup.
func cycleEnded(w weak.Pointer[Runtime]) {
	sentinelsRun.Add(1)
	if r := w.Value(); r != nil {
		arm(w)
		r.ended()
	}
}

func (r *Runtime) Close() { r.marking.Wait() }

// Pending is the progress of sweeps, finalizers and cleanups. Before Go 1.26 the runtime does not
// tell that of finalizers and cleanups, and it is 0.
type Pending struct {
	Marked, Swept         int64  // calls of Mark so far, and those whose sweep has ended
	Finalizers, Finalized uint64 // queued so far, and run
	Cleanups, Cleaned     uint64
	own                   int64 // of Cleaned, those of engines
}

// Pending takes 0.3 us. It reads the sweeps first, because a sweep queues finalizers before it ends.
func (r *Runtime) Pending() Pending {
	p := Pending{Marked: r.calls.Load(), Swept: r.returns.Load(), own: sentinelsRun.Load()}
	v := read("/gc/finalizers/queued:finalizers", "/gc/finalizers/executed:finalizers", "/gc/cleanups/queued:cleanups", "/gc/cleanups/executed:cleanups")
	p.Finalizers, p.Finalized, p.Cleanups, p.Cleaned = v[0], v[1], v[2], v[3]
	return p
}

// Done reports whether the finalizers and cleanups have run that the given number of marks made due.
func (p Pending) Done(marks int64) bool { return p.Swept >= marks && !p.Waiting() }

// Ran returns the number of finalizers and cleanups that have run, without those of engines.
func (p Pending) Ran() int64 { return int64(p.Finalized+p.Cleaned) - p.own }

// Waiting reports whether a finalizer or cleanup is due that has not run.
func (p Pending) Waiting() bool { return p.Finalized < p.Finalizers || p.Cleaned < p.Cleanups }

// Heap returns the bytes of the Go heap that the last cycle has kept, but at least the 4 MiB that Go
// assumes. It takes 0.1 us.
func Heap() int64 { return max(4<<20, int64(read("/gc/heap/live:bytes")[0])) }
