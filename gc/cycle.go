package gc

import (
	"runtime"
	"runtime/metrics"
	"time"
	"weak"
)

// A run is a cycle under way, or finished.
type run struct {
	trigger Trigger
	action  Action
	reason  string // the policy's; empty if it was not asked
	gate    *Gate  // whose pressure asked for it; nil if nothing is watched
	begin   time.Duration
	held    time.Duration // since when a caller is held; noOne if none is. Guarded by mu
	swept   time.Duration // how much of it went by before its mark began
	task    task          // in a trace of the program
	cycle   Cycle         // once done is closed
	done    chan struct{}
}

const noOne = time.Duration(1<<63 - 1)

func newRun(trigger Trigger, d Decision, gate *Gate) *run {
	return &run{
		trigger: trigger, action: d.Action, reason: d.Reason, gate: gate, held: noOne,
		task: newTask(trigger, d.Reason), done: make(chan struct{}),
	}
}

// Collect runs a cycle that begins after the call, and returns it once
// everything it has found dead has been given back. Calls that come in
// meanwhile share the next cycle. The ladder of a pool calls it with
// [TriggerRefusal]. It returns the zero Cycle if the collector is closed.
func (c *Collector) Collect(trigger Trigger) Cycle {
	if trigger == TriggerRefusal {
		c.logRefusal()
	}
	since := c.Now()
	c.mu.Lock()
	r := c.current
	c.mu.Unlock()
	if r != nil { // began before the call
		c.holdFrom(r, since)
		since = c.Now()
	}
	c.mu.Lock()
	r = c.current
	if r == nil {
		top, _ := c.mostPressed()
		r = c.begin(trigger, Decision{Action: Block}, top, since)
	}
	c.mu.Unlock()
	if r == nil {
		return Cycle{}
	}
	c.holdFrom(r, since)
	return r.cycle
}

// Wait waits until the cycle under way has settled, and reports whether there
// was one. An allocation that does not fit waits so before it asks for a
// cycle of its own.
func (c *Collector) Wait() bool {
	c.mu.Lock()
	r := c.current
	c.mu.Unlock()
	if r == nil {
		return false
	}
	c.hold(r)
	return true
}

// Running reports whether a cycle that the collector has asked for is under way.
func (c *Collector) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil
}

// obey starts what d asks for; it returns the cycle that the caller is to
// wait for if d says Block. The caller holds mu.
func (c *Collector) obey(d Decision, top *Gate, now time.Duration) *run {
	if d.Action == Skip {
		return nil
	}
	if c.current != nil {
		return c.current // one at a time
	}
	return c.begin(TriggerPolicy, d, top, now)
}

// begin starts a cycle. There is none under way. The caller holds mu.
func (c *Collector) begin(trigger Trigger, d Decision, gate *Gate, now time.Duration) *run {
	if c.closed {
		return nil
	}
	r := newRun(trigger, d, gate)
	r.begin = now
	c.current = r
	c.goroutine.Go(func() { c.drive(r) })
	return r
}

// hold keeps the caller until r has settled, and counts that as exposed pause.
func (c *Collector) hold(r *run) { c.holdFrom(r, c.Now()) }

func (c *Collector) holdFrom(r *run, since time.Duration) {
	select {
	case <-r.done:
		return
	default:
	}
	c.mu.Lock()
	r.held = min(r.held, since)
	c.mu.Unlock()
	r.task.region("hold", func() { <-r.done })
	pause := c.Now() - since
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.pause(pause)
	if c.recorder != nil {
		c.recorder.pause(since, pause, r.gate)
	}
}

// drive is the goroutine of a cycle.
func (c *Collector) drive(r *run) {
	c.logBegin(r)
	freed, objects := c.settle(r)
	c.ended(r, freed, objects)
}

// settle runs the cycle and gives back what it finds dead.
func (c *Collector) settle(r *run) (freed int64, objects int) {
	c.settling.Lock()
	defer c.settling.Unlock()
	for _, reg := range c.registries {
		reg.promoteAll()
	}
	r.task.region("mark", func() { r.swept = c.mark() })
	r.task.region("settle", func() { objects = c.walk() })
	return c.finish(r, objects), objects
}

// ended tells those who look on that r is over. The caller holds no lock.
func (c *Collector) ended(r *run, freed int64, objects int) {
	r.task.end(freed)
	c.logEnd(r, freed, objects)
}

