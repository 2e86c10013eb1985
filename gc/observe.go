package gc

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/trace"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// What Config.Log is told. Cycles, refusals and policies are of debug level, what
// the program should mend is a warning, and failures are errors.
const (
	logBegan    = "eagergc: cycle began"
	logEnded    = "eagergc: cycle ended"
	logRefused  = "eagergc: allocation refused"
	logSwitched = "eagergc: policy switched"
	logPanicked = "eagergc: failure contained"
	logSurvives = "eagergc: many cycles have not found this memory dead, and it has doubled: a cache, a leak, or an owner that its own release keeps alive"
	logCaptured = "eagergc: a release given to Own seems to have captured its owner, which would keep that alive for ever: write a function that takes what it needs as its argument"
	logLimit    = "eagergc: the limit is above what this machine or container has"
)

// A logEntry waits for the log.
type logEntry struct {
	level slog.Level
	text  string
	attrs []slog.Attr
	aloud bool // goes to slog.Default where there is no log
}

// unlock unlocks mu, and logs what was to be said while it was held.
func (c *Collector) unlock() {
	all := c.pendingLog
	c.pendingLog = nil
	c.mu.Unlock()
	for _, s := range all {
		c.say(s)
	}
}

// flush logs what was to be said. The caller holds no lock.
func (c *Collector) flush() {
	c.mu.Lock()
	c.unlock()
}

// say logs s. The caller does not hold mu.
func (c *Collector) say(s logEntry) {
	log := c.log
	if log == nil && s.aloud {
		log = slog.Default()
	}
	if log == nil || !log.Enabled(context.Background(), s.level) {
		return
	}
	c.mu.Lock()
	if c.silent {
		c.mu.Unlock()
		return
	}
	c.logging.Add(1)
	c.mu.Unlock()
	defer c.logging.Done()
	if !c.strict {
		defer func() {
			if e := recover(); e != nil { // there is nobody else to tell
				c.mu.Lock()
				defer c.mu.Unlock()
				c.stats.Failures++
				if c.err == nil {
					c.err = fmt.Errorf("gc: the log panicked: %v", e)
				}
			}
		}()
	}
	log.LogAttrs(context.Background(), s.level, s.text, s.attrs...)
}

// debug logs a debug event. Its attributes are made only if it reaches anybody.
func (c *Collector) debug(text string, attrs func() []slog.Attr) {
	if c.log != nil && c.log.Enabled(context.Background(), slog.LevelDebug) {
		c.say(logEntry{level: slog.LevelDebug, text: text, attrs: attrs()})
	}
}

// topAttrs says how full the source under most pressure is.
func (c *Collector) topAttrs() []slog.Attr {
	c.mu.Lock()
	top, _ := c.mostPressed(nil, 0)
	c.unlock()
	return top.attrs()
}

// A busyLog says why cycles take much of the processor time, where they do: a policy's share of the processor is what
// cycles may take at least, not at most, and a price of memory asks for as many as it is worth.
type busyLog struct {
	from      time.Duration // when the window began
	processor time.Duration // that cycles had taken by then
	cycles    uint64        // that there had been
	told      float64       // the share when it was last logged
	exposed   time.Duration // that callers had been held by then
	toldHeld  float64       // the share when that was last logged
}

const (
	logBusy    = "eagergc: cycles take much processor time. To have fewer: a higher limit, a lower price of memory or share of the processor (price= and overhead= of host), a smaller Go heap, or Close where much is allocated. Caps.Cycles is what they may take at most"
	logHeld    = "eagergc: callers are held for much of the time: what is free fills up sooner than a cycle ends. Raise the limit, keep fewer pointers in the Go heap, which makes cycles shorter, or release by hand what is large and short-lived"
	busyWindow = time.Minute
	busyShare  = 0.03
	heldShare  = 0.1
)

// noteBusy logs that, and that callers are held, once a minute at most, and again only for twice the share. The caller holds mu.
func (c *Collector) noteBusy(now time.Duration) {
	b := &c.busy
	window := now - b.from
	if window < busyWindow {
		return
	}
	cycles := uint64(0)
	for _, n := range c.stats.Cycles {
		cycles += n
	}
	share := float64(c.stats.Processor-b.processor) / float64(window) / float64(runtime.GOMAXPROCS(0))
	if share >= max(busyShare, 2*b.told) {
		b.told = share
		c.pendingLog = append(c.pendingLog, logEntry{slog.LevelInfo, logBusy, []slog.Attr{
			slog.Float64("processor_share", share), slog.Float64("cycles_per_second", float64(cycles-b.cycles)/window.Seconds()),
			slog.String("policy", c.policy.String()), slog.String("last_reason", c.journal.lastReason()),
			slog.Float64("at_most", c.throttle.Cycles), slog.Duration("cycle", c.expected.Cost),
		}, true})
	}
	if held := float64(c.stats.Exposed-b.exposed) / float64(window); held >= max(heldShare, 2*b.toldHeld) {
		b.toldHeld = held
		c.pendingLog = append(c.pendingLog, logEntry{slog.LevelWarn, logHeld, []slog.Attr{
			slog.Float64("held_share", held), slog.Uint64("cycles", cycles-b.cycles), slog.Duration("cycle", c.expected.Cost),
			slog.Int64("live_after_bytes", c.stats.Last.LiveAfter), slog.Int64("limit_bytes", c.stats.Last.Limit),
		}, true})
	}
	b.from, b.processor, b.cycles, b.exposed = now, c.stats.Processor, cycles, c.stats.Exposed
}

