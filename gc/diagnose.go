package gc

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// The verdicts, and what to do about each.
const (
	healthy            = "nothing wrong"
	garbageLag         = "garbage lag"
	reachableGrowth    = "reachable growth"
	allocatorRetention = "allocator retention"
)

var nextStep = map[string]string{
	healthy:            "Memory is in use, and stays as it is. To hold less, make caches smaller.",
	garbageLag:         "Cycles come too late for this memory: import gc/auto, or give it to gc.Own, gc.Account or gc.Watch.",
	reachableGrowth:    "Something that the program can reach holds more and more: look at the growing stacks, at caches without a bound, and at goroutines that wait.",
	allocatorRetention: "The memory is free, and an allocator keeps it: a collector trims glibc's unless EAGERGC_TRIM=off; set MALLOC_ARENA_MAX=2, or use jemalloc; for Go's own, debug.FreeOSMemory.",
}

// A footprint is what a process holds at one moment, in bytes.
type footprint struct {
	resident  pressure.Resident
	goLive    int64 // objects in the Go heap
	goKept    int64 // memory that the Go runtime has free and keeps
	goOther   int64 // stacks, and the runtime's own structures
	counted   int64 // live at the sources that the collector watches, gauges apart
	libraries []Counted
	cInUse    int64 // handed out by the C allocator; -1 = not known
	cKept     int64 // free, and kept by the C allocator; -1 = not known
}

// outside is what the Go runtime has not mapped.
func (f footprint) outside() int64 { return f.resident.Outside(f.goMapped()) }

func (f footprint) goMapped() int64 { return f.goLive + f.goKept + f.goOther }

// library is what libraries have counted under a name.
func (f footprint) library(name string) Counted {
	for _, l := range f.libraries {
		if l.Name == name {
			return l
		}
	}
	return Counted{}
}

// held is the memory in use, as far as known. Free memory that an allocator keeps is no part of it.
func (f footprint) held() int64 {
	outside := f.outside()
	if f.cKept > 0 {
		outside = max(0, outside-f.cKept)
	}
	if f.resident.Anonymous == 0 { // not known
		return f.goLive
	}
	return min(f.goLive+outside, f.resident.Anonymous) // Go may have more than was ever written to
}

// A Diagnosis answers "is it the garbage collector?".
type Diagnosis struct {
	// Verdict is "garbage lag" (much is garbage that a cycle frees), "reachable growth" (what a cycle keeps is growing),
	// "allocator retention" (much is free, and kept by an allocator), or "nothing wrong".
	Verdict string
	Reason  string // the figures behind it
	Next    string // the step to take

	before  footprint
	after   footprint // once two cycles had run, so that the rest is in use or kept
	later   footprint // the same again at the end of the window
	growing []growing // what grew most in the window, most first: at most five
}

// A growing is a place in the program whose memory or goroutines grew.
type growing struct {
	frames     string // function names, innermost first
	bytes      int64  // of Go objects that were allocated there, by Go's sampled heap profile
	goroutines int    // that stand there
}

var allocator atomic.Pointer[func() (inUse, kept int64)]

// SetAllocatorStats tells [Collector.Diagnose] how to read what C's allocator has handed out and what
// it keeps, in bytes. Package gc/with/malloc gives glibc's.
func SetAllocatorStats(read func() (inUse, kept int64)) { allocator.Store(&read) }

// The least bytes, and the least share of resident memory, for a verdict.
const (
	diagnoseLeast = 16 << 20
	diagnoseShare = 0.2
	growthLeast   = 4 << 20 // in the window
	growthShare   = 0.02
)

// Diagnose runs two cycles, waits for the window, which may be 0, runs two more, and
// says why the process holds so much. Without a window it cannot see growth. It
// blocks for all of that; beside the cycles it stops the world for the stacks. It is
// safe for concurrent use, and ends early with ctx. Outside Linux resident memory is not known, and the verdict
// rests on the Go heap and on the counted bytes.
func (c *Collector) Diagnose(ctx context.Context, window time.Duration) Diagnosis {
	d := Diagnosis{Verdict: healthy, before: c.footprint()}
	drained := c.collectAll()
	d.after = c.footprint()
	before := growth()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		window = 0
	}
	if window > 0 {
		drained = c.collectAll() && drained
	}
	d.later = c.footprint()
	if d.decide(); d.Verdict == reachableGrowth {
		d.growing = grown(before, growth())
	}
	if d.Next = nextStep[d.Verdict]; !drained {
		d.Verdict = garbageLag
		d.Reason = "finalizers or cleanups that are due do not finish: one of them blocks. " + d.Reason
		d.Next = "Find the finalizer or cleanup that blocks: /debug/pprof/goroutine?debug=2 shows it under runtime.runFinalizers or runtime.runCleanups."
	}
	return d
}

