package debug

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Diagnosis answers "is it the garbage collector?". Its verdict is one of
//
//   - "garbage lag": cycles free much;
//   - "reachable growth": the reachable part of the Go heap grows;
//   - "growth outside Go": memory outside the Go heap grows, and cycles do not free it;
//   - "allocator retention": an allocator keeps much free memory;
//   - "finalizers blocked": finalizers, cleanups or releases that are due do not return;
//   - "over the limit", "near the limit": of the process, as package gc/auto knows it;
//   - "nothing wrong".
type Diagnosis struct {
	gc.Finding
	text string
}

// String returns the diagnosis as text of several lines.
func (d Diagnosis) String() string { return d.text }

// Diagnose runs cycles of c, waits for the window, runs more cycles, and says why the process holds
// so much memory. With a window of 0 it cannot see growth. Where package gc/auto runs, growth is
// judged by that package, which watches the process all the time. Diagnose blocks until it is done,
// or until ctx ends the window. It stops the world to read stacks. It is safe for concurrent use.
// Outside Linux resident memory is unknown, and the verdict rests on the Go heap and the counted
// bytes. With a nil c it runs cycles of Go's, and nothing is counted.
func Diagnose(ctx context.Context, c *gc.Collector, window time.Duration) Diagnosis {
	x := examination{before: readFootprint(c)}
	x.blocked = !collectAll(c)
	x.after, x.stacks = readFootprint(c), readStacks()
	select {
	case <-time.After(window):
		x.blocked = window > 0 && !collectAll(c) || x.blocked
	case <-ctx.Done():
	}
	x.later = readFootprint(c)
	f := x.find(verdict.Current())
	return Diagnosis{f, x.text(f)}
}

// collectAll runs a cycle of c and one of Go's, twice. The second round frees objects that finalizers
// made unreachable in the first. It waits for finalizers, cleanups and releases, at most drainBound,
// and reports whether all have run.
func collectAll(c *gc.Collector) bool {
	const drainBound = 2 * time.Second
	engine := goruntime.New()
	for range 2 {
		if c != nil {
			c.Collect(policy.TriggerExplicit)
		}
		runtime.GC() // returns after the sweep, which queues finalizers and cleanups
		for end := time.Now().Add(drainBound); engine.Pending().Waiting() || c != nil && c.Stats().Pending > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
	}
	return true
}

// A footprint is the memory of a process at one moment, in bytes.
type footprint struct {
	counted   int64             // live memory that the collector counts; gauges are left out
	libraries []gc.Counted      // what libraries count of it, the largest first
	resident  pressure.Resident // zero where it is unknown
	goLive    int64             // objects in the Go heap
	goKept    int64             // free, and kept by the Go runtime
	goOther   int64             // stacks, and structures of the Go runtime
	cInUse    int64             // handed out by the C allocator; -1 = unknown
	cKept     int64             // free, and kept by the C allocator; -1 = unknown
}

// live returns the bytes that are counted under a name.
func (f footprint) live(name string) int64 {
	for _, l := range f.libraries {
		if l.Name == name {
			return l.Live
		}
	}
	return 0
}

// readFootprint reads the memory of the process, and what c counts of it.
func readFootprint(c *gc.Collector) (f footprint) {
	var now gc.Snapshot
	if c != nil {
		now = c.Snapshot()
	}
	f.libraries = now.Libraries
	for _, m := range now.Sources {
		if m.Space == pressure.Host && m.Worth == "" { // no gauge
			f.counted += m.Live
		}
	}
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	f.goLive, f.goKept = int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64()+s[2].Value.Uint64())
	f.goOther = pressure.GoMemory() - f.goLive - f.goKept
	f.resident, _ = pressure.ReadResident()
	f.cInUse, f.cKept = verdict.Allocator()
	return f
}

// outside returns the resident memory that the Go runtime has not mapped.
func (f footprint) outside() int64 { return f.resident.Outside(f.goLive + f.goKept + f.goOther) }

// used returns the memory in use, without free memory that an allocator keeps.
func (f footprint) used() int64 {
	if f.resident.Anonymous == 0 { // unknown
		return f.goLive
	}
	outside := max(0, f.outside()-max(0, f.cKept))
	return min(f.goLive+outside, f.resident.Anonymous) // Go may have mapped memory that was never written to
}

// An examination compares the footprints of a process.
type examination struct {
	before  footprint
	after   footprint // after two cycles
	later   footprint // at the end of the window, after two more cycles
	blocked bool      // finalizers, cleanups or releases did not finish
	stacks  stacks    // when after was read
}

// The least bytes, and the least share of resident memory, for a verdict.
const (
	leastBytes  = 16 << 20
	leastShare  = 0.2
	leastGrowth = 4 << 20 // in the window
	growthShare = 0.02
)

