package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/pressure"
)

// A Footprint is the memory of a process at one moment, in bytes.
type Footprint struct {
	Counted   int64             // live memory that the collector counts; gauges are left out
	Libraries []Counted         // what libraries count of it, the largest first
	resident  pressure.Resident // zero where it is unknown
	goLive    int64             // objects in the Go heap
	goKept    int64             // free, and kept by the Go runtime
	goOther   int64             // stacks, and structures of the Go runtime
	cInUse    int64             // handed out by the C allocator; -1 = unknown
	cKept     int64             // free, and kept by the C allocator; -1 = unknown
}

// Counted is memory that libraries count under one name.
type Counted struct {
	Name    string
	Live    int64 // bytes, exactly
	Objects int64
	Freed   int64 // bytes that were given back after cycles
}

// String returns it as "libfoo: 1.20 GiB in 340 objects".
func (n Counted) String() string {
	return fmt.Sprintf("%s: %v in %s", n.Name, pressure.Bytes(n.Live), Plural(n.Objects, "object"))
}

// Plural returns a number with its noun, such as "1 object".
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return pressure.Count(n) + " " + noun
}

// live returns the bytes that are counted under a name.
func (f Footprint) live(name string) int64 {
	for _, l := range f.Libraries {
		if l.Name == name {
			return l.Live
		}
	}
	return 0
}

// ReadFootprint reads the memory of this process. The caller adds Counted and Libraries.
func ReadFootprint() (f Footprint) {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	f.goLive, f.goKept = int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64()+s[2].Value.Uint64())
	f.goOther = pressure.GoMemory() - f.goLive - f.goKept
	f.resident, _ = pressure.ReadResident()
	f.cInUse, f.cKept = Allocator()
	return f
}

// outside returns the resident memory that the Go runtime has not mapped.
func (f Footprint) outside() int64 { return f.resident.Outside(f.goLive + f.goKept + f.goOther) }

// used returns the memory in use, without free memory that an allocator keeps.
func (f Footprint) used() int64 {
	if f.resident.Anonymous == 0 { // unknown
		return f.goLive
	}
	outside := max(0, f.outside()-max(0, f.cKept))
	return min(f.goLive+outside, f.resident.Anonymous) // Go may have mapped memory that was never written to
}

// An Examination compares the footprints of a process.
type Examination struct {
	Before  Footprint
	After   Footprint // after two cycles
	Later   Footprint // at the end of the window, after two more cycles
	Blocked bool      // finalizers or cleanups did not finish
	Stacks  Stacks    // when After was read
}

// The least bytes, and the least share of resident memory, for a verdict.
const (
	leastBytes  = 16 << 20
	leastShare  = 0.2
	leastGrowth = 4 << 20 // in the window
	growthShare = 0.02
)

// Find returns the verdict. Process is the finding of package gc/auto, or zero if that does not run.
func (x *Examination) Find(process Finding) Finding {
	all := max(1, x.Before.resident.Anonymous)
	large := func(bytes int64) bool { return bytes >= leastBytes && float64(bytes) >= leastShare*float64(all) }
	garbage, grown := x.Before.used()-x.After.used(), x.Later.used()-x.After.used()
	grows := grown >= leastGrowth && float64(grown) >= growthShare*float64(all) && process.Verdict == ""
	f := Finding{Level: Watch, See: Guide + "is-it-the-gc"}
	switch {
	case x.Blocked:
		f.Level, f.Verdict = Bad, Blocked
	case process.Level == Bad || process.Verdict == OutsideGrowth || process.Verdict == GoGrowth:
		f.Level, f.Verdict = process.Level, process.Verdict
	case grows && 2*(x.Later.goLive-x.After.goLive) >= grown:
		f.Level, f.Verdict = Bad, GoGrowth
	case grows:
		f.Level, f.Verdict = Bad, OutsideGrowth
	case large(garbage) && process.Verdict == "": // the import would have run a cycle where that is worth it
		f.Verdict = GarbageLag
	case large(x.After.cKept) || large(min(x.Before.goKept, x.After.goKept)):
		f.Verdict = Retention
	case process.Level == Watch:
		f.Verdict = process.Verdict
	default:
		f.Level, f.Verdict = Good, Healthy
	}
	switch f.Verdict {
	case Blocked:
		f.Reason = "Finalizers or cleanups that are due do not finish: one of them blocks. "
	case process.Verdict:
		f.Reason = process.Reason + " "
	}
	kept := "an unknown part (import gc/with/malloc to know it)"
	if x.After.cKept >= 0 {
		kept = pressure.Bytes(x.After.cKept).String()
	}
	f.Reason += fmt.Sprintf("Of %v resident, two cycles freed %v; what is in use grew by %v in the window; Go's allocator kept %v and C's %v.",
		pressure.Bytes(all), pressure.Bytes(max(0, garbage)), pressure.Bytes(max(0, grown)), pressure.Bytes(x.After.goKept), kept)
	f.Next = Next[f.Verdict]
	return f
}

// Text returns a finding of Find with the table of the footprints. For growth it lists the stacks
// whose memory or goroutines grew most since Stacks was read.
func (x *Examination) Text(f Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\nNext: %s\n\n", f.Verdict, f.Reason, f.Next)
	fmt.Fprintf(&b, "%-38s %12s %12s %12s\n", "", "before", "after cycles", "later")
	row := func(name string, of func(Footprint) int64) {
		fmt.Fprintf(&b, "%-38s", name)
		for _, at := range []Footprint{x.Before, x.After, x.Later} {
			text := "unknown"
			if n := of(at); n >= 0 {
				text = pressure.Bytes(n).String()
			}
			fmt.Fprintf(&b, " %12s", text)
		}
		b.WriteByte('\n')
	}
	row("resident, of the process alone", func(f Footprint) int64 { return f.resident.Anonymous })
	row("  objects in the Go heap", func(f Footprint) int64 { return f.goLive })
	row("  free, and kept by the Go runtime", func(f Footprint) int64 { return f.goKept })
	row("  other of the Go runtime", func(f Footprint) int64 { return f.goOther })
	row("  outside Go: counted by the collector", func(f Footprint) int64 { return f.Counted })
	for _, l := range x.Later.Libraries {
		row("    "+l.Name, func(f Footprint) int64 { return f.live(l.Name) })
	}
	row("  outside Go: in use by C's allocator", func(f Footprint) int64 { return f.cInUse })
	row("  outside Go: free, and kept by it", func(f Footprint) int64 { return f.cKept })
	row("  outside Go: all", Footprint.outside)
	row("resident, of files and shared", func(f Footprint) int64 { return f.resident.Mapped })
	for i, l := range x.Later.Libraries {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, l)
	}
	if f.Verdict == GoGrowth || f.Verdict == OutsideGrowth {
		x.Stacks.writeGrowth(&b)
	}
	return b.String()
}

// Stacks are the live bytes and the goroutines of a program, by stack.
type Stacks map[string]stack

type stack struct {
	bytes      int64 // of Go objects that were allocated there, by Go's sampled heap profile
	goroutines int   // that stand there
}

// ReadStacks reads them. It stops the world.
func ReadStacks() Stacks {
	all := Stacks{}
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
func (s Stacks) writeGrowth(b *strings.Builder) {
	now := ReadStacks()
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
