// Package auto keeps the memory that a process holds outside the Go heap low. It needs one import
// and no other change:
//
//	import _ "github.com/eagergc/eagergc/gc/auto"
//
// Objects of C libraries are tiny to Go's collector, so that no cycle starts while dead ones hold
// gigabytes. The import watches a gauge ([gc.Watch]): the process's anonymous resident memory,
// without the part that Go has mapped and touched. The policy weighs the cost of a cycle against
// bytes x time. Finalizers and cleanups that the program or its libraries have set do the freeing.
// Callers are never held for the gauge.
//
// More cycles mean that finalizers run sooner. A binding may pass C memory of an object to C
// without keeping the object alive until the call returns (runtime.KeepAlive). Such a binding may
// now crash where it did not before. The fault is in the binding: Go's own cycles expose it, too,
// but more rarely. Run your tests with EAGERGC=stress, look for such places with gc/vet, and report
// them to the binding ([how]). Until it is fixed, set EAGERGC=off.
//
// Libraries that count their memory through package pressure are counted by name, to the byte. They
// are not part of the gauge: see [gc.Collector.Listen]. Their calls ask the policy at once, and may
// be held for a moment, within [gc.Caps].
//
// Mapped files do not count. A limit of the container, or EAGERGC_HOST_HARD_MEMORY_LIMIT, applies
// in addition to the price of memory. With such a limit the import also sets Go's own memory limit,
// unless GOMEMLIMIT or the program sets it. Go's limit is then the part of the process's limit that
// memory outside the Go heap leaves.
//
// While the kernel reports that tasks wait for memory, the price of memory is higher. Processes
// that share a container see each other by the memory that it holds. Memory of other processes is
// not part of a process's limit. The price rises for all once the container is nearly full.
//
// Cycles have to earn their processor time. While they bring memory back, they take at most 2 % of
// the time that the program uses. Finalizers that they run, and page faults of memory that was
// given back, are not part of that. Each further cycle that brings nothing back halves that share.
// So a program that frees by hand pays next to nothing. Memory outside the Go heap may grow by half
// of all memory, and in the first second also by 16 MiB. If a cycle then brings that back or runs
// finalizers or cleanups, the share is lifted for 2 s, and later for up to 64 s. Only [gc.Caps] and
// the price of memory bound cycles then. The share is lifted again once memory has stayed a fifth and
// 16 MiB above its mean in the last such time.
//
// Once memory has stayed for 10 s although cycles ran, one line in the log reports it. The process
// is judged every second. The judge finds growth that cycles do not bring back, blocked finalizers,
// memory that an allocator keeps free, and an exceeded limit. Its finding appears in the log, on
// the page of gc/debug, in metrics and in gc/debug.Diagnose. Trims that take more than 5 % of the
// processor time are logged once. Otherwise a healthy process logs nothing above debug level.
//
// glibc keeps much of the memory that cycles free, for threads that may not need it. The import
// makes glibc give it back after cycles, as often as the price of memory justifies: see package
// gc/auto/trim.
//
// Variables: EAGERGC=off turns the package off. EAGERGC=stress runs cycles as often as possible
// instead, to find faults in tests. EAGERGC_POLICY is the text form of the policy. EAGERGC_TRIM=off
// leaves C's allocator alone. A variable with an unreadable value or an unknown name is logged and
// has no effect.
//
// The package needs information that only Linux provides. On other systems it is off.
//
// [how]: https://github.com/eagergc/eagergc/blob/main/gc/AUDIT.md
package auto

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eagergc/eagergc/gc"
	_ "github.com/eagergc/eagergc/gc/auto/trim"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Options adjust the import. The zero value changes nothing.
type Options struct {
	// Limit is the number of bytes that the process should stay below, Go heap included. It is a
	// goal, and at most the memory of the machine or the container. 0 means the limit of the
	// environment or, without one, that of the container.
	Limit int64
	// Held is called, on its own goroutine, when bytes have stayed for some time and no cycle
	// brings them back. It may write a heap profile.
	Held func(bytes int64, stayed time.Duration)
	// Log receives the messages of the package; nil means slog.Default.
	Log *slog.Logger
}

func (o Options) log() *slog.Logger { return cmp.Or(o.Log, slog.Default()) }

// A keeper is the part that runs: a watcher, or the cycles of a stress test.
type keeper interface{ stop() }

