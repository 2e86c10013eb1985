package gc

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Collector runs Go's collector for memory that Go's collector does not see. It watches every
// [Source], asks a [policy.Policy] before allocations and waits, and runs the cycles that the policy
// wants. Its cycles, and those of the runtime, give back the memory of objects that they find dead in
// each [WeakRegistry]. All methods are safe for concurrent use. Make one with [New].
type Collector struct {
	engine  goruntime.Engine
	noPlace WaitPlace
	own     func() *ownership // created by the first call
	owned   atomic.Pointer[ownership]
	log     observe.Log
	strict  bool

	settling  sync.Mutex // see the package's documentation
	releases  *registry.Releases
	settled   atomic.Uint64              // number of settled cycles; changed under mu
	current   atomic.Pointer[collection] // the cycle under way; changed under mu
	awake     atomic.Bool                // registered in alive; the idle check is running
	recording atomic.Bool                // a recorder is set
	reaping   atomic.Bool                // a goroutine is about to settle cycles of the runtime
	samples   observe.Samples

	mu       sync.Mutex // guards the fields below; held for no longer than a Decide
	governor *governor.Governor
	gates    []*Gate
	walkers  []walker // replaced, never changed
	runtime  runtimeState
	observed observers
	life     lifetime
}

// A runtimeState is the part of the runtime's state that a collector knows.
type runtimeState struct {
	goruntime.Reading               // the last one
	readAt            time.Duration // time of the last reading
	first             uint64        // cycles of the process when the collector was made
	seen              uint64        // cycles of the process that have been settled
	tracked           int           // objects when the last cycle had settled
}

// A lifetime is the state that ends with a collector.
type lifetime struct {
	closed     bool
	stopped    chan struct{} // closed by Close
	listen     sync.Once
	listening  func() // stops listening to libraries; nil = does not listen
	goroutines sync.WaitGroup
	unchosen   bool          // the policy is the default one
	idle       *time.Timer   // calls checkQuiet
	idleEvery  time.Duration // 0 = never
}

// A walker knows of memory that cycles give back.
type walker interface {
	promoteAll()      // is called before a mark
	walk(*collection) // is called after it; adds the dead to the cycle
}

// Caps bound the time that a collector takes from the program, whatever its policy says. The zero
// value is good for a service: cycles take at most a quarter of the processors, and callers wait
// for at most 5 % of any second, 10 ms at a time. See [governor.Caps] for the fields.
type Caps = governor.Caps

// Config configures a collector. The zero value is usable. Neither Recorder nor the handler of Log
// may call the collector. A panic of one of them turns it off. If Log is nil, lines go to
// [slog.Default], but of contained failures only the first.
type Config struct {
	// Policy is the policy, unless $EAGERGC_POLICY overrides it. Nil is HostPolicy, and
	// DefaultPolicy once memory other than the host's is watched.
	Policy   policy.Policy
	Recorder trace.Sink     // receives decisions, waits and cycles; nil = off
	Log      *slog.Logger   // cycles have debug level, misuse warning level, failures error level; nil: see below
	Space    pressure.Space // of the memory given to Own
	Limit    int64          // of the memory given to Own, in bytes; 0 = none. A goal: see [Own]
	Caps     Caps           // the most that the collector may take from the program
	// Idle is how long a program does not allocate before one cycle runs; it may take 1.5 times as
	// long. With the policy never no such cycle runs. 0 is 1 s, below 0 is off.
	Idle time.Duration
}

// HostPolicy is the text form of the default policy of a collector that watches only host memory.
// Other programs share that memory, so it has a price: see package policy.
const HostPolicy = "host"

// DefaultPolicy is the text form of the default policy of a collector that watches other memory,
// such as a device's. The program may use that memory up to its limit.
const DefaultPolicy = "pacer"

// PolicyVariable is the environment variable that chooses the policy of every collector of a
// process by its text form. It overrides Config. A text that [policy.Parse] does not know is logged
// and ignored.
const PolicyVariable = "EAGERGC_POLICY"

// New returns a running collector. It fails if the limit is below 0 or above [MaxBytes], or if caps
// are out of range. Close the collector when done. A forgotten collector costs nothing once all its
// memory is given back.
func New(cfg Config) (*Collector, error) {
	if cfg.Limit < 0 || cfg.Limit > MaxBytes {
		return nil, fmt.Errorf("gc: a limit of %d bytes: want 0 to %d", cfg.Limit, int64(MaxBytes))
	}
	if err := cfg.Caps.Check(); err != nil {
		return nil, err
	}
	c := build(goruntime.New(), cfg, choosePolicy(cfg.Policy))
	c.checkLimit(cfg.Limit)
	return c, nil
}