// mark runs Go's collector and returns as soon as it has found what is dead,
// which is at the end of the mark. It does not wait for runtime.GC to return:
// that is after the sweep, which on busy cores comes seconds later. A cycle that
// follows another at once first sweeps what that one left: for at least as long
// as mark returns.
func (c *Collector) mark() (swept time.Duration) {
	var look stage
	before := look.read()
	probe := newProbe()
	returned := make(chan struct{})
	c.goroutine.Go(func() {
		defer close(returned)
		runtime.GC()
	})
	began := time.Now()
	nap := time.NewTimer(0)
	var last time.Duration
	for stops := before.stops; ; {
		now := look.read()
		// The first cycle to end may have begun before the probe was dropped.
		// Such a cycle keeps the probe; the one after it does not.
		if n := now.cycles - before.cycles; n >= 2 || n == 1 && probe.Value() == nil {
			return swept
		}
		if now.stops != stops { // since the last look: for a mark to begin, or for that of an older cycle to end
			stops, swept = now.stops, last
		}
		last = time.Since(began)
		nap.Reset(min(max(last/8, 200*time.Microsecond), time.Millisecond))
		select {
		case <-returned:
			return swept
		case <-nap.C:
		}
	}
}

// A progress says how far the runtime's collector has come.
type progress struct {
	cycles uint64 // whose mark has ended
	stops  uint64 // of the world, for a mark to begin or to end
}

// A stage reads the progress of the runtime's collector. The zero value is ready to use.
type stage struct{ samples [2]metrics.Sample }

func (s *stage) read() (p progress) {
	s.samples[0].Name, s.samples[1].Name = cyclesMetric, stopsMetric
	metrics.Read(s.samples[:])
	for _, n := range s.samples[1].Value.Float64Histogram().Counts {
		p.stops += n
	}
	p.cycles = s.samples[0].Value.Uint64()
	return p
}

// newProbe returns a weak pointer to an object that is garbage from the start.
//
//go:noinline
func newProbe() weak.Pointer[Cycle] { return weak.Make(new(Cycle)) }

// walk gives back what belongs to the dead and returns the number of objects.
// The caller holds settling.
func (c *Collector) walk() (objects int) {
	for _, reg := range c.registries {
		objects += reg.walk(c.giveFailed)
	}
	return objects
}

// finish settles a cycle: it takes stock, tells the policy, and lets go of
// those who wait. It returns the bytes that the cycle freed, of all spaces. The
// caller holds settling.
func (c *Collector) finish(r *run, objects int) (total int64) {
	tracked := 0
	for _, reg := range c.registries {
		tracked += reg.Len()
	}
	c.mu.Lock()
	c.settled.Add(1)
	end := c.Now()
	c.meter.read(end)
	c.seen, c.tracked = c.meter.total, tracked
	cycle := Cycle{Start: r.begin, Trigger: r.trigger, Action: r.action}
	if r.trigger == TriggerNatural {
		cycle.Duration = min(end, c.cost) // nobody timed it
		cycle.Start = end - cycle.Duration
	} else {
		cycle.Duration = end - r.begin
		cycle.Exposed = max(0, end-max(r.held, r.begin))
		c.meter.learn(cycle.Duration-r.swept, tracked+objects)
	}
	c.cost = c.meter.cost(tracked)
	for _, g := range c.gates {
		s, freed := g.rebase(), g.yield.Swap(0)
		if g == r.gate {
			cycle.Freed, cycle.LiveAfter, cycle.Limit = freed, s.Live, s.Limit
		}
		total += freed
	}
	r.cycle = cycle
	c.stats.cycle(cycle, total, objects)
	c.journal.cycles.put(cycle)
	c.tellPolicy(cycle)
	c.wakeUp()
	if c.current == r {
		c.current = nil
	}
	if c.recorder != nil {
		c.recorder.cycle(cycle, r.gate)
	}
	close(r.done)
	c.mu.Unlock()
	return total
}

// Reap gives back what a cycle that the runtime ran by itself has found dead,
// if there was one since the last cycle, and returns how many bytes that were.
// It does not collect, and does nothing while a cycle is under way.
func (c *Collector) Reap() int64 {
	if c.Running() {
		return 0
	}
	r, freed, objects := c.reap()
	if r != nil {
		c.ended(r, freed, objects)
	}
	return freed
}

func (c *Collector) reap() (r *run, freed int64, objects int) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.mu.Lock()
	c.meter.read(c.Now())
	ended := c.current == nil && !c.closed && c.meter.total != c.seen
	top, _ := c.mostPressed()
	c.mu.Unlock()
	if !ended {
		return nil, 0, 0
	}
	r = newRun(TriggerNatural, Decision{Action: Overlap}, top)
	r.task.region("settle", func() { objects = c.walk() })
	for _, reg := range c.registries {
		reg.promoteAll() // the next such cycle finds them
	}
	return r, c.finish(r, objects), objects
}

// A sentinel is garbage from the start: its cleanup runs after some cycle.
type sentinel struct{ _ [4]*sentinel }

// arm sets up the next sentinel. The caller holds mu, or is New.
func (c *Collector) arm() {
	c.sentinel = runtime.AddCleanup(new(sentinel), (*Collector).awaken, c)
}

// awaken is the sentinel's cleanup.
func (c *Collector) awaken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.arm()
	c.readMeter(c.Now())
}

// watchRuntime is the goroutine that settles the runtime's own cycles.
func (c *Collector) watchRuntime() {
	for range c.poke {
		c.Reap()
	}
}
