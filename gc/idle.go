package gc

import "github.com/eagergc/eagergc/gc/policy"

import "time"

// defaultIdle is the zero value of Config.Idle.
const defaultIdle = time.Second

// An idler checks whether the program has gone quiet: whether nothing was counted
// between two checks. Then one cycle gives back what the program has left behind;
// after that there is no check until something is tracked again.
type idler struct {
	every time.Duration // between two checks; 0 = never
	timer *time.Timer
	last  int64 // gross bytes at the last check
	done  int64 // gross bytes at the last cycle for a quiet program
}

// wakeIdler starts to check. The caller holds mu.
func (c *Collector) wakeIdler() {
	switch i := &c.idler; {
	case i.every <= 0 || c.closed:
	case i.timer == nil:
		i.timer = time.AfterFunc(i.every, c.checkQuiet)
	default:
		i.timer.Reset(i.every)
	}
}

// checkQuiet is what the timer calls.
func (c *Collector) checkQuiet() {
	c.mu.Lock()
	defer c.unlock()
	if c.closed {
		return
	}
	c.seeAll(c.Now())
	gross, live := c.gross()
	quiet := gross == c.idler.last
	c.idler.last = gross
	if quiet && (c.policy.String() == "never" || live == 0 || gross == c.idler.done) {
		c.awake.Store(false) // whoever tracks something next wakes it
		return
	}
	c.idler.timer.Reset(c.idler.every)
	if now := c.Now(); quiet && c.current.Load() == nil && c.throttle.mayBegin(now) {
		c.idler.done = gross
		top, _ := c.mostPressed(nil, 0)
		c.begin(policy.TriggerExplicit, policy.Decision{Action: policy.Overlap, Reason: "idle"}, top, now)
	}
}

// askLater asks the policy about g after a wait, and then after twice as long each time, until the next cycle or
// until the idler checks. The last cycle has freed something: what dies between two allocations shows to nobody.
func (c *Collector) askLater(g *Gate, wait time.Duration) {
	settled := c.settled.Load()
	time.AfterFunc(wait, func() {
		if c.settled.Load() != settled || c.running() {
			return
		}
		if live := g.source.Sample().Live; c.throttle.mayAsk(c.Now(), g, live) {
			g.rose(live, 0)
		}
		if wait < defaultIdle {
			c.askLater(g, 2*wait)
		}
	})
}

// gross returns the bytes that sources have handed out so far, and those that are live.
// Gauges do not count: they ask by themselves.
func (c *Collector) gross() (gross, live int64) {
	for _, g := range c.gates {
		if g.gauge() == nil {
			gross += g.source.Allocated()
			live += g.source.Sample().Live
		}
	}
	return gross, live
}