// Default returns the collector of the process, which libraries share. Do not close it. It listens to
// libraries that count through package pressure. Its policy is [HostPolicy], or that of the
// environment. Its limit is that of the environment for host memory: see [pressure.EnvLimit]. Without
// one it is nine tenths of the memory of the machine or the container.
func Default() *Collector {
	theDefault.once.Do(func() { theDefault.collector = newDefault() })
	return theDefault.collector
}

// theDefault is not a sync.OnceValue, which would link the collector into every program that only
// names a policy.
var theDefault struct {
	once      sync.Once
	collector *Collector
}

// defaultShare is the share of a container's memory that a Go process should use, as in
// KimMachineGun/automemlimit. The rest is for memory that is not counted.
const defaultShare = 0.9

func newDefault() *Collector {
	info, _ := pressure.HostMemory() // zero where it is unknown
	limit, set := pressure.EnvLimit(pressure.Host, func() int64 { return info.Total })
	if !set {
		limit = int64(defaultShare * float64(info.Total))
	}
	c := build(goruntime.New(), Config{Limit: min(limit, MaxBytes)}, choosePolicy(policy.MustParse(HostPolicy).New()))
	c.Listen()
	return c
}

// build makes a collector whose cycles e runs. With a nil p it takes a default policy.
func build(e goruntime.Engine, cfg Config, p policy.Policy) *Collector {
	unchosen := p == nil
	if unchosen {
		p = policy.MustParse(HostPolicy).New()
	}
	c := &Collector{
		engine:   e,
		strict:   pressure.EnvChoice(strictVariable, "off", "on") == "on",
		life:     lifetime{stopped: make(chan struct{}), unchosen: unchosen},
		observed: observers{journal: journal{reasons: make(map[string]uint64)}},
	}
	c.life.idle = time.AfterFunc(time.Hour, c.checkQuiet)
	c.life.idle.Stop()
	c.log.To, c.log.Contain, c.log.Failed = cfg.Log, c.contain, c.failed
	c.releases = registry.NewReleases(registry.Host{Engine: e, Strict: c.strict, Fail: c.failed, Late: c.releasedLate})
	c.governor = governor.New(cfg.Caps, &contained{p, c})
	c.governor.Processors = goruntime.Processors() // before Learn
	c.governor.Learn()
	c.life.idleEvery = max(0, cmp.Or(cfg.Idle, time.Second)/2)
	c.setRecorder(cfg.Recorder)
	c.own = sync.OnceValue(func() *ownership { return newOwnership(c, cfg) })
	c.read(0)
	c.runtime.first, c.runtime.seen = c.runtime.Cycles, c.runtime.Cycles
	c.governor.Cycles = 0
	e.Watch(func() { // last, because a cycle may end at once
		c.mu.Lock()
		defer c.unlock()
		c.noticeCycles(c.Now())
	})
	return c
}

// choosePolicy returns the policy of the environment, or else the configured one, which may be nil.
func choosePolicy(configured policy.Policy) policy.Policy {
	pressure.Env(PolicyVariable, func(text string) error {
		spec, err := policy.Parse(text)
		if err == nil {
			configured = spec.New()
		}
		return err
	})
	return configured
}

// Close stops the collector. From then on it starts no cycle, asks no policy, and writes nothing to
// the log. Close waits for the cycle under way, and for releases as [Collector.Collect] does. Later
// cycles of the runtime still release dead owners. Closing twice is harmless.
func (c *Collector) Close() {
	c.mu.Lock()
	if !c.life.closed {
		c.life.closed = true
		close(c.life.stopped)
		c.life.idle.Stop()
		c.governor.Close()
		c.publish()
	}
	stop := c.life.listening
	c.life.listening = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.life.goroutines.Wait()
	c.releases.Wait()
	c.engine.Close()
	c.log.Close()
}

// Now returns the time since the collector was made. Its points, cycles and events have this clock.
func (c *Collector) Now() time.Duration { return c.engine.Now() }

// SetPolicy replaces the policy by p, which must be fresh. Nil stands for never.
func (c *Collector) SetPolicy(p policy.Policy) {
	if p == nil {
		p = policy.Spec{}.New()
	}
	c.mu.Lock()
	defer c.unlock()
	c.governor.SetPolicy(&contained{p, c})
	c.life.unchosen = false
	c.publish()
}

// Policy returns the text form of the policy in use.
func (c *Collector) Policy() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.governor.Policy().String()
}

// SetRecorder sends later events to r. Nil stops recording. A recording begins with the live memory.
// If r was the last recorder, its recording continues: memory freed meanwhile is freed in it.
func (c *Collector) SetRecorder(r trace.Sink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setRecorder(r)
}