// decide compares garbage, growth and free memory that is kept.
func (d *Diagnosis) decide() {
	all := max(1, d.before.resident.Anonymous)
	large := func(bytes int64) bool {
		return bytes >= diagnoseLeast && float64(bytes) >= diagnoseShare*float64(all)
	}
	lag := d.before.held() - d.after.held()
	grown := d.later.held() - d.after.held()
	kept := d.after.cKept
	switch {
	case grown >= growthLeast && float64(grown) >= growthShare*float64(all):
		d.Verdict = reachableGrowth
	case large(lag):
		d.Verdict = garbageLag
	case large(kept) || large(min(d.before.goKept, d.after.goKept)):
		d.Verdict = allocatorRetention
	}
	d.Reason = fmt.Sprintf("Of %v resident, two cycles freed %v; what is in use grew by %v in the window; Go's allocator kept %v and C's %v.",
		pressure.Bytes(all), pressure.Bytes(max(0, lag)), pressure.Bytes(max(0, grown)), pressure.Bytes(d.after.goKept), keptText(d.after.cKept))
}

func keptText(kept int64) string {
	if kept < 0 {
		return "an unknown part (import gc/with/malloc to know it)"
	}
	return pressure.Bytes(kept).String()
}

// String is the diagnosis as text of some lines.
func (d Diagnosis) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\nNext: %s\n\n", d.Verdict, d.Reason, d.Next)
	fmt.Fprintf(&b, "%-38s %12s %12s %12s\n", "", "before", "after cycles", "later")
	row := func(name string, of func(footprint) int64) {
		fmt.Fprintf(&b, "%-38s", name)
		for _, f := range []footprint{d.before, d.after, d.later} {
			if of(f) < 0 {
				fmt.Fprintf(&b, " %12s", "unknown")
				continue
			}
			fmt.Fprintf(&b, " %12v", pressure.Bytes(of(f)))
		}
		b.WriteByte('\n')
	}
	row("resident, of the process alone", func(f footprint) int64 { return f.resident.Anonymous })
	row("  objects in the Go heap", func(f footprint) int64 { return f.goLive })
	row("  free, and kept by the Go runtime", func(f footprint) int64 { return f.goKept })
	row("  other of the Go runtime", func(f footprint) int64 { return f.goOther })
	row("  outside Go: counted by the collector", func(f footprint) int64 { return f.counted })
	for _, l := range d.later.libraries {
		row("    "+l.Name, func(f footprint) int64 { return f.library(l.Name).Live })
	}
	row("  outside Go: in use by C's allocator", func(f footprint) int64 { return f.cInUse })
	row("  outside Go: free, and kept by it", func(f footprint) int64 { return f.cKept })
	row("  outside Go: all", footprint.outside)
	row("resident, of files and shared", func(f footprint) int64 { return f.resident.Mapped })
	for i, l := range d.later.libraries {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, l)
	}
	for _, s := range d.growing {
		fmt.Fprintf(&b, "\ngrew by %v and %d goroutines:\n%s", pressure.Bytes(s.bytes), s.goroutines, s.frames)
	}
	return b.String()
}

// footprint reads all of it.
func (c *Collector) footprint() footprint {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	f := footprint{goLive: int64(s[0].Value.Uint64()), goKept: int64(s[1].Value.Uint64() + s[2].Value.Uint64()), cInUse: -1, cKept: -1}
	f.goOther = pressure.GoMemory() - f.goLive - f.goKept
	f.resident, _ = pressure.ReadResident() // stays 0 where it is not known
	for _, g := range c.sources() {
		if g.gauge() == nil {
			if s := g.source.Sample(); s.Space == pressure.Host {
				f.counted += s.Live
			}
		}
	}
	f.libraries = c.Counters()
	if read := allocator.Load(); read != nil {
		f.cInUse, f.cKept = (*read)()
	}
	return f
}

func (c *Collector) sources() []*Gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.gates)
}

// collectAll runs two cycles: the second one frees what finalizers of the first let go of. It
// reports whether all finalizers and cleanups have run, for which it waits drainBound at most.
func (c *Collector) collectAll() bool {
	const drainBound = 2 * time.Second
	done := func() bool { return c.cleaned(c.engine.marked()) }
	for range 2 {
		c.Collect(policy.TriggerExplicit)
		for end := time.Now().Add(drainBound); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
	}
	return true
}

// growth reads live bytes and goroutines by stack.
func growth() map[string]growing {
	all := map[string]growing{}
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, n+64)
	if n, ok := runtime.MemProfile(records, false); ok {
		for _, r := range records[:n] {
			text := frames(r.Stack())
			s := all[text]
			s.bytes += r.InUseBytes()
			all[text] = s
		}
	}
	standing := make([]runtime.StackRecord, runtime.NumGoroutine()+64)
	if n, ok := runtime.GoroutineProfile(standing); ok {
		for _, r := range standing[:n] {
			text := frames(r.Stack())
			s := all[text]
			s.goroutines++
			all[text] = s
		}
	}
	return all
}

func frames(stack []uintptr) string {
	var b strings.Builder
	for next := runtime.CallersFrames(stack); ; {
		f, more := next.Next()
		fmt.Fprintf(&b, "\t%s %s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// grown lists what grew most between two readings.
func grown(before, after map[string]growing) (most []growing) {
	for text, s := range after {
		s.frames, s.bytes, s.goroutines = text, s.bytes-before[text].bytes, s.goroutines-before[text].goroutines
		if s.bytes > 0 || s.goroutines > 0 {
			most = append(most, s)
		}
	}
	const goroutine = 8 << 10 // bytes that one is taken to hold at least
	weight := func(s growing) int64 { return s.bytes + goroutine*int64(s.goroutines) }
	slices.SortFunc(most, func(a, b growing) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.frames, b.frames))
	})
	return most[:min(len(most), 5)]
}
