package gc

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// onlookers are told what a collector has decided and done: counts, timeline, journal, recording and
// log. No answer depends on them. The collector's mu guards them.
type onlookers struct {
	stats      Stats
	timeline   timeline
	journal    journal
	recorder   *recorder
	over       overLimit
	busy       busyLog
	err        error
	pendingLog []logEntry // for the log, once mu is not held
}

// decided tells them that the policy was asked at p, and what came of it. The caller holds mu.
func (c *Collector) decided(p policy.Point, d policy.Decision) {
	c.seeLast(p.Now)
	c.stats.Decisions[d.Action]++
	if d.Reason == cappedReason {
		c.stats.Capped++
	}
	c.journal.decided(p, d)
	c.record(func(to *recorder) { to.decision(p, d) })
}

// ended tells them of a cycle that ended at a time, and freed so many bytes and objects in all spaces. The caller holds mu.
func (c *Collector) ended(r *collection, end, processor time.Duration, freed int64, objects int) {
	c.seeLast(end)
	work := workOf(r.cycle, processor, freed)
	c.stats.cycle(r.cycle, work, objects)
	c.worked(end, work)
	c.journal.cycles.put(r.cycle)
	if c.closed {
		return
	}
	if r.gate.isSoft() && r.cycle.Limit > 0 && r.trigger != policy.TriggerNatural { // of that one nobody knows when it began
		c.noteOver(r.cycle, c.releases.dying(r.gate), r.gate.allocated-r.allocated)
	}
	c.noteBusy(end)
	c.record(func(to *recorder) {
		to.cycle(r.cycle, r.gate)
		to.machine(end, r.gate, machineSeen{int64(c.runtime.scan), int64(runtime.GOMAXPROCS(0)), int64(1e6 * c.expected.Slowdown)})
	})
}

// paused tells them that r has held a caller until now.
func (c *Collector) paused(r *collection, since time.Duration) {
	now := c.Now()
	c.mu.Lock()
	defer c.unlock()
	c.stats.pause(now - since)
	c.worked(now, Work{Held: now - since, Longest: now - since})
	c.record(func(to *recorder) { to.pause(since, now-since, r.gate) })
}

// record calls f with the recorder, if there is one. The caller holds mu.
func (c *Collector) record(f func(*recorder)) {
	if c.recorder == nil {
		return
	}
	if !c.strict {
		defer func() {
			if e := recover(); e != nil {
				c.setRecorder(nil)
				c.fail(fmt.Errorf("gc: the recorder panicked and is off: %v\n%s", e, debug.Stack()))
			}
		}()
	}
	f(c.recorder)
}

// fail keeps the first error, and has it logged. The caller holds mu.
func (c *Collector) fail(err error) {
	c.stats.Failures++
	first := c.err == nil
	if first {
		c.err = err
	}
	c.pendingLog = append(c.pendingLog, logEntry{slog.LevelError, logPanicked, []slog.Attr{slog.Any("error", err)}, first})
}

// failed counts a failure at once, and logs it. The caller holds no lock.
func (c *Collector) failed(err error) {
	c.mu.Lock()
	defer c.unlock()
	c.fail(err)
}