// An overLimit is the state of a limit of Own that cycles do not keep.
type overLimit struct {
	now  bool
	told [3]bool       // by cause
	last time.Duration // when a cycle last left more than the limit
}

// Why a cycle leaves more than the limit, and what to do.
const (
	logOver      = "eagergc: over the limit, with nothing to free: more is reachable than the limit allows. Raise the limit, or hold less"
	logOverLate  = "eagergc: over the limit: more was added while the cycle ran than there was room for. Raise the limit to enough_bytes, or make the Go heap smaller, which makes cycles shorter"
	logOverStuck = "eagergc: over the limit: what cycles have found dead is not given back yet. Releases or finalizers take long, or do not return"
)

// noteOver counts the times that a cycle has left the memory of Own above its
// limit, from a time when it was not, and has the cause logged: dying bytes were found dead and
// are not given back, and so many were added while it ran. The caller holds mu.
func (c *Collector) noteOver(cycle policy.Cycle, dying, added int64) {
	o := &c.over
	kept := cycle.LiveAfter - dying - added
	cause, text := 0, logOver
	switch {
	case cycle.LiveAfter <= cycle.Limit:
		o.now = false
		if cycle.Start > o.last+busyWindow { // else it goes up and down about the limit
			o.told = [3]bool{}
		}
		return
	case cycle.LiveAfter-dying <= cycle.Limit:
		cause, text = 1, logOverStuck
	case kept <= cycle.Limit:
		cause, text = 2, logOverLate
	}
	if o.last = cycle.Start; !o.now {
		o.now = true
		c.stats.Over++
	}
	if o.told[cause] {
		return
	}
	o.told[cause] = true
	c.pendingLog = append(c.pendingLog, logEntry{slog.LevelWarn, text, []slog.Attr{
		slog.Int64("live_bytes", cycle.LiveAfter), slog.Int64("limit_bytes", cycle.Limit), slog.Int64("freed_bytes", cycle.Freed),
		slog.Int64("not_given_back_bytes", dying), slog.Int64("added_bytes", added), slog.Duration("cycle", cycle.Duration),
		slog.Int64("enough_bytes", cycle.LiveAfter-dying+added),
	}, true})
}

func (r *collection) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("trigger", r.trigger.String()), slog.String("action", r.action.String()), slog.String("reason", r.reason),
	}
}

// attrs says how full the gate's source is.
func (g *Gate) attrs() []slog.Attr {
	if g == nil {
		return nil
	}
	s := g.source.Sample()
	return []slog.Attr{
		slog.String("space", s.Space.String()), slog.Int64("live_bytes", s.Live), slog.Int64("limit_bytes", s.Limit),
	}
}

// traceName goes before what this package writes to a trace of the program
// (package runtime/trace).
const traceName = "eagergc "

// A task is a cycle in a trace of the program. The zero value is off: the
// program was not being traced when the cycle began.
type task struct {
	ctx  context.Context
	task *trace.Task
}

func newTask(trigger policy.Trigger, reason string) task {
	if !trace.IsEnabled() {
		return task{}
	}
	ctx, t := trace.NewTask(context.Background(), traceName+"cycle")
	trace.Logf(ctx, "trigger", "%v %s", trigger, reason)
	return task{ctx, t}
}

// region calls f, as a part of the task.
func (t task) region(name string, f func()) {
	if t.task == nil {
		f()
		return
	}
	trace.WithRegion(t.ctx, traceName+name, f)
}

func (t task) end(freed int64) {
	if t.task != nil {
		trace.Logf(t.ctx, "freed", "%d", freed)
		t.task.End()
	}
}

// traced returns wait as a region of a trace of the program. It belongs to no
// cycle.
func (p *WaitPlace) traced(wait func() error) func() error {
	return func() (err error) {
		ctx := context.Background()
		trace.WithRegion(ctx, traceName+"wait", func() {
			trace.Log(ctx, "place", p.Name)
			err = wait()
		})
		return err
	}
}
