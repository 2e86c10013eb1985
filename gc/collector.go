package gc

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Collector runs Go's collector for memory that Go's collector does not see.
// It watches every [Source], asks a [policy.Policy] before allocations and waits, runs
// the cycles that the policy wants, and gives back what they find dead in each
// [WeakRegistry]. It notices the cycles that the runtime runs by itself, too. All
// methods are safe for concurrent use. Make one with [New].
type Collector struct {
	start   time.Time
	engine  engine
	noPlace WaitPlace
	own     func() *ownership // made at the first call
	owned   atomic.Pointer[ownership]
	log     *slog.Logger // nil = off
	strict  bool

	// settling is held from before a cycle's mark to after its walk, and for any
	// other walk. It is taken before mu.
	settling sync.Mutex
	releases *releases

	settled atomic.Uint64              // number of cycles that have; changed under mu
	current atomic.Pointer[collection] // the cycle under way; changed under mu
	awake   atomic.Bool                // it is in alive, and checks whether the program is quiet

	throttle throttle // guarded by mu, but for mayAsk

	recording atomic.Bool // there is a recorder
	samples   samples

	mu         sync.Mutex // of all that follows; held for no longer than a Decide
	registries []walker   // replaced, never changed
	policy     policy.Policy
	unchosen   bool // nobody has chosen the policy
	gates      []*Gate
	runtime    reading             // the last one
	readAt     time.Duration       // when that was
	first      uint64              // cycles of the process when the collector was made
	expected   *policy.Expectation // of a cycle started now
	idler      idler
	seen       uint64 // cycles of the process that have been settled
	reaping    bool   // somebody is about to settle the runtime's own
	onlookers
	closed    bool
	stopped   chan struct{} // closed with it
	listening func()        // ends it; nil = to no library
	tracked   int
	goroutine sync.WaitGroup
	silent    bool           // the log is told nothing more
	logging   sync.WaitGroup // entries that the log is being given
	trimmer   *trimmer
}

// A walker knows of memory that cycles give back: a WeakRegistry[W] of any W.
type walker interface {
	promoteAll()      // is called before a mark
	walk(*collection) // is called after it; adds the dead to the cycle
	Len() int
}

// Config says how a collector works. The zero value is usable. Neither Recorder
// nor the handler of Log may call the collector. A panic of one of them turns it off.
type Config struct {
	Policy   policy.Policy  // nil: HostPolicy, and DefaultPolicy once memory is watched that is not the host's; $EAGERGC_POLICY goes before all
	Recorder trace.Sink     // told of decisions, waits and cycles; nil = off
	Log      *slog.Logger   // told of cycles, refusals and new policies (debug level) and of panics (error level); nil = off
	Space    pressure.Space // of the memory given to Own
	Limit    int64          // budget of the memory given to Own, in bytes; 0 = none known. A goal: see [Own]
	Caps     Caps           // the most that it may take from the program
	Idle     time.Duration  // after 1 to 1.5 times this long without an allocation one cycle runs, unless the policy is never; 0 = 1 s, below 0 = off
}

// HostPolicy is the text form of the policy of a collector that is given none, and watches memory of the
// host alone. That is shared with other programs, so it has a price: see package policy.
const HostPolicy = "host"

// DefaultPolicy is the text form of the policy of a collector that is given none, and watches
// other memory, such as a device's: the program's own up to its limit.
const DefaultPolicy = "pacer"

// PolicyVariable is the environment variable that chooses the policy of every
// collector of a process by its text form, whatever its Config says. The word
// none leaves everything to the refusal ladder and to Go's own cycles. One that [policy.Parse]
// does not know is said in the log, and has no effect.
const PolicyVariable = "EAGERGC_POLICY"

