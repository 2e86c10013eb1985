package gc

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

// An engine runs cycles, and says what Go's runtime has done and what time it
// is. A collector has one: [goRuntime], or that of a test. Another way to run a
// cycle is another engine.
type engine interface {
	// now is the time since the engine was made. It never goes back. It is safe
	// for concurrent use, as is mark.
	now() time.Duration
	// read returns what the runtime says now. One goroutine calls it at a time.
	read() reading
	// mark runs a cycle, and returns as soon as weak pointers to what has died
	// are nil.
	mark() marking
	// marked is how many calls of mark there were, and swept of how many of them the sweep has
	// ended: until then finalizers and cleanups become due. Both are safe for concurrent use.
	marked() int64
	swept() int64
	// processor is the processor time that cycles of the process have taken so far,
	// without what only idle cores did. It moves when a mark ends.
	processor() time.Duration
	// spare reports whether a processor of GOMAXPROCS has nothing to do. It is safe for concurrent use.
	spare() bool
	// watch calls ended some time after each cycle of the process, on a goroutine
	// that must not block. It goes on until the engine is unreachable. It is called once.
	watch(ended func())
	// close returns when no goroutine of the engine's runs.
	close()
}

// A reading is what the runtime says of itself.
type reading struct {
	cycles uint64 // of the process, from its start, whose mark has ended
	scan   uint64 // bytes of the Go heap that a cycle has to scan
}

// A marking is what was seen of a mark.
type marking struct {
	swept   time.Duration // how much of the time went by before it began
	polls   int           // of the goroutines meanwhile
	waiting int           // goroutines that could run and did not, summed over the polls, in each at most as many as the cycle may displace
}

const (
	runnableMetric = "/sched/goroutines/runnable:goroutines"

	cyclesMetric = "/gc/cycles/total:gc-cycles"     // counts cycles when their mark ends; their sweep is still to come
	scanMetric   = "/gc/scan/heap:bytes"            //
	stopsMetric  = "/sched/pauses/total/gc:seconds" // a histogram: two for each cycle
)

// A goRuntime is the engine of the Go runtime.
type goRuntime struct {
	start   time.Time
	samples [2]metrics.Sample
	marking sync.WaitGroup // calls of runtime.GC
	calls   atomic.Int64   // of runtime.GC
	returns atomic.Int64   // of them
	ended   func()

	mu   sync.Mutex
	paid [2]time.Duration // processor time at the last call of processor: of cycles by Go's count, and of the process
	sum  time.Duration    // of cycles so far
}

func newGoRuntime() *goRuntime {
	r := &goRuntime{start: time.Now()}
	r.samples[0].Name, r.samples[1].Name = cyclesMetric, scanMetric
	return r
}

func (r *goRuntime) now() time.Duration { return time.Since(r.start) }

// read takes about 0.1 us.
func (r *goRuntime) read() reading {
	metrics.Read(r.samples[:])
	return reading{cycles: r.samples[0].Value.Uint64(), scan: r.samples[1].Value.Uint64()}
}

// mark does not wait for runtime.GC to return: that is after the sweep, which
// on busy cores ends seconds after the mark.
func (r *goRuntime) mark() marking {
	var runtimes progressReader
	before := runtimes.read()
	seen := markPoll{cores: runtime.GOMAXPROCS(0), first: before.stops, stops: before.stops}
	probe := newProbe()
	returned := make(chan struct{})
	r.calls.Add(1)
	r.marking.Add(1)
	go func() {
		defer r.marking.Done()
		defer close(returned)
		defer r.returns.Add(1)
		runtime.GC()
	}()
	began := time.Now()
	nap := time.NewTimer(0)
	for {
		now := runtimes.read()
		// The first cycle to end may have begun before the probe was dropped.
		// Such a cycle keeps the probe; the one after it does not.
		if n := now.cycles - before.cycles; n >= 2 || n == 1 && probe.Value() == nil {
			return seen.marking
		}
		seen.add(now, time.Since(began))
		nap.Reset(min(max(seen.at/8, 200*time.Microsecond), time.Millisecond))
		select {
		case <-returned:
			return seen.marking
		case <-nap.C:
		}
	}
}

// A markPoll is the state of polling the runtime during a mark. A cycle that follows another at once
// first finishes the other's sweep: swept is how long that took at least.
type markPoll struct {
	marking
	cores int
	first uint64        // stops before the cycle was asked for
	stops uint64        // at the last poll
	at    time.Duration // of the last poll, from when the cycle was asked for
}

