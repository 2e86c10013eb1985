package gc

import (
	"log/slog"
	"sync"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// Default returns the collector of the process, which the first call makes and
// nobody should close: libraries that count memory of the host share it, and it listens to
// those that count through package pressure. Its policy is
// [HostPolicy], or that of the environment. Its limit is that of the
// environment for host memory, see [pressure.EnvLimit], the hard one before the
// soft one; else nine tenths of what the machine or the container has.
func Default() *Collector {
	theDefault.once.Do(func() { theDefault.collector = newDefault() })
	return theDefault.collector
}

// theDefault is no sync.OnceValue: that would link the collector into every program
// that only names a policy.
var theDefault struct {
	once      sync.Once
	collector *Collector
}

// defaultShare is the share of the memory of a container that a Go process should
// use, as in KimMachineGun/automemlimit: the rest is for memory that nobody counts.
const defaultShare = 0.9

func newDefault() *Collector {
	c := newOnRuntime(Config{Limit: defaultLimit(), Caps: usualCaps()}, choosePolicy(policy.MustParse(HostPolicy).New()))
	c.Listen()
	return c
}

func defaultLimit() int64 {
	info, err := pressure.HostMemory()
	if err != nil {
		info = pressure.Info{}
	}
	limit, set := pressure.EnvLimit(pressure.Host, func() int64 { return info.Total })
	if !set {
		limit = int64(defaultShare * float64(info.Total))
	}
	return min(limit, MaxBytes)
}

// checkLimit warns of a limit that cannot be reached.
func (c *Collector) checkLimit(bytes int64) {
	if bytes == 0 {
		return
	}
	info, err := pressure.HostMemory()
	if err != nil || bytes <= info.Total {
		return
	}
	c.misuse(logLimit, slog.Int64("limit_bytes", bytes), slog.Int64("total_bytes", info.Total))
}

// strictVariable is the environment variable that, set to 1, makes every misuse
// panic that can be seen, and no panic be contained: for tests.
const strictVariable = "EAGERGC_STRICT"

func strict() bool { return pressure.EnvChoice(strictVariable, "off", "on") == "on" }

// misuse says what the program does wrong, aloud; in strict mode it panics. The
// caller does not hold mu.
func (c *Collector) misuse(text string, attrs ...slog.Attr) {
	if c.strict {
		panic(text + ": " + slog.GroupValue(attrs...).String())
	}
	c.say(logEntry{slog.LevelWarn, text, attrs, true})
}

// alive are the collectors that track something. A program may forget a collector,
// but the memory of its owners still has to be given back.
var alive sync.Map // of *Collector

// stayAwake keeps the collector alive as long as it tracks something, and checks whether
// the program goes quiet.
func (c *Collector) stayAwake() {
	c.awake.Store(true) // before: see letGo
	alive.Store(c, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeIdler()
}

// letGo forgets the collector, if it tracks nothing.
func (c *Collector) letGo() {
	c.awake.Store(false)
	for _, r := range c.allRegistries() {
		if r.Len() > 0 { // whoever tracked before this line is counted; later ones wake it again
			c.stayAwake()
			return
		}
	}
	alive.Delete(c)
	if c.awake.Load() {
		c.stayAwake()
	}
}
