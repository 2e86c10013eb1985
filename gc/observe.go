package gc

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Lines of the log. Cycles have debug level. Mistakes that the program should mend are
// warnings, and failures are errors.
const (
	logEnded    = "eagergc: cycle ended"
	logPanicked = "eagergc: failure contained"
	logSurvives = "eagergc: many cycles have not found this memory dead, and it has doubled: a cache, a leak, or an owner that its own release keeps alive"
	logCaptured = "eagergc: a release given to Own seems to have captured its owner, which would keep that alive for ever: write a function that takes what it needs as its argument"
	logLimit    = "eagergc: the limit is above what this machine or container has"
)

// observers receive the decisions and cycles of a collector. No decision depends on them. The
// collector's mu guards them.
type observers struct {
	stats    Stats
	work     observe.Series[Work]
	journal  journal
	recorder *observe.Recorder // nil = off
	recorded *observe.Recorder // the last one
	over     observe.OverLimit
	err      error
	unsaid   []observe.Line // to log once mu is released
}

// decided records the governor's last answer. The caller holds mu.
func (c *Collector) decided() {
	c.publish()
	if c.governor.Top == nil || c.life.closed {
		return
	}
	p, d := &c.governor.Asked, &c.governor.Answer
	c.observed.stats.Decisions[d.Action]++
	c.observed.journal.decided(p, d)
	c.record(func(to *observe.Recorder) { to.Decision(p, d) })
}

// ended records a cycle that ended now, and freed bytes in all spaces. The caller holds mu.
func (c *Collector) ended(r *collection, now time.Duration, freed int64) {
	w := Work{Freed: freed, Busy: r.Duration, Processor: r.Processor}
	w.Cycles[r.Trigger] = 1
	c.addWork(now, w)
	c.observed.journal.cycles = put(c.observed.journal.cycles, r.cycle)
	c.observed.stats.Objects += uint64(r.Objects)
	c.observed.stats.Last = r.cycle
	if c.life.closed {
		return
	}
	if r.gate != nil && r.Memory.Soft && r.cycle.Limit > 0 && r.Trigger != policy.TriggerNatural { // the begin of a natural one is unknown
		r.added += r.Memory.Allocated
		c.observed.unsaid = append(c.observed.unsaid, c.observed.over.Note(r.cycle, c.releases.Dying(&r.gate.returns), r.added)...)
	}
	c.record(func(to *observe.Recorder) {
		to.Cycle(&r.cycle, r.space())
		to.Value(now, int64(c.runtime.Scan), HeapLabel, r.space())
		to.Value(now, int64(c.governor.Processors), ProcessorsLabel, r.space())
		to.Value(now, int64(1e6*c.governor.Slowdown), SlowdownLabel, r.space())
	})
}

// addWork adds to the timeline and the counts. The caller holds mu.
func (c *Collector) addWork(now time.Duration, w Work) {
	step, fresh := c.observed.work.At(now)
	if fresh {
		step.Start = now.Truncate(observe.Step)
	}
	step.add(w)
	c.observed.stats.Work.add(w)
}

// paused records that r has held a caller until now.
func (c *Collector) paused(r *collection, since time.Duration) {
	now := c.Now()
	c.mu.Lock()
	defer c.unlock()
	c.observed.stats.pause(now - since)
	c.addWork(now, Work{Exposed: now - since, MaxPause: now - since})
	c.record(func(to *observe.Recorder) { to.Span(trace.Mark, since, now-since, PauseLabel, r.space()) })
}

// fail counts a failure and queues it for the log. The first one becomes Err. The caller holds mu.
func (c *Collector) fail(err error) {
	c.observed.stats.Failures++
	first := c.observed.err == nil
	c.observed.err = cmp.Or(c.observed.err, err)
	c.observed.unsaid = append(c.observed.unsaid, observe.Line{Level: slog.LevelError, Aloud: first, Text: logPanicked, Attrs: []slog.Attr{slog.Any("error", err)}})
}

// failed counts a failure and logs it. The caller holds no lock.
func (c *Collector) failed(err error) {
	c.mu.Lock()
	defer c.unlock()
	c.fail(err)
}

