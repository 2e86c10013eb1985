package gc

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Collector runs Go's collector for memory that Go's collector does not see.
// It watches every [Source], asks a [Policy] before allocations and waits, runs
// the cycles that the policy wants, and gives back what they find dead in each
// [WeakRegistry]. It notices the cycles that the runtime runs by itself, too. All
// methods are safe for concurrent use. Make one with [New].
type Collector struct {
	start   time.Time
	engine  engine
	noPlace WaitPlace
	own     func() *ownership // made at the first call
	log     *slog.Logger      // nil = off

	// settling is held from before a cycle's mark to after its walk, and for
	// any other walk. It is taken before mu.
	settling   sync.Mutex
	waited     time.Duration // for finalizers and cleanups, in the walk under way; guarded by settling
	registries []walker

	settled atomic.Uint64 // number of cycles that have; changed under mu

	mu        sync.Mutex // of all that follows; held for no longer than a Decide
	policy    Policy
	recorder  *recorder
	gates     []*Gate
	runtime   reading       // the last one
	readAt    time.Duration // when that was
	first     uint64        // cycles of the process when the collector was made
	costs     costModel
	cost      time.Duration // of a cycle started now
	current   *collection   // the cycle under way
	seen      uint64        // cycles of the process that have been settled
	stats     Stats
	journal   journal
	err       error
	closed    bool
	stopped   chan struct{} // closed with it
	tracked   int
	poke      chan struct{} // a cycle may have ended by itself
	goroutine sync.WaitGroup
}

// A walker is a WeakRegistry[W] of any W.
type walker interface {
	promoteAll()
	walk(failed func(any)) (objects int)
	Len() int
}

// Config says how a collector works. The zero value is usable. Neither Recorder
// nor the handler of Log may call the collector.
type Config struct {
	Policy   Policy         // nil: DefaultPolicy; $EAGERGC_POLICY goes before both
	Recorder trace.Sink     // told of decisions, waits and cycles; nil = off
	Log      *slog.Logger   // told of cycles, refusals and new policies (debug level) and of panics (error level); nil = off
	Space    pressure.Space // of the memory given to Own
	Limit    int64          // budget of the memory given to Own, in bytes; 0 = none known
}

// DefaultPolicy is the text form of the policy of a collector that is given none.
const DefaultPolicy = "pacer"

// PolicyVariable is the environment variable that chooses the policy of every
// collector of a process by its text form, whatever its Config says. The word
// off leaves everything to the refusal ladder and to Go's own cycles.
const PolicyVariable = "EAGERGC_POLICY"

// New returns a running collector. The only error is a policy in the
// environment that [Parse] does not know. Close it when done.
func New(cfg Config) (*Collector, error) {
	policy, err := choosePolicy(cfg.Policy)
	if err != nil {
		return nil, err
	}
	return newOn(newGoRuntime(), cfg, policy), nil
}

// newOn makes a collector whose cycles e runs.
func newOn(e engine, cfg Config, policy Policy) *Collector {
	c := &Collector{
		start:  time.Now(),
		engine: e,
		log:    cfg.Log,
		policy: policy,
		costs:  newCostModel(),
		poke:   make(chan struct{}, 1),

		stopped: make(chan struct{}),
	}
	c.recorder = c.newRecorder(cfg.Recorder)
	c.own = sync.OnceValue(func() *ownership { return newOwnership(c, cfg) })
	c.read(0)
	c.first, c.seen = c.runtime.cycles, c.runtime.cycles
	e.watch(c.cycleEnded)
	c.goroutine.Go(c.settleNatural)
	return c
}

func choosePolicy(configured Policy) (Policy, error) {
	text, set := os.LookupEnv(PolicyVariable)
	switch {
	case set && text == "off":
		return new(Never), nil
	case set && text != "":
		spec, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("gc: environment variable %s: %w", PolicyVariable, err)
		}
		return spec.New(), nil
	case configured != nil:
		return configured, nil
	}
	return MustParse(DefaultPolicy).New(), nil
}

// Close stops the collector: it waits for the cycle under way and for the
// collector's goroutines, after which no memory is given back by a cycle and
// no policy is asked. What is still tracked is left to its owners. Closing
// twice is harmless.
func (c *Collector) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stopped)
		close(c.poke)
		for _, g := range c.gates {
			g.wake.Store(math.MaxInt64)
		}
	}
	c.mu.Unlock()
	c.goroutine.Wait()
	c.engine.close()
}

