// Package verdict has the names of faults in the memory of a process. Package gc/auto judges the
// process each second and publishes its finding. Package gc/debug judges, too, and shows both.
package verdict

import "sync/atomic"

// The levels of a finding, from the best to the worst.
const (
	Good  = "good"
	Watch = "watch"
	Bad   = "bad"
)

// The verdicts on a process.
const (
	Healthy       = "nothing wrong"
	GarbageLag    = "garbage lag"
	GoGrowth      = "reachable growth"
	OutsideGrowth = "growth outside Go"
	Retention     = "allocator retention"
	Blocked       = "finalizers blocked"
	OverLimit     = "over the limit"
	NearLimit     = "near the limit"
)

// Next is the step to take after each verdict.
var Next = map[string]string{
	Healthy:       "Memory is in use, and stays as it is. To hold less, make caches smaller.",
	GarbageLag:    "Cycles come too late for this memory: import gc/auto, or give it to gc.Own, gc.Account or gc.Watch.",
	GoGrowth:      "Something that the program can reach holds more and more: look at the growing stacks, at caches without a bound, and at goroutines that wait.",
	OutsideGrowth: "C never frees this memory, or Go objects that stay reachable hold it: look for a missing Close or free, for handles kept in maps and slices, and at the growing stacks. A profiler of the allocator names the place in C.",
	Retention:     "The memory is free, and an allocator keeps it. For glibc import gc/auto (EAGERGC_TRIM=off ends its trims), set MALLOC_ARENA_MAX=1, or use jemalloc; for Go's own, debug.FreeOSMemory.",
	Blocked:       "Find the finalizer, cleanup or release that blocks: /debug/pprof/goroutine?debug=2 shows it under runtime.runFinalizers, runtime.runCleanups or (*Releases).giveBack.",
	OverLimit:     "Diagnose says who holds it: hold less, or set a higher limit.",
	NearLimit:     "Diagnose says whether it is garbage; if it is not, hold less or raise the limit.",
}

// Guide is the address of the page that explains the verdicts.
const Guide = "https://github.com/eagergc/eagergc/blob/main/gc/EMBEDDING.md#"

// A Finding is described at gc.Finding.
type Finding struct{ Level, Verdict, Reason, Next, See string }

// Worse reports whether f is of a worse level than g.
func (f Finding) Worse(g Finding) bool {
	order := map[string]int{Watch: 1, Bad: 2}
	return order[f.Level] > order[g.Level]
}

var (
	current   atomic.Value // a Finding
	allocator atomic.Value // a func() (inUse, kept int64)
)

// Publish makes f the finding on this process. The zero value withdraws it.
func Publish(f Finding) { current.Store(f) }

// Current returns the published finding on this process, or the zero value.
func Current() Finding {
	f, _ := current.Load().(Finding)
	return f
}

// SetAllocator sets the function that reads the bytes that the C allocator has handed out and those
// that it keeps free.
func SetAllocator(read func() (inUse, kept int64)) { allocator.Store(read) }

// Allocator calls that function. Without one it returns -1.
func Allocator() (inUse, kept int64) {
	if read, ok := allocator.Load().(func() (inUse, kept int64)); ok {
		return read()
	}
	return -1, -1
}