func (l *markPoll) add(now progress, at time.Duration) {
	if now.stops != l.first { // it marks: a sweep gives way to whoever waits
		l.polls++
		l.waiting += displaced(now.runnable, l.cores)
	}
	if now.stops != l.stops { // since the last poll: for a mark to begin, or for that of an older cycle to end
		l.swept = l.at
	}
	l.stops, l.at = now.stops, at
}

func (r *goRuntime) marked() int64 { return r.calls.Load() }
func (r *goRuntime) swept() int64  { return r.returns.Load() }

// A progress says how far the runtime has come with its cycles.
type progress struct {
	cycles uint64 // whose mark has ended
	stops  uint64 // of the world, for a mark to begin or to end

	runnable int // goroutines that could run and do not
}

// A progressReader reads the runtime's progress. The zero value is ready to use.
type progressReader struct{ samples [3]metrics.Sample }

func (r *progressReader) read() (p progress) {
	r.samples[0].Name, r.samples[1].Name, r.samples[2].Name = cyclesMetric, stopsMetric, runnableMetric
	metrics.Read(r.samples[:])
	for _, n := range r.samples[1].Value.Float64Histogram().Counts {
		p.stops += n
	}
	p.cycles, p.runnable = count(r.samples[0]), int(count(r.samples[2]))
	return p
}

// displaced is how many of the goroutines that do not run a cycle may keep from running: it
// marks with a quarter of the processors (runtime.gcBackgroundUtilization). Whoever polls
// runs, too, and so keeps one from running; if there is one processor, in place of the cycle.
func displaced(runnable, cores int) int {
	if cores > 1 {
		runnable--
	}
	return max(0, min(runnable, (cores+3)/4))
}

// newProbe returns a weak pointer to an object that is garbage from the start.
//
//go:noinline
func newProbe() weak.Pointer[policy.Cycle] { return weak.Make(new(policy.Cycle)) }

// processor takes what Go counts, which is by the clock: where other programs have the processors, that is more than the process got,
// which bounds it.
func (r *goRuntime) processor() time.Duration {
	s := [...]metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	r.mu.Lock()
	defer r.mu.Unlock()
	metrics.Read(s[:])
	now := [2]time.Duration{time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))}
	now[1] = cmp.Or(processTime(), now[0])
	r.sum += max(0, min(now[0]-r.paid[0], now[1]-r.paid[1]))
	r.paid = now
	return r.sum
}

// spare takes about 1 us.
func (r *goRuntime) spare() bool {
	s := [...]metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}}
	metrics.Read(s[:])
	return s[0].Value.Kind() == metrics.KindUint64 && s[0].Value.Uint64() < uint64(runtime.GOMAXPROCS(0))
}

// sentinels is the number of engines whose sentinel's cleanup runs after each cycle.
var sentinels atomic.Int64

func (r *goRuntime) watch(ended func()) {
	sentinels.Add(1)
	r.ended = ended
	arm(weak.Make(r))
}

// A sentinel is garbage from the start: its cleanup runs after some cycle.
type sentinel struct{ _ [4]*sentinel }

// arm makes the next sentinel. It does not keep r alive.
func arm(r weak.Pointer[goRuntime]) {
	runtime.AddCleanup(new(sentinel), cycleEnded, r)
}

// cycleEnded is the sentinel's cleanup.
func cycleEnded(w weak.Pointer[goRuntime]) {
	r := w.Value()
	if r == nil {
		sentinels.Add(-1)
		return
	}
	arm(w)
	r.ended()
}

func (r *goRuntime) close() { r.marking.Wait() }

// pending is how far the runtime is with finalizers and cleanups. Before Go 1.26 it does not say: all is 0 then.
type pending struct {
	finalizers, finalized uint64 // queued so far, and run
	cleanups, cleaned     uint64
	cycles                uint64
}

// readPending takes 0.3 us.
func readPending() pending {
	s := [...]metrics.Sample{
		{Name: "/gc/finalizers/queued:finalizers"}, {Name: "/gc/finalizers/executed:finalizers"},
		{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"}, {Name: cyclesMetric},
	}
	metrics.Read(s[:])
	return pending{count(s[0]), count(s[1]), count(s[2]), count(s[3]), count(s[4])}
}

// count is what s counts; 0 if this runtime does not.
func count(s metrics.Sample) uint64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s.Value.Uint64()
}

// ran is how many have run since before, without those of our own that each cycle runs.
func (p pending) ran(before pending) int64 {
	return int64(p.finalized+p.cleaned-before.finalized-before.cleaned) - int64(p.cycles-before.cycles)*sentinels.Load()
}

func (p pending) waiting() bool { return p.finalized < p.finalizers || p.cleaned < p.cleanups }
