package gc

import (
	"log/slog"
	"sync"

	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Default returns the collector of the process. The first call makes it. Do not close it: libraries
// that count host memory share it. It listens to libraries that count through package pressure. Its
// policy is [HostPolicy], or that of the environment. Its limit is the hard or else the soft limit
// of the environment for host memory: see [pressure.EnvLimit]. Without one it is nine tenths of the
// memory of the machine or the container.
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
	c := build(goruntime.New(), Config{Limit: defaultLimit()}, choosePolicy(policy.MustParse(HostPolicy).New()))
	c.Listen()
	return c
}

func defaultLimit() int64 {
	info, _ := pressure.HostMemory() // zero where it is unknown
	limit, set := pressure.EnvLimit(pressure.Host, func() int64 { return info.Total })
	if !set {
		limit = int64(defaultShare * float64(info.Total))
	}
	return min(limit, MaxBytes)
}

// checkLimit warns of a limit above the memory of the machine.
func (c *Collector) checkLimit(bytes int64) {
	if bytes == 0 {
		return
	}
	if info, err := pressure.HostMemory(); err == nil && bytes > info.Total {
		c.misuse(logLimit, slog.Int64("limit_bytes", bytes), slog.Int64("total_bytes", info.Total))
	}
}

// strictVariable is the environment variable that turns strict mode on, which is for tests. In
// strict mode visible misuse panics, and no panic is contained.
const strictVariable = "EAGERGC_STRICT"

// misuse warns of a mistake of the program, in slog.Default if there is no log. In strict mode it
// panics. The caller does not hold mu.
func (c *Collector) misuse(text string, attrs ...slog.Attr) {
	if c.strict {
		panic(text + ": " + slog.GroupValue(attrs...).String())
	}
	c.log.Say(slog.LevelWarn, true, text, attrs...)
}

// alive holds the collectors that track something. A program may forget a collector whose owners'
// memory still has to be given back.
var alive sync.Map // of *Collector

// stayAwake keeps the collector alive while it tracks something, and starts the idle check.
func (c *Collector) stayAwake() {
	c.awake.Store(true) // before: see letGo
	alive.Store(c, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if every := c.governor.IdleEvery; every > 0 && !c.life.closed {
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
