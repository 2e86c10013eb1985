// Package auto keeps the memory that a process holds outside the Go heap low, for
// one import and no other change:
//
//	import _ "github.com/eagergc/eagergc/gc/auto"
//
// Objects of C libraries are tiny to Go's collector, so that no cycle starts while
// dead ones hold gigabytes. From the import on, the process's anonymous resident
// memory less what Go itself has mapped and touched is a gauge ([gc.Watch]), with a policy that weighs the
// cost of a cycle against bytes x time. Finalizers and cleanups that
// the program or its libraries have set do the freeing. Nobody is held for the gauge.
//
// More cycles mean that finalizers run sooner: a binding that passes C memory of an object to C, and does not keep the object alive until the
// call returns (runtime.KeepAlive), may crash that did not before. The fault is the binding's, and Go's own cycles bring it out, too, only more seldom.
// Run your tests with EAGERGC=stress, look for such places with gc/vet, and report them to the binding ([how]); until then EAGERGC=off.
//
// Libraries that count their memory through package pressure are counted by name, to the byte, and are no
// part of the gauge: see [gc.Collector.Listen]. Their calls ask the policy at once, and may be held for a moment, as [gc.Caps] says.
//
// Mapped files do not count. Where the process is in a container with a limit, or
// EAGERGC_HOST_HARD_MEMORY_LIMIT is set, that holds besides the price; and where neither GOMEMLIMIT nor the program
// sets it, Go's own limit becomes what the memory outside the Go heap leaves of it. While the
// kernel says that tasks wait for memory, the price of memory is higher. Processes that share a container
// find each other by what it holds: what others hold is no part of a process's limit, and the price is higher for all
// once the container is nearly full.
//
// A cycle that gives nearly nothing back is not repeated soon: see [gc.Gauge.Resting].
// One line in the log says so once that memory has stayed for 10 s. As long as there is nothing to say the log has nothing above debug level.
//
// glibc keeps much of what cycles free, for threads that may not need it. Where the program is linked with it, it is trimmed after cycles, as
// often as the price of memory says: see [gc.Caps].
//
// Variables: EAGERGC=off turns it off, and EAGERGC=stress runs cycles as often as it can instead, to find faults in tests.
// EAGERGC_POLICY is the policy's text form. EAGERGC_TRIM=off leaves C's allocator as it is. A variable that cannot be read is said in the log, and counts as not set.
//
// Only Linux says what is needed: elsewhere the package is off.
//
// [how]: https://github.com/eagergc/eagergc/blob/main/gc/AUDIT.md
package auto

import (
	"cmp"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Options change what the import does. The zero value is the import.
type Options struct {
	// Limit is what the process is to stay below, Go heap included, in bytes: a goal, at most what the machine or the container
	// has. 0 means that of the environment or, if there is none, of the container.
	Limit int64
	// Trim gives memory that Go's heap keeps free back to the system, too, as debug.FreeOSMemory does: where that is a fifth of
	// what Go has, and at least 32 MiB, and at most each two minutes.
	Trim bool
	// Held is called, on a goroutine of its own, when so much memory has stayed so long that no cycle brings back. It may write a heap profile.
	Held func(bytes int64, stayed time.Duration)
	// Log is told what there is to say; nil means slog.Default.
	Log *slog.Logger
}

func (o Options) log() *slog.Logger { return cmp.Or(o.Log, slog.Default()) }

// A keeper is what runs: a watcher, or the cycles of a stress test.
type keeper interface{ stop() }

var running struct {
	sync.Mutex
	keeper  keeper
	goLimit *goLimit
	due     bool // the start that the import brings, until somebody has started or stopped
}

// A program that ends at once pays nothing. The start takes 0.5 to 1 ms.
const startAfter = 20 * time.Millisecond

func init() {
	running.Lock()
	defer running.Unlock()
	running.goLimit = takeGoLimit(debug.SetMemoryLimit)
	running.due = true
	time.AfterFunc(startAfter, startDue)
}

// startDue starts what the import brings, unless somebody has started or stopped before.
func startDue() {
	running.Lock()
	defer running.Unlock()
	if running.due {
		begin(Options{})
	}
}

// Start does what the import does, with options, and in its place. Stop ends it, and puts back what it has moved; nothing
// else runs then. A program starts one, once; a second Start ends the first. It does nothing where EAGERGC=off.
func Start(o Options) (stop func()) {
	running.Lock()
	defer running.Unlock()
	end()
	k := begin(o)
	return func() { // more than once is harmless
		running.Lock()
		defer running.Unlock()
		if running.keeper == k {
			end()
		}
	}
}

// begin starts what the environment says. The caller holds the lock.
func begin(o Options) keeper {
	running.due = false
	switch pressure.EnvChoice("EAGERGC", "on", "off", "stress") {
	case "off":
		return nil
	case "stress":
		running.keeper = startStress(o.log())
		return running.keeper
	}
	if running.goLimit == nil {
		running.goLimit = takeGoLimit(debug.SetMemoryLimit)
	}
	w, err := start(system{o.Limit}, o, running.goLimit)
	if err != nil {
		o.log().Debug("eagergc: off", slog.Any("error", err))
		return nil
	}
	running.keeper = w
	go w.run()
	return w
}

// end stops what runs, and what is due. The caller holds the lock.
func end() {
	running.due = false
	if running.keeper != nil {
		running.keeper.stop()
		running.keeper = nil
	}
	if running.goLimit != nil {
		running.goLimit.giveBack()
		running.goLimit = nil
	}
}

// Stop ends what the import or [Start] has started, and puts back what it has moved.
func Stop() {
	running.Lock()
	defer running.Unlock()
	end()
}

func current() *watcher {
	startDue()
	running.Lock()
	defer running.Unlock()
	w, _ := running.keeper.(*watcher)
	return w
}

// Collector returns the collector of the process's memory, for its page, metrics and
// statistics; nil where the package is off.
func Collector() *gc.Collector {
	if w := current(); w != nil {
		return w.collector
	}
	return nil
}

// Cycles returns how many cycles were started so far, and how many a ticker would have run that keeps memory below the same peak: it
// has to run all the time as often as the second takes in which memory grew most. Both are 0 where the package is off.
func Cycles() (run, ticker uint64) {
	w := current()
	if w == nil {
		return 0, 0
	}
	s := w.collector.Stats()
	return s.Cycles[policy.TriggerPolicy] + s.Cycles[policy.TriggerExplicit], w.ticker.cycles(w.collector.Now())
}