// New returns a running collector. The errors are a limit below 0, and caps out of range. Close it when
// done. A collector that is forgotten costs nothing once all that it tracks is
// given back.
func New(cfg Config) (*Collector, error) {
	if cfg.Limit < 0 || cfg.Limit > MaxBytes {
		return nil, fmt.Errorf("gc: a limit of %d bytes: want 0 to %d", cfg.Limit, int64(MaxBytes))
	}
	if err := cfg.Caps.check(); err != nil {
		return nil, err
	}
	c := newOnRuntime(cfg, choosePolicy(cfg.Policy))
	c.checkLimit(cfg.Limit)
	return c, nil
}

// newOnRuntime makes a collector of this process.
func newOnRuntime(cfg Config, p policy.Policy) *Collector {
	return build(newGoRuntime(), processTrimmer(), cfg, p)
}

// build makes a collector whose cycles e runs. A nil p means that nobody has chosen a policy.
func build(e engine, t *trimmer, cfg Config, p policy.Policy) *Collector {
	unchosen := p == nil
	if unchosen {
		p = policy.MustParse(HostPolicy).New()
	}
	c := &Collector{
		start:    time.Now(),
		engine:   e,
		log:      cfg.Log,
		policy:   p,
		unchosen: unchosen,
		throttle: throttle{Caps: cfg.Caps},
		idler:    idler{every: max(0, cmp.Or(cfg.Idle, defaultIdle)/2)},
		strict:   strict(),

		expected: policy.NewExpectation(runtime.GOMAXPROCS(0)),

		trimmer:   t,
		onlookers: onlookers{timeline: timeline{shift: firstShift}},
		stopped:   make(chan struct{}),
	}
	c.releases = newReleases(c)
	c.setRecorder(cfg.Recorder)
	c.own = sync.OnceValue(func() *ownership { return newOwnership(c, cfg) })
	c.read(0)
	c.first, c.seen = c.runtime.cycles, c.runtime.cycles
	e.watch(c.cycleEnded) // last: a cycle may end at once
	return c
}

// choosePolicy returns nil if nobody has chosen one.
func choosePolicy(configured policy.Policy) policy.Policy {
	pressure.Env(PolicyVariable, func(text string) error {
		if text == "none" {
			text = "never"
		}
		spec, err := policy.Parse(text)
		if err == nil {
			configured = spec.New()
		}
		return err
	})
	return configured
}

// Close stops the collector: no cycle is started and no policy asked from now on.
// It waits for the cycle under way, and for releases as [Collector.Collect]
// does. When it returns, the log is told nothing more. What is still tracked, or is tracked later, is given back when a cycle of
// the runtime's own finds it dead. Closing twice is harmless.
func (c *Collector) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stopped)
		if c.idler.timer != nil {
			c.idler.timer.Stop()
		}
		c.throttle.stop()
		for _, g := range c.gates {
			g.wake.Store(math.MaxInt64)
		}
	}
	stop := c.listening
	c.listening = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.goroutine.Wait()
	c.releases.wait()
	c.engine.close()
	c.mu.Lock()
	c.silent = true
	c.mu.Unlock()
	c.logging.Wait()
}

// Now returns the time since the collector was made: the clock of its points,
// cycles and events.
func (c *Collector) Now() time.Duration { return c.engine.now() }

// SetPolicy replaces the policy by p, which must be fresh. Nil is never.
func (c *Collector) SetPolicy(p policy.Policy) {
	if p == nil {
		p = policy.Spec{}.New()
	}
	to := p.String()
	c.mu.Lock()
	from := c.policy.String()
	c.policy, c.unchosen = p, false
	c.changed()
	c.unlock()
	c.debug(logSwitched, func() []slog.Attr { return []slog.Attr{slog.String("from", from), slog.String("to", to)} })
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
	c.setRecorder(r)
}

// Err returns the first failure of a policy, a release, a recorder or a log, as an
// error; nil if there was none. A failure is a panic, a call of runtime.Goexit in a
// release, or an answer that is no [policy.Action]. After that of its policy a collector
// goes on with never. The first failure is logged, by slog.Default if Config.Log
// is nil.
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
	defer c.unlock()
	d, _ := c.decide(policy.Point{Now: now, At: policy.Sync}, nil, 0)
	return d.Action != policy.Skip
}

