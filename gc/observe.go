package gc

import (
	"context"
	"log/slog"
	"runtime/trace"
)

// What Config.Log is told. All but panics are of debug level.
const (
	logBegan    = "eagergc: cycle began"
	logEnded    = "eagergc: cycle ended"
	logRefused  = "eagergc: allocation refused"
	logSwitched = "eagergc: policy switched"
	logPanicked = "eagergc: panic contained"
)

// logs reports whether a debug event would reach anybody.
func (c *Collector) logs() bool {
	return c.log != nil && c.log.Enabled(context.Background(), slog.LevelDebug)
}

func (c *Collector) debug(text string, attrs ...slog.Attr) {
	c.log.LogAttrs(context.Background(), slog.LevelDebug, text, attrs...)
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
		c.mu.Lock()
		top, _ := c.mostPressed()
		c.mu.Unlock()
		c.debug(logRefused, top.attrs()...)
	}
}

func (c *Collector) logSwitch(from, to string) {
	if c.logs() {
		c.debug(logSwitched, slog.String("from", from), slog.String("to", to))
	}
}

// logFailure is called under mu: a policy that has panicked is off, so that
// this is rare.
func (c *Collector) logFailure(err error) {
	if c.log != nil {
		c.log.LogAttrs(context.Background(), slog.LevelError, logPanicked, slog.Any("error", err))
	}
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