// find returns the verdict. Process is the finding of package gc/auto, or zero if that does not run.
func (x *examination) find(process gc.Finding) gc.Finding {
	all := max(1, x.before.resident.Anonymous)
	large := func(bytes int64) bool { return bytes >= leastBytes && float64(bytes) >= leastShare*float64(all) }
	garbage, grown := x.before.used()-x.after.used(), x.later.used()-x.after.used()
	grows := grown >= leastGrowth && float64(grown) >= growthShare*float64(all) && process.Verdict == ""
	f := gc.Finding{Level: verdict.Watch, See: verdict.Guide + "is-it-the-gc"}
	switch {
	case x.blocked:
		f.Level, f.Verdict = verdict.Bad, verdict.Blocked
	case process.Level == verdict.Bad || process.Verdict == verdict.OutsideGrowth || process.Verdict == verdict.GoGrowth:
		f.Level, f.Verdict = process.Level, process.Verdict
	case grows && 2*(x.later.goLive-x.after.goLive) >= grown:
		f.Level, f.Verdict = verdict.Bad, verdict.GoGrowth
	case grows:
		f.Level, f.Verdict = verdict.Bad, verdict.OutsideGrowth
	case large(garbage) && process.Verdict == "": // the import would have run a cycle where that is worth it
		f.Verdict = verdict.GarbageLag
	case large(x.after.cKept) || large(min(x.before.goKept, x.after.goKept)):
		f.Verdict = verdict.Retention
	case process.Level == verdict.Watch:
		f.Verdict = process.Verdict
	default:
		f.Level, f.Verdict = verdict.Good, verdict.Healthy
	}
	switch f.Verdict {
	case process.Verdict:
		f.Reason = process.Reason + " "
	case verdict.Blocked:
		f.Reason = "Finalizers, cleanups or releases that are due do not finish: one of them blocks. "
	}
	kept := "an unknown part (import gc/with/malloc to know it)"
	if x.after.cKept >= 0 {
		kept = pressure.Bytes(x.after.cKept).String()
	}
	f.Reason += fmt.Sprintf("Of %v resident, cycles freed %v; what is in use grew by %v in the window; Go's allocator kept %v and C's %v.",
		pressure.Bytes(all), pressure.Bytes(max(0, garbage)), pressure.Bytes(max(0, grown)), pressure.Bytes(x.after.goKept), kept)
	f.Next = verdict.Next[f.Verdict]
	return f
}

// text returns a finding of find with the table of the footprints. For growth it lists the stacks
// whose memory or goroutines grew most since stacks was read.
func (x *examination) text(f gc.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\nNext: %s\n\n", f.Verdict, f.Reason, f.Next)
	fmt.Fprintf(&b, "%-38s %12s %12s %12s\n", "", "before", "after cycles", "later")
	row := func(name string, of func(footprint) int64) {
		fmt.Fprintf(&b, "%-38s", name)
		for _, at := range []footprint{x.before, x.after, x.later} {
			text := "unknown"
			if n := of(at); n >= 0 {
				text = pressure.Bytes(n).String()
			}
			fmt.Fprintf(&b, " %12s", text)
		}
		b.WriteByte('\n')
	}
	row("resident, of the process alone", func(f footprint) int64 { return f.resident.Anonymous })
	row("  objects in the Go heap", func(f footprint) int64 { return f.goLive })
	row("  free, and kept by the Go runtime", func(f footprint) int64 { return f.goKept })
	row("  other of the Go runtime", func(f footprint) int64 { return f.goOther })
	row("  outside Go: counted by the collector", func(f footprint) int64 { return f.counted })
	for _, l := range x.later.libraries {
		row("    "+l.Name, func(f footprint) int64 { return f.live(l.Name) })
	}
	row("  outside Go: in use by C's allocator", func(f footprint) int64 { return f.cInUse })
	row("  outside Go: free, and kept by it", func(f footprint) int64 { return f.cKept })
	row("  outside Go: all", footprint.outside)
	row("resident, of files and shared", func(f footprint) int64 { return f.resident.Mapped })
	for i, l := range x.later.libraries {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %v in %s\n", l.Name, pressure.Bytes(l.Live), count(pressure.Count(l.Objects), "object"))
	}
	if f.Verdict == verdict.GoGrowth || f.Verdict == verdict.OutsideGrowth {
		x.stacks.writeGrowth(&b)
	}
	return b.String()
}

// stacks are the live bytes and the goroutines of a program, by stack.
type stacks map[string]stack

type stack struct {
	bytes      int64 // of Go objects that were allocated there, by Go's sampled heap profile
	goroutines int   // that stand there
}

// readStacks reads them. It stops the world.
func readStacks() stacks {
	all := stacks{}
	add := func(frames []uintptr, bytes int64, goroutines int) {
		var text strings.Builder
		for next, more := runtime.CallersFrames(frames), true; more; {
			var f runtime.Frame
			f, more = next.Next()
			fmt.Fprintf(&text, "\t%s %s:%d\n", f.Function, f.File, f.Line)
		}
		s := all[text.String()]
		all[text.String()] = stack{s.bytes + bytes, s.goroutines + goroutines}
	}
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, n+64)
	if n, ok := runtime.MemProfile(records, false); ok {
		for _, r := range records[:n] {
			add(r.Stack(), r.InUseBytes(), 0)
		}
	}
	standing := make([]runtime.StackRecord, runtime.NumGoroutine()+64)
	if n, ok := runtime.GoroutineProfile(standing); ok {
		for _, r := range standing[:n] {
			add(r.Stack(), 0, 1)
		}
	}
	return all
}

// goroutineBytes is the least that a goroutine is taken to hold.
const goroutineBytes = 8 << 10

// writeGrowth lists the five stacks that have grown most since s was read.
func (s stacks) writeGrowth(b *strings.Builder) {
	now := readStacks()
	weight := map[string]int64{}
	for text, x := range now {
		x.bytes -= s[text].bytes
		x.goroutines -= s[text].goroutines
		if now[text] = x; x.bytes > 0 || x.goroutines > 0 {
			weight[text] = x.bytes + goroutineBytes*int64(x.goroutines)
		}
	}
	most := slices.SortedFunc(maps.Keys(weight), func(x, y string) int {
		return cmp.Or(cmp.Compare(weight[y], weight[x]), cmp.Compare(x, y))
	})
	for _, text := range most[:min(len(most), 5)] {
		fmt.Fprintf(b, "\ngrew by %v and %d goroutines:\n%s", pressure.Bytes(now[text].bytes), now[text].goroutines, text)
	}
}
