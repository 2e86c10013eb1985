package gc

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/trace"
)

// What Config.Log is told. Cycles, refusals and policies are of debug level, what
// the program should mend is a warning, and failures are errors.
const (
	logBegan    = "eagergc: cycle began"
	logEnded    = "eagergc: cycle ended"
	logRefused  = "eagergc: allocation refused"
	logSwitched = "eagergc: policy switched"
	logPanicked = "eagergc: failure contained"
	logOver     = "eagergc: over the limit, with nothing to free: more is reachable than the limit allows"
	logSurvives = "eagergc: many cycles have not found this memory dead: a cache, a leak, or an owner that its own release keeps alive"
	logLimit    = "eagergc: the limit is above what this machine or container has"
)

// A saying waits for the log.
type saying struct {
	level slog.Level
	text  string
	attrs []slog.Attr
	aloud bool // goes to slog.Default where there is no log
}

// unlock unlocks mu, and logs what was to be said while it was held.
func (c *Collector) unlock() {
	all := c.unsaid
	c.unsaid = nil
	c.mu.Unlock()
	for _, s := range all {
		c.say(s)
	}
}

// say logs s. The caller does not hold mu.
func (c *Collector) say(s saying) {
	log := c.log
	if log == nil && s.aloud {
		log = slog.Default()
	}
	if log == nil || !log.Enabled(context.Background(), s.level) {
		return
	}
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

// logs reports whether a debug event would reach anybody.
func (c *Collector) logs() bool {
	return c.log != nil && c.log.Enabled(context.Background(), slog.LevelDebug)
}

func (c *Collector) debug(text string, attrs ...slog.Attr) {
	c.say(saying{level: slog.LevelDebug, text: text, attrs: attrs})
}

func (c *Collector) logBegin(r *collection) {
	if c.logs() {
		c.debug(logBegan, append(r.attrs(), r.gate.attrs()...)...)
	}
}

func (c *Collector) logEnd(r *collection, freed int64, objects int) {
	if c.logs() {
		c.debug(logEnded, append(r.attrs(),
			slog.Int64("freed_bytes", freed), slog.Int("objects", objects), slog.Int64("live_after_bytes", r.cycle.LiveAfter),
			slog.Duration("duration", r.cycle.Duration), slog.Duration("exposed", r.cycle.Exposed))...)
	}
}

func (c *Collector) logRefusal() {
	if c.logs() {
		c.debug(logRefused, c.topGate().attrs()...)
	}
}

func (c *Collector) topGate() *Gate {
	c.mu.Lock()
	defer c.unlock()
	top, _ := c.mostPressed(c.Now())
	return top
}

func (c *Collector) logSwitch(from, to string) {
	if c.logs() {
		c.debug(logSwitched, slog.String("from", from), slog.String("to", to))
	}
}

// noteOver counts the times that a cycle has left the memory of Own above its
// limit, from a time when it was not. The caller holds mu.
func (c *Collector) noteOver(g *Gate, cycle Cycle) {
	if !g.isSoft() || cycle.Limit <= 0 {
		return
	}
	over := cycle.LiveAfter > cycle.Limit
	if over && !c.stats.OverLimit {
		c.stats.Over++
		c.unsaid = append(c.unsaid, saying{slog.LevelWarn, logOver, []slog.Attr{
			slog.Int64("live_bytes", cycle.LiveAfter), slog.Int64("limit_bytes", cycle.Limit), slog.Int64("freed_bytes", cycle.Freed),
		}, true})
	}
	c.stats.OverLimit = over
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

func newTask(trigger Trigger, reason string) task {
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
