package gc

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Lines of the log. Cycles and policies have debug level. Mistakes that the program should mend are
// warnings, and failures are errors.
const (
	logBegan    = "eagergc: cycle began"
	logEnded    = "eagergc: cycle ended"
	logSwitched = "eagergc: policy switched"
	logPanicked = "eagergc: failure contained"
	logSurvives = "eagergc: many cycles have not found this memory dead, and it has doubled: a cache, a leak, or an owner that its own release keeps alive"
	logCaptured = "eagergc: a release given to Own seems to have captured its owner, which would keep that alive for ever: write a function that takes what it needs as its argument"
	logLimit    = "eagergc: the limit is above what this machine or container has"
)

// observers receive the decisions and cycles of a collector. No decision depends on them. The
// collector's mu guards them.
type observers struct {
	stats    Stats
	work     *observe.Series[Work]
	journal  journal
	recorder *observe.Recorder // nil = off
	recorded *observe.Recorder // the last one
	over     observe.OverLimit
	err      error
	unsaid   []observe.Line // to log once mu is released
}

// decided records the governor's last answer. The caller holds mu.
func (c *Collector) decided(now time.Duration) {
	c.publish()
	if c.governor.Top == nil || c.life.closed {
		return
	}
	p, d := &c.governor.Asked, &c.governor.Answer
	c.noteLevels(now)
	c.observed.stats.Decisions[d.Action]++
	if d.Reason == governor.CappedReason {
		c.observed.stats.Capped++
	}
	c.observed.journal.decided(p, d)
	c.record(func(to *observe.Recorder) { to.Decision(p, d) })
}

// ended records a cycle that ended at a time, and freed bytes and objects in all spaces. The caller
// holds mu.
func (c *Collector) ended(r *collection, end, processor time.Duration, freed int64, objects int) {
	c.noteLevels(end)
	natural := r.trigger == policy.TriggerNatural
	w, s := Work{Freed: freed}, &c.observed.stats
	w.Cycles[r.trigger] = 1
	if !natural { // the duration of a natural one is a guess, and its processor time is unknown
		w.Busy, w.Processor = r.cycle.Duration, processor
	}
	c.observed.work.Add(end, w)
	c.observed.journal.cycles.Put(r.cycle)
	s.Cycles[r.trigger]++
	s.Freed += w.Freed
	s.Objects += uint64(objects)
	s.Busy += w.Busy
	s.Processor += w.Processor
	s.Last = r.cycle
	if c.life.closed {
		return
	}
	if r.gate != nil && r.gate.memory.Soft && r.cycle.Limit > 0 && !natural { // the begin of a natural one is unknown
		added := r.gate.memory.Allocated - r.allocated
		c.observed.unsaid = append(c.observed.unsaid, c.observed.over.Note(r.cycle, c.releases.Dying(&r.gate.returns), added)...)
	}
	c.record(func(to *observe.Recorder) {
		to.Cycle(&r.cycle, spaceOf(r.gate))
		to.Machine(end, spaceOf(r.gate), c.machine())
	})
}

// paused records that r has held a caller until now.
func (c *Collector) paused(r *collection, since time.Duration) {
	now := c.Now()
	c.mu.Lock()
	defer c.unlock()
	c.observed.stats.pause(now - since)
	c.observed.work.Add(now, Work{Held: now - since, Longest: now - since})
	c.record(func(to *observe.Recorder) { to.Pause(since, now-since, spaceOf(r.gate), PauseLabel) })
}

// noteLevels puts the last readings of all sources on the timeline. The caller holds mu.
func (c *Collector) noteLevels(now time.Duration) {
	for _, g := range c.gates {
		s := &g.last
		g.past.Add(now, Level{First: s.Live, Last: s.Live, Least: s.Live, Most: s.Live, Reserved: s.Reserved, Limit: s.Limit})
	}
}

// fail counts a failure and queues it for the log. The first one becomes Err. The caller holds mu.
func (c *Collector) fail(err error) {
	c.observed.stats.Failures++
	first := c.observed.err == nil
	c.observed.err = cmp.Or(c.observed.err, err)
	c.observed.unsaid = append(c.observed.unsaid, observe.Line{Level: slog.LevelError, Text: logPanicked, Attrs: []slog.Attr{slog.Any("error", err)}, Aloud: first})
}

// failed counts a failure and logs it. The caller holds no lock.
func (c *Collector) failed(err error) {
	c.mu.Lock()
	defer c.unlock()
	c.fail(err)
}

// logFailed counts a failure of the log, which cannot be logged.
func (c *Collector) logFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observed.stats.Failures++
	c.observed.err = cmp.Or(c.observed.err, err)
}

// unlock unlocks mu, and writes the lines that were queued while it was held.
func (c *Collector) unlock() {
	all := c.observed.unsaid
	c.observed.unsaid = nil
	c.mu.Unlock()
	for _, line := range all {
		c.log.Say(line)
	}
}

// logSurvivors warns of sites whose memory is large, survives cycles and grows. The caller holds no
// lock.
func (c *Collector) logSurvivors() {
	for _, v := range c.samples.Growing(c.Now(), c.settled.Load(), func() int64 { return c.own().live.Load() }) {
		c.log.Say(observe.Line{Level: slog.LevelWarn, Text: logSurvives, Attrs: []slog.Attr{
			slog.String("site", pressure.SiteLine(v.Site)), slog.String("held", pressure.Bytes(v.Bytes).String()), slog.Uint64("cycles", v.Cycles),
		}, Aloud: true})
	}
}

func (r *collection) attrs() []slog.Attr {
	all := []slog.Attr{
		slog.String("trigger", r.trigger.String()), slog.String("action", r.action.String()), slog.String("reason", r.reason),
	}
	if r.gate != nil {
		s := r.gate.source.Sample()
		all = append(all, slog.String("space", s.Space.String()), slog.Int64("live_bytes", s.Live), slog.Int64("limit_bytes", s.Limit))
	}
	return all
}