// Err returns the first failure of a policy, a release, a recorder or a log, or nil. A failure is a
// panic, a call of runtime.Goexit in a release, or an unknown [policy.Action]. After a failure of
// its policy a collector goes on with never. The first failure is logged, by slog.Default if
// Config.Log is nil.
func (c *Collector) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.observed.err
}

// Due asks the policy at a sync point and reports whether it wants a cycle, but starts none.
// Programs of several ranks that collect together combine their answers. Then all ranks call
// Collect with TriggerPolicy, or none does.
func (c *Collector) Due() (due bool) {
	now := c.Now()
	c.decide(now, func() (none governor.Order) {
		due = c.governor.Due(now)
		return none
	})
	return due
}

// spawn calls f on a goroutine. If the collector is not closed yet, Close waits for it. The caller
// holds mu.
func (c *Collector) spawn(f func()) {
	if c.life.closed {
		go f()
		return
	}
	c.life.goroutines.Add(1)
	go func() {
		defer c.life.goroutines.Done()
		f()
	}()
}

const readEvery = time.Millisecond // the least time between two points that read the runtime's metrics

// read takes a reading of the runtime. The caller holds mu, or is build.
func (c *Collector) read(now time.Duration) {
	c.governor.Heap = goruntime.Heap()
	c.runtime.Reading, c.runtime.readAt = c.engine.Read(), now
	c.governor.See(c.runtime.Scan, c.runtime.tracked)
	c.governor.Cycles = c.runtime.Cycles - c.runtime.first
	c.governor.Processors = goruntime.Processors()
}

// noticeCycles has cycles settled that the runtime has run by itself. The caller holds mu.
func (c *Collector) noticeCycles(now time.Duration) {
	c.read(now)
	if c.runtime.Cycles == c.runtime.seen || c.running() || c.reaping.Swap(true) {
		return
	}
	c.spawn(func() {
		c.reaping.Store(false)
		c.Reap()
	})
}

// alive holds the collectors that track something, because a program may have forgotten them.
var alive sync.Map // of *Collector

// stayAwake keeps the collector alive while it tracks something, and starts the idle check.
func (c *Collector) stayAwake() {
	c.awake.Store(true) // before: see letGo
	alive.Store(c, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if every := c.life.idleEvery; every > 0 && !c.life.closed {
		c.life.idle.Reset(every)
	}
}

// letGo ends that if the collector tracks nothing.
func (c *Collector) letGo() {
	c.awake.Store(false)
	if c.tracked() == 0 { // an object that is tracked from here on calls stayAwake
		alive.Delete(c)
		if !c.awake.Load() {
			return
		}
	}
	c.stayAwake()
}

// contain is deferred around a call of the program's code. It passes a panic to off as an error,
// except in strict mode.
func (c *Collector) contain(off func(error)) {
	if c.strict {
		return
	}
	if e := recover(); e != nil {
		off(fmt.Errorf("panicked and is off: %v\n%s", e, debug.Stack()))
	}
}

// contained is a policy whose panics and unknown answers the collector contains. After one it is
// never. The collector's mu guards it.
type contained struct {
	policy.Policy
	c *Collector
}

func (p *contained) Decide(at policy.Point) policy.Decision {
	defer p.c.contain(p.off)
	d := p.Policy.Decide(at)
	if d.Action > policy.Block {
		panic(fmt.Sprintf("its answer is action %d, which does not exist", d.Action))
	}
	return d
}

func (p *contained) Observe(cycle policy.Cycle) {
	defer p.c.contain(p.off)
	p.Policy.Observe(cycle)
}

func (p *contained) off(err error) {
	p.c.fail(fmt.Errorf("gc: policy %T %w", p.Policy, err))
	p.Policy = policy.Spec{}.New()
}

// releasedLate counts bytes that came back after their cycle had settled.
func (c *Collector) releasedLate(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observed.stats.Freed += bytes
	c.observed.stats.Objects++
}

func (c *Collector) addWalker(r walker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walkers = append(slices.Clip(c.walkers), r)
}

func (c *Collector) dropWalker(r walker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walkers = without(c.walkers, r)
}

func (c *Collector) allWalkers() []walker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.walkers
}

// tracked returns the number of objects in all registries.
func (c *Collector) tracked() (n int) {
	for _, w := range c.allWalkers() {
		if r, ok := w.(interface{ Len() int }); ok {
			n += r.Len()
		}
	}
	return n
}

// without returns a copy of list that lacks x.
func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(y T) bool { return y == x })
}
