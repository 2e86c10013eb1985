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

	"github.com/eagergc/eagergc/pressure"
)

// A Verdict says why a process holds the memory that it holds.
type Verdict uint8

const (
	Healthy            Verdict = iota // none of the others
	GarbageLag                        // much of it is garbage that a cycle frees
	ReachableGrowth                   // what a cycle keeps is growing
	AllocatorRetention                // much of it is free, and kept by an allocator
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"nothing wrong", "garbage lag", "reachable growth", "allocator retention"}[v]
}

// next is what to do about it.
func (v Verdict) next() string {
	return [...]string{
		"Memory is in use, and stays as it is. To hold less, make caches smaller.",
		"Cycles come too late for this memory: import gc/auto, or give it to gc.Own, gc.Account or gc.Watch.",
		"Something that the program can reach holds more and more: look at the growing stacks, at caches without a bound, and at goroutines that wait.",
		"The memory is free, and an allocator keeps it: trim it (gc/with/malloc does so beside gc/auto), set MALLOC_ARENA_MAX=2, or use jemalloc; for Go's own, debug.FreeOSMemory.",
	}[v]
}

// A Footprint is what a process holds at one moment, in bytes.
type Footprint struct {
	Resident  pressure.Resident
	GoLive    int64 // objects in the Go heap
	GoKept    int64 // memory that the Go runtime has free and keeps
	GoOther   int64 // stacks, and the runtime's own structures
	Counted   int64 // live at the sources that the collector watches, gauges apart
	Libraries []Counted
	CInUse    int64 // handed out by the C allocator; -1 = not known
	CKept     int64 // free, and kept by the C allocator; -1 = not known
	Goroutine int   // number of goroutines
}

// Outside is what the Go runtime has not mapped.
func (f Footprint) Outside() int64 { return f.Resident.Outside(f.goMapped()) }

func (f Footprint) goMapped() int64 { return f.GoLive + f.GoKept + f.GoOther }

// library is what libraries have counted under a name.
func (f Footprint) library(name string) Counted {
	for _, l := range f.Libraries {
		if l.Name == name {
			return l
		}
	}
	return Counted{}
}

// held is what is in use, by the best that is known: what an allocator keeps is no part of it.
func (f Footprint) held() int64 {
	outside := f.Outside()
	if f.CKept > 0 {
		outside = max(0, outside-f.CKept)
	}
	if f.Resident.Anonymous == 0 { // not known
		return f.GoLive
	}
	return min(f.GoLive+outside, f.Resident.Anonymous) // Go may have more than was ever written to
}

// A Diagnosis answers "is it the garbage collector?".
type Diagnosis struct {
	Verdict Verdict
	Reason  string // the figures behind it
	Next    string // the step to take
	Before  Footprint
	After   Footprint // once two cycles had run, so that what is left is in use or kept
	Later   Footprint // the same again at the end of the window
	Growing []Stack   // what grew most in the window, most first: at most five
}

// A Stack is a place in the program whose memory or goroutines grew.
type Stack struct {
	Frames     string // function names, innermost first
	Bytes      int64  // of Go objects that were allocated there, by Go's sampled heap profile
	Goroutines int    // that stand there
}

// An AllocatorStats reads what C's allocator has handed out and what it keeps, in bytes. Package
// gc/with/malloc gives glibc's.
type AllocatorStats func() (inUse, kept int64)

var allocator atomic.Pointer[AllocatorStats]

// SetAllocatorStats tells [Collector.Diagnose] how to read the C allocator.
func SetAllocatorStats(read AllocatorStats) { allocator.Store(&read) }

// What a verdict takes: so many bytes, and so large a share of what is resident.
const (
	diagnoseLeast = 16 << 20
	diagnoseShare = 0.2
	growthLeast   = 4 << 20 // in the window
	growthShare   = 0.02
)

// Diagnose runs two cycles, waits for the window, which may be 0, runs two more, and
// says why the process holds what it holds. Without a window it cannot see growth. It
// blocks for all of that; beside the cycles it stops the world for the stacks. It is
// safe for concurrent use, and ends early with ctx. Outside Linux resident memory is not known, and the verdict
// rests on the Go heap and on what is counted.
func (c *Collector) Diagnose(ctx context.Context, window time.Duration) Diagnosis {
	d := Diagnosis{Before: c.footprint()}
	drained := c.collectAll()
	d.After = c.footprint()
	before := growth()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		window = 0
	}
	if window > 0 {
		drained = c.collectAll() && drained
	}
	d.Later = c.footprint()
	if d.decide(); d.Verdict == ReachableGrowth {
		d.Growing = grown(before, growth())
	}
	if d.Next = d.Verdict.next(); !drained {
		d.Verdict = GarbageLag
		d.Reason = "finalizers or cleanups that are due do not finish: one of them blocks. " + d.Reason
		d.Next = "Find the finalizer or cleanup that blocks: /debug/pprof/goroutine?debug=2 shows it under runtime.runFinalizers or runtime.runCleanups."
	}
	return d
}