// decide asks the policy at p. The caller has filled in Now, At and its own
// request or wait. If the gate under most pressure is g, its live bytes are live, which
// the caller has just read. It returns that gate with the answer. The caller holds
// mu.
func (c *Collector) decide(p policy.Point, g *Gate, live int64) (policy.Decision, *Gate) {
	if p.Now-c.readAt >= readEvery {
		c.noticeCycles(p.Now)
	}
	top, s := c.mostPressed(g, p.Request)
	if top == nil || c.closed {
		return policy.Decision{}, top
	}
	if top == g {
		s.Live = live + c.kept(g) - g.liveAfter
	}
	c.fill(&p, top, s)
	d := c.askPolicy(p)
	if d.Action != policy.Skip && c.current.Load() == nil && !c.throttle.mayBegin(p.Now) {
		d = policy.Decision{Reason: cappedReason} // and ask again
	}
	c.wakeAt(d.Wake, top)
	c.decided(p, d)
	return d, top
}

// spawn calls f on a goroutine that Close waits for. It returns false if the collector is closed. The caller holds mu.
func (c *Collector) spawn(f func()) bool {
	if c.closed {
		return false
	}
	c.goroutine.Add(1)
	go func() {
		defer c.goroutine.Done()
		f()
	}()
	return true
}

// readEvery is how often a point may read the runtime's metrics.
const readEvery = time.Millisecond

// read takes a reading of the runtime. The caller holds mu, or is New.
func (c *Collector) read(now time.Duration) {
	c.runtime, c.readAt = c.engine.read(), now
	c.expected.See(c.runtime.scan, c.tracked)
}

// noticeCycles finds cycles that the runtime has run by itself, and has them
// settled. The caller holds mu.
func (c *Collector) noticeCycles(now time.Duration) {
	c.read(now)
	if c.runtime.cycles == c.seen || c.current.Load() != nil || c.reaping {
		return
	}
	c.reaping = true
	reap := func() {
		defer c.Reap()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reaping = false
	}
	if !c.spawn(reap) {
		go reap() // nobody waits for it
	}
}

// askPolicy contains the policy's panics, and answers that are none. The caller
// holds mu.
func (c *Collector) askPolicy(p policy.Point) (d policy.Decision) {
	defer c.containPolicy()
	if d = c.policy.Decide(p); d.Action > policy.Block {
		a := d.Action
		d = policy.Decision{}
		panic(fmt.Sprintf("its answer is action %d, which does not exist", a))
	}
	return d
}

func (c *Collector) tellPolicy(cycle policy.Cycle) {
	defer c.containPolicy()
	c.policy.Observe(cycle)
}

func (c *Collector) containPolicy() {
	if c.strict {
		return
	}
	if e := recover(); e != nil {
		c.fail(fmt.Errorf("gc: policy %T panicked and is off: %v\n%s", c.policy, e, debug.Stack()))
		c.policy = policy.Spec{}.New()
	}
}

// releasedLate is told of bytes that came back after their cycle had settled.
func (c *Collector) releasedLate(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Freed += bytes
	c.stats.Objects++
}

// changed has the policy asked again at once: something is not as it was. The
// caller holds mu.
func (c *Collector) changed() {
	if c.closed {
		return
	}
	c.throttle.forget()
	c.wakeUp()
}

// wakeUp makes every gate ask at its next allocation. The caller holds mu.
func (c *Collector) wakeUp() {
	for _, g := range c.gates {
		g.wake.Store(0)
	}
}

func (c *Collector) addRegistry(r walker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registries = append(slices.Clip(c.registries), r)
}

func (c *Collector) dropRegistry(r walker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registries = without(c.registries, r)
}

func (c *Collector) allRegistries() []walker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registries
}

// without returns a copy of list that lacks x.
func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(y T) bool { return y == x })
}