// Nothing is logged while running is locked, because a handler of log lines may call Collector. A
// watcher does log while it starts or ends. Then Collector finds it in watching.
var running struct {
	sync.Mutex
	keeper  keeper
	goLimit *goLimit
	options *Options // of the last start; nil after Stop
	due     bool     // that start is pending
	timer   *time.Timer
}

var watching atomic.Pointer[watcher]

const (
	// startAfter delays the start, which takes 0.5 to 1 ms, so that a program that ends at once does
	// not pay for it.
	startAfter = 20 * time.Millisecond
	// againAfter is the time until the next try, where the first one lacked a free descriptor.
	againAfter = time.Second
)

func init() {
	running.Lock()
	defer running.Unlock()
	running.options, running.due = new(Options), true
	delay := startAfter
	switch mode() {
	case "on":
		running.goLimit = takeGoLimit(debug.SetMemoryLimit)
	case "stress":
		delay = 0 // a test may be short
	}
	running.timer = time.AfterFunc(delay, startDue)
}

// mode returns the value of EAGERGC.
func mode() string { return pressure.EnvChoice("EAGERGC", "on", "off", "stress") }

// Start does what the import does, with options, and in its place. The function that it returns
// ends this, and restores the settings that it has changed. Nothing runs after that. A program
// calls Start once: a second Start ends the first. With EAGERGC=off nothing runs after Start, and
// with EAGERGC=stress cycles run as often as possible.
func Start(o Options) (stop func()) {
	running.Lock()
	end()
	running.options, running.due = &o, true
	running.Unlock()
	startDue()
	return func() { // more than once is harmless
		running.Lock()
		defer running.Unlock()
		if running.options == &o {
			end()
		}
	}
}

// startDue does a pending start. Then it warns of unknown variables, and of stress.
func startDue() {
	running.Lock()
	o, due := running.options, running.due
	running.Unlock()
	if !due {
		return
	}
	var c *gc.Collector
	if mode() == "on" {
		c, _ = gc.New(gc.Config{Policy: policy.MustParse(gc.HostPolicy).New(), Log: o.Log}) // this configuration has no errors
	}
	running.Lock()
	if running.options != o || !running.due { // another call was faster
		running.Unlock()
		if c != nil {
			c.Close()
		}
		return
	}
	running.due = false
	err := begin(o, c)
	again := running.due
	running.Unlock()
	if again { // without a line, because its handler may call Collector
		return
	}
	if err != nil {
		o.log().Debug("eagergc: off", slog.Any("error", err))
	}
	for _, name := range pressure.UnknownVariables(os.Environ()) {
		o.log().Warn("eagergc: no variable of eagergc has this name, so it has no effect", slog.String("name", name))
	}
	if mode() == "stress" {
		o.log().Warn("eagergc: stress: cycles run as often as they can, which is for tests alone")
	}
}

// begin starts a watcher whose collector is c. If c is nil, it starts a stress test, or nothing. The
// caller holds the lock.
func begin(o *Options, c *gc.Collector) error {
	if c == nil {
		if mode() == "stress" {
			running.keeper = startStress()
		}
		return nil
	}
	if running.goLimit == nil {
		running.goLimit = takeGoLimit(debug.SetMemoryLimit)
	}
	w, err := newWatcher(system{o.Limit}, *o, c, running.goLimit)
	if err != nil {
		c.Close()
		end()
		if errors.Is(err, syscall.EMFILE) {
			running.options, running.due = o, true
			running.timer.Reset(againAfter)
		}
		return err
	}
	running.keeper = w
	watching.Store(w)
	w.review(time.Now())
	go w.run()
	return nil
}

// end stops the keeper and cancels a pending start. The caller holds the lock.
func end() {
	running.options, running.due = nil, false
	if running.keeper != nil {
		running.keeper.stop()
		running.keeper = nil
		watching.Store(nil)
	}
	if running.goLimit != nil {
		running.goLimit.giveBack()
		running.goLimit = nil
	}
}

// Stop ends the work that the import or [Start] has started, and restores the settings that it has
// changed.
func Stop() {
	running.Lock()
	defer running.Unlock()
	end()
}

// Collector returns the collector of the process's memory, for its page, metrics and statistics. It
// returns nil if the package watches nothing: with EAGERGC=off or EAGERGC=stress, after [Stop], and
// on other systems than Linux.
func Collector() *gc.Collector {
	if watching.Load() == nil {
		startDue()
	}
	if w := watching.Load(); w != nil {
		return w.collector
	}
	return nil
}
