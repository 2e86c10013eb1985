package gc

import "time"

// A collection is a cycle under way, or one that has ended.
type collection struct {
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

func newCollection(trigger Trigger, d Decision, gate *Gate) *collection {
	return &collection{
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
func (c *Collector) obey(d Decision, top *Gate, now time.Duration) *collection {
	if d.Action == Skip {
		return nil
	}
	if c.current != nil {
		return c.current // one at a time
	}
	return c.begin(TriggerPolicy, d, top, now)
}

// begin starts a cycle. There is none under way. The caller holds mu.
func (c *Collector) begin(trigger Trigger, d Decision, gate *Gate, now time.Duration) *collection {
	if c.closed {
		return nil
	}
	r := newCollection(trigger, d, gate)
	r.begin = now
	c.current = r
	c.goroutine.Go(func() { c.drive(r) })
	return r
}

// hold keeps the caller until r has settled, and counts that as exposed pause.
func (c *Collector) hold(r *collection) { c.holdFrom(r, c.Now()) }

func (c *Collector) holdFrom(r *collection, since time.Duration) {
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
func (c *Collector) drive(r *collection) {
	c.logBegin(r)
	freed, objects := c.settle(r)
	c.ended(r, freed, objects)
}

// settle runs the cycle and gives back what it finds dead.
func (c *Collector) settle(r *collection) (freed int64, objects int) {
	c.settling.Lock()
	defer c.settling.Unlock()
	for _, reg := range c.registries {
		reg.promoteAll()
	}
	r.task.region("mark", func() { r.swept = c.engine.mark() })
	r.task.region("settle", func() { objects = c.walk() })
	return c.finish(r, objects), objects
}

// ended tells those who look on that r is over. The caller holds no lock.
func (c *Collector) ended(r *collection, freed int64, objects int) {
	r.task.end(freed)
	c.logEnd(r, freed, objects)
}

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
func (c *Collector) finish(r *collection, objects int) (total int64) {
	tracked := 0
	for _, reg := range c.registries {
		tracked += reg.Len()
	}
	defer func() { c.waited = 0 }()
	c.mu.Lock()
	c.settled.Add(1)
	end := c.Now()
	c.tracked = tracked
	c.read(end)
	c.seen = c.runtime.cycles
	cycle := Cycle{Start: r.begin, Trigger: r.trigger, Action: r.action}
	if r.trigger == TriggerNatural {
		cycle.Duration = min(end, c.cost) // nobody timed it
		cycle.Start = end - cycle.Duration
	} else {
		cycle.Duration = end - r.begin - c.waited
		cycle.Exposed = max(0, end-max(r.held, r.begin))
		c.costs.learn(cycle.Duration-r.swept, c.runtime.scan, tracked+objects)
		c.cost = c.costs.cost(c.runtime.scan, tracked)
	}
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

func (c *Collector) reap() (r *collection, freed int64, objects int) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.mu.Lock()
	c.read(c.Now())
	ended := c.current == nil && !c.closed && c.runtime.cycles != c.seen
	top, _ := c.mostPressed()
	c.mu.Unlock()
	if !ended {
		return nil, 0, 0
	}
	r = newCollection(TriggerNatural, Decision{Action: Overlap}, top)
	r.task.region("settle", func() { objects = c.walk() })
	for _, reg := range c.registries {
		reg.promoteAll() // the next such cycle finds them
	}
	return r, c.finish(r, objects), objects
}

// cycleEnded is told of the end of a cycle by the engine.
func (c *Collector) cycleEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookForCycles(c.Now())
}

// settleNatural is the goroutine that settles the runtime's own cycles.
func (c *Collector) settleNatural() {
	for range c.poke {
		c.Reap()
	}
}