// unlock unlocks mu, and writes the lines that were queued while it was held.
func (c *Collector) unlock() {
	all := c.observed.unsaid
	c.observed.unsaid = nil
	c.mu.Unlock()
	for _, l := range all {
		c.log.Say(l.Level, l.Aloud, l.Text, l.Attrs...)
	}
}

// logSurvivors warns of sites whose memory is large, survives cycles and grows. The caller holds no
// lock.
func (c *Collector) logSurvivors() {
	o := c.owned.Load()
	if o == nil {
		return
	}
	for _, v := range c.samples.Growing(c.Now(), c.settled.Load(), o.live.Load()) {
		c.log.Say(slog.LevelWarn, true, logSurvives,
			slog.String("site", pressure.SiteLine(v.Site)), slog.String("held", pressure.Bytes(v.Bytes).String()), slog.Uint64("cycles", v.Cycles))
	}
}

// space returns the space of the cycle's memory. Without memory it is the host's.
func (r *collection) space() (s pressure.Space) {
	if r.gate != nil {
		s = r.Memory.Space
	}
	return s
}

func (r *collection) attrs() []slog.Attr {
	all := []slog.Attr{
		slog.String("trigger", r.Trigger.String()), slog.String("action", r.Action.String()), slog.String("reason", r.Reason),
	}
	if r.gate != nil {
		s := r.gate.source.Sample()
		all = append(all, slog.String("space", s.Space.String()), slog.Int64("live_bytes", s.Live), slog.Int64("limit_bytes", s.Limit))
	}
	return all
}

// PauseLabel is the label of the Mark event of a pause beyond the caller's own wait.
const PauseLabel = "exposed pause"

// Labels of the Mark events whose Bytes are a collector's reading of its machine. A reading that
// has changed is recorded after a cycle.
const (
	HeapLabel       = "gc: bytes of the Go heap that a cycle scans"
	ProcessorsLabel = "gc: processors"
	SlowdownLabel   = "gc: slowdown beside a cycle, millionths"
)

// setRecorder replaces the recorder. A recording begins with the live memory. The caller holds mu,
// or is build.
func (c *Collector) setRecorder(out trace.Sink) {
	c.recording.Store(out != nil)
	c.observed.recorder = nil
	if out == nil {
		return
	}
	c.observed.recorder = observe.NewRecorder(out, c.Now(), c.observed.recorded)
	c.observed.recorded = c.observed.recorder
	c.record(func(to *observe.Recorder) {
		for _, g := range c.gates {
			if g.gauge != nil {
				g.gauge.log.Follow(to, g.gauge.seen.Load().level, gaugeSite, trace.FreeExplicit, pressure.Host)
			}
		}
		o := c.owned.Load()
		if o == nil {
			return
		}
		for _, a := range o.all() {
			a.record(to, trace.BeforeLabel)
		}
		var owners []observe.Owners
		for _, k := range *o.kinds.Load() {
			owners = append(owners, k.tracked())
		}
		to.Live(owners, o.space)
	})
}

// record calls f with the recorder, if there is one. The caller holds mu.
func (c *Collector) record(f func(*observe.Recorder)) {
	if c.observed.recorder == nil {
		return
	}
	defer c.contain(func(err error) {
		c.setRecorder(nil)
		c.fail(fmt.Errorf("gc: the recorder %w", err))
	})
	f(c.observed.recorder)
}

// recordNow is record for a caller that does not hold mu. It costs a load if there is no recorder.
func (c *Collector) recordNow(f func(*observe.Recorder)) {
	if c.recording.Load() {
		c.mu.Lock()
		defer c.unlock()
		c.record(f)
	}
}

// record records the present level of a.
func (a *account) record(to *observe.Recorder, site string) {
	bytes, _ := a.read()
	a.log.Follow(to, bytes, site, trace.FreeExplicit, a.o.space)
}

// siteOf returns the caller's stack outside this package, as a recording has it.
func siteOf() string { return observe.Site(packagePath) }

var packagePath = reflect.TypeFor[Collector]().PkgPath() + "."