// Now returns the time since the collector was made: the clock of its points,
// cycles and events.
func (c *Collector) Now() time.Duration { return c.engine.now() }

// Start returns the wall clock of time 0.
func (c *Collector) Start() time.Time { return c.start }

// SetPolicy replaces the policy by p, which must be fresh. Nil is never.
func (c *Collector) SetPolicy(p Policy) {
	if p == nil {
		p = new(Never)
	}
	from, to := c.swapPolicy(p)
	c.logSwitch(from, to)
}

func (c *Collector) swapPolicy(p Policy) (from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to = c.policy.String(), p.String()
	c.policy = p
	c.wakeUp()
	return from, to
}

// Policy returns the text form of the policy in use.
func (c *Collector) Policy() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy.String()
}

// SetRecorder sends what happens from now on to r; nil stops that.
func (c *Collector) SetRecorder(r trace.Sink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorder = c.newRecorder(r)
}

// Err returns the first panic of a policy or of a function that gives memory
// back, as an error; nil if there was none. After a panic in its policy a
// collector goes on with never.
func (c *Collector) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Due asks the policy at a sync point and reports whether it wants a cycle, but
// starts none. Programs of several ranks that want to collect together combine
// their answers; then all call Collect with TriggerPolicy, or none does.
func (c *Collector) Due() bool {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	d, _ := c.decide(Point{Now: now, At: Sync}, nil, 0)
	return d.Action != Skip
}

// decide asks the policy at p. The caller has filled in Now, At and what it knows
// of itself. If the gate under most pressure is g, its live bytes are live, which
// the caller has just read. It returns that gate with the answer. The caller holds
// mu.
func (c *Collector) decide(p Point, g *Gate, live int64) (Decision, *Gate) {
	if p.Now-c.readAt >= readEvery {
		c.lookForCycles(p.Now)
	}
	top, s := c.mostPressed()
	if top == nil || c.closed {
		return Decision{}, top
	}
	if top == g {
		s.Live = live
	}
	c.fill(&p, top, s)
	d := c.askPolicy(p)
	c.wakeAt(d.Wake, top)
	c.stats.Decisions[d.Action]++
	c.journal.decided(p, d)
	if c.recorder != nil {
		c.recorder.decision(p, d)
	}
	return d, top
}

// readEvery is how often a point may read the runtime's metrics.
const readEvery = time.Millisecond

// read takes a reading of the runtime. The caller holds mu, or is New.
func (c *Collector) read(now time.Duration) {
	c.runtime, c.readAt = c.engine.read(), now
	c.cost = c.costs.cost(c.runtime.scan, c.tracked)
}

// lookForCycles looks for cycles that the runtime has run by itself, and has them
// settled. The caller holds mu.
func (c *Collector) lookForCycles(now time.Duration) {
	c.read(now)
	if c.runtime.cycles != c.seen && c.current == nil && !c.closed {
		select {
		case c.poke <- struct{}{}:
		default: // it has been told
		}
	}
}

// askPolicy contains the policy's panics. The caller holds mu.
func (c *Collector) askPolicy(p Point) (d Decision) {
	defer c.containPolicy()
	return c.policy.Decide(p)
}

func (c *Collector) tellPolicy(cycle Cycle) {
	defer c.containPolicy()
	c.policy.Observe(cycle)
}

func (c *Collector) containPolicy() {
	if e := recover(); e != nil {
		c.fail(fmt.Errorf("gc: policy %T panicked and is off: %v\n%s", c.policy, e, debug.Stack()))
		c.policy = new(Never)
	}
}

// fail keeps the first error. The caller holds mu.
func (c *Collector) fail(err error) {
	c.stats.Failures++
	if c.err == nil {
		c.err = err
	}
	c.logFailure(err)
}

// giveFailed reports a panic of a function that gives memory back.
func (c *Collector) giveFailed(e any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(fmt.Errorf("gc: giving back a dead object's memory panicked: %v\n%s", e, debug.Stack()))
}

// wakeUp makes every gate ask at its next allocation. The caller holds mu.
func (c *Collector) wakeUp() {
	if c.closed {
		return
	}
	for _, g := range c.gates {
		g.wake.Store(0)
	}
}

func (c *Collector) addRegistry(r walker) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.registries = append(c.registries, r)
}

func (c *Collector) dropRegistry(r walker) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.registries = without(c.registries, r)
}

// without returns a copy of list that lacks x.
func without[T comparable](list []T, x T) []T {
	var rest []T
	for _, y := range list {
		if y != x {
			rest = append(rest, y)
		}
	}
	return rest
}