// decide compares what lags, what grows and what is kept.
func (d *Diagnosis) decide() {
	all := max(1, d.Before.Resident.Anonymous)
	large := func(bytes int64) bool {
		return bytes >= diagnoseLeast && float64(bytes) >= diagnoseShare*float64(all)
	}
	lag := d.Before.held() - d.After.held()
	grown := d.Later.held() - d.After.held()
	kept := max(0, d.After.CKept)
	switch {
	case grown >= growthLeast && float64(grown) >= growthShare*float64(all):
		d.Verdict = ReachableGrowth
	case large(lag):
		d.Verdict = GarbageLag
	case large(kept) || large(min(d.Before.GoKept, d.After.GoKept)):
		d.Verdict = AllocatorRetention
	}
	d.Reason = fmt.Sprintf("Of %v resident, two cycles freed %v; what is in use grew by %v in the window; Go's allocator kept %v and C's %v.",
		pressure.Bytes(all), pressure.Bytes(max(0, lag)), pressure.Bytes(max(0, grown)), pressure.Bytes(d.After.GoKept), keptText(d.After.CKept))
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
	row := func(name string, of func(Footprint) int64) {
		fmt.Fprintf(&b, "%-38s", name)
		for _, f := range []Footprint{d.Before, d.After, d.Later} {
			if of(f) < 0 {
				fmt.Fprintf(&b, " %12s", "unknown")
				continue
			}
			fmt.Fprintf(&b, " %12v", pressure.Bytes(of(f)))
		}
		b.WriteByte('\n')
	}
	row("resident, of the process alone", func(f Footprint) int64 { return f.Resident.Anonymous })
	row("  objects in the Go heap", func(f Footprint) int64 { return f.GoLive })
	row("  free, and kept by the Go runtime", func(f Footprint) int64 { return f.GoKept })
	row("  other of the Go runtime", func(f Footprint) int64 { return f.GoOther })
	row("  outside Go: counted by the collector", func(f Footprint) int64 { return f.Counted })
	for _, l := range d.Later.Libraries {
		row("    "+l.Name, func(f Footprint) int64 { return f.library(l.Name).Live })
	}
	row("  outside Go: in use by C's allocator", func(f Footprint) int64 { return f.CInUse })
	row("  outside Go: free, and kept by it", func(f Footprint) int64 { return f.CKept })
	row("  outside Go: all", Footprint.Outside)
	row("resident, of files and shared", func(f Footprint) int64 { return f.Resident.Mapped })
	for i, l := range d.Later.Libraries {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, l)
	}
	for _, s := range d.Growing {
		fmt.Fprintf(&b, "\ngrew by %v and %d goroutines:\n%s", pressure.Bytes(s.Bytes), s.Goroutines, s.Frames)
	}
	return b.String()
}

// footprint reads all of it.
func (c *Collector) footprint() Footprint {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	f := Footprint{GoLive: int64(s[0].Value.Uint64()), GoKept: int64(s[1].Value.Uint64() + s[2].Value.Uint64()), CInUse: -1, CKept: -1, Goroutine: runtime.NumGoroutine()}
	f.GoOther = pressure.GoMemory() - f.GoLive - f.GoKept
	f.Resident, _ = pressure.ReadResident() // stays 0 where it is not known
	for _, g := range c.sources() {
		if g.gauge() == nil {
			if s := g.source.Sample(); s.Space == pressure.Host {
				f.Counted += s.Live
			}
		}
	}
	f.Libraries = c.Counters()
	if read := allocator.Load(); read != nil {
		f.CInUse, f.CKept = (*read)()
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
		c.Collect(TriggerExplicit)
		for end := time.Now().Add(drainBound); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
	}
	return true
}

// growth reads what is alive by stack.
func growth() map[string]Stack {
	all := map[string]Stack{}
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, n+64)
	if n, ok := runtime.MemProfile(records, false); ok {
		for _, r := range records[:n] {
			text := frames(r.Stack())
			s := all[text]
			s.Bytes += r.InUseBytes()
			all[text] = s
		}
	}
	standing := make([]runtime.StackRecord, runtime.NumGoroutine()+64)
	if n, ok := runtime.GoroutineProfile(standing); ok {
		for _, r := range standing[:n] {
			text := frames(r.Stack())
			s := all[text]
			s.Goroutines++
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
func grown(before, after map[string]Stack) (most []Stack) {
	for text, s := range after {
		s.Frames, s.Bytes, s.Goroutines = text, s.Bytes-before[text].Bytes, s.Goroutines-before[text].Goroutines
		if s.Bytes > 0 || s.Goroutines > 0 {
			most = append(most, s)
		}
	}
	const goroutine = 8 << 10 // bytes that one is taken to hold at least
	weight := func(s Stack) int64 { return s.Bytes + goroutine*int64(s.Goroutines) }
	slices.SortFunc(most, func(a, b Stack) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Frames, b.Frames))
	})
	return most[:min(len(most), 5)]
}
