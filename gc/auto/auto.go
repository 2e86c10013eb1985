// Package auto keeps the memory that a process holds outside the Go heap low, for
// one import and no other change:
//
//	import _ "github.com/eagergc/eagergc/gc/auto"
//
// Objects of C libraries are tiny to Go's collector, so that no cycle starts while
// dead ones hold gigabytes. From the import on, the process's anonymous resident
// memory less what Go itself has mapped is a gauge ([gc.Watch]), with a policy that weighs the
// cost of a cycle against bytes x time. Finalizers and cleanups that
// the program or its libraries have set do the freeing. Nobody is held for the gauge.
//
// Libraries that count their memory through package pressure are counted by name, to the byte, and are no
// part of the gauge: see [gc.Collector.Listen]. Their calls ask the policy at once, and may be held for a moment, as [gc.Caps] says.
//
// Mapped files do not count. Where the process is in a container with a limit, or
// EAGERGC_HOST_HARD_MEMORY_LIMIT is set, that holds besides the price; and where GOMEMLIMIT
// is not set, the runtime's own limit becomes what the memory outside the Go heap leaves of it. While the
// kernel says that tasks wait for memory, the price of memory is higher. Processes that share a container
// find each other by what it holds: what others hold is no part of a process's limit, and the price is higher for all
// once the container is nearly full.
//
// A cycle that gives nearly nothing back is not repeated soon: see [gc.Gauge.Resting].
// One line in the log ([slog.Default]) says so once that memory has stayed for 10 s, and one says at the start what is on.
//
// Variables: EAGERGC=off turns it off. EAGERGC_POLICY is the policy's text form.
// EAGERGC_PROFILES is a folder for at most ten heap profiles, one for each time
// that cycles stop being worth it.
//
// Only Linux says what is needed: elsewhere the package logs that it is off.
package auto

import (
	"log/slog"
	"os"

	"github.com/eagergc/eagergc/gc"
)

// Variable is the environment variable that turns the package off.
const Variable = "EAGERGC"

var running *watcher

func init() {
	if os.Getenv(Variable) == "off" {
		return
	}
	w, err := start(system{})
	if err != nil {
		slog.Warn("eagergc: off", slog.Any("error", err))
		return
	}
	running = w
	go w.run()
}

// Collector returns the collector of the process's memory, for its page, metrics and
// statistics; nil where the package is off.
func Collector() *gc.Collector {
	if running == nil {
		return nil
	}
	return running.collector
}

// Stop ends it. It is for programs that come to know themselves better.
func Stop() {
	if running != nil {
		running.stop()
	}
}
