package policy

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// host is this project's own rule, and the default for host memory, which a program shares with
// others. Each byte has a price, and a limit is a guard. Garbage may reach sqrt(w r / price)
// bytes, MemBalancer's optimum (see [sqrt]): w is the processor time of a cycle, r the rate of
// allocation. A cycle starts early enough to end by then. If cycles have taken a smaller share of
// the processor time than Overhead, one starts sooner: Overhead is a target. Near a limit, a cycle
// starts as early as costs least for the last grains of memory: see [starts]. A request that does
// not fit waits for a cycle. The zero value collects only when a limit requires it.
type host struct {
	Price    float64 // of memory, per byte; 0 = memory is free up to the limit
	Overhead float64 // target: least share of the processor time that cycles should take, 0 to 1; 0 = none

	busy time.Duration // processor time of all cycles
	last time.Duration // start of the last cycle

	asleep int64         // Decide skips allocations until this many bytes are live
	freed  int64         // bytes that all cycles have freed
	held   time.Duration // sum of the exposed pauses
	began  int64         // total at the start of the last cycle
	ended  int64         // total at which memory ended at that time

	rate   allocRate
	worth  byteWorth
	starts *starts // nil until there is a limit
}

const (
	hostShare  = 0.05 // price of a second of cycles, in seconds of pause
	shareOwed  = 8    // most cycles that are made up for after a time with fewer
	keepRate   = 0.8
	v8Price    = 3e-10 // of memory, per byte
	mostCycles = 0.25  // share of the time that those may take: the default of gc.Caps
)

func (p *host) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Price, "price", 2e-8, param.Number(0, 1), "price of memory per byte, as sqrt's c: trades memory for cycles; 0 uses all of a known limit"),
		param.Bind(&p.Overhead, "overhead", 0.01, param.Percent(), "target: the share of processor time that cycles take at least, for as little memory as that buys; 0% = no target"),
	}
}

func (p *host) Decide(at Point) Decision {
	due := p.Overhead > 0 && at.Now >= p.due(at.work()) // a gauge that stands still asks, too
	if !due && at.At == Allocation && granted(&at) < p.asleep {
		return Decision{Wake: p.asleep, Reason: "asleep"}
	}
	now := moment{time: at.Now - p.held, total: at.Sample.Live + p.freed}
	p.rate.see(now, at.Request, at.Cost)
	limit, end := at.Sample.Limit, p.end(&at)
	if limit > 0 {
		end = min(end, limit-p.early(&at, now, limit))
	}
	p.asleep = min(at.Sample.Live, math.MaxInt64/2) + 1 + end>>10
	d := Decision{Wake: p.asleep, Reason: "headroom lasts"}
	switch {
	case at.Running:
		d.Reason = "cycle under way"
	case limit > 0 && granted(&at) > limit:
		d.Action, d.Reason = Block, "no headroom left"
	case due:
		d.Action, d.Reason = Overlap, "cycles may take more time"
	case granted(&at) > end:
		d.Action, d.Reason = Overlap, "headroom used up"
	}
	if d.Action != Skip {
		p.began, p.ended = now.total, p.freed+limit
	}
	return d
}

// end returns the live bytes at which the headroom ends that the price grants. It subtracts the
// bytes that the program allocates during a cycle, at most half of the headroom.
func (p *host) end(at *Point) int64 {
	h := int64(math.MaxInt64)
	switch {
	case p.Price > 0:
		h = p.rate.headroom(at.work(), p.Price)
	case p.Overhead > 0: // a guard: the target decides
		h = max(2*miB, toBytes(4*float64(at.work())*p.rate.rate/p.Overhead))
	}
	h -= min(h/2, toBytes(p.rate.rate*float64(at.Cost)))
	return min(at.LiveAfter, math.MaxInt64-h) + h
}

// early returns the room before the limit at which a cycle starts. It returns 0 if that cycle
// would follow the last one too closely.
func (p *host) early(at *Point, now moment, limit int64) int64 {
	if p.starts == nil {
		p.starts = new(starts)
	}
	cost := hostShare*float64(at.Cost) + p.starts.cost
	p.starts.see(&view{
		now: now, top: now.total + at.Request, guess: make([]float64, 1), g: float64(at.Cost),
		worth: p.worth.of(cost, limit), budget: limit, headroom: max(1, limit-at.LiveAfter), ends: [2]int64{p.freed + limit, p.ended},
	})
	if float64(now.total+at.Request-p.began) < halfway*float64(limit-granted(at)) {
		return 0
	}
	return int64(p.starts.room(make([]float64, 1)))
}

// due returns when a cycle may start so that all cycles take the target share. W is the processor
// time of the cycle. After a time with fewer cycles, some are made up for. After a time with more,
// cycles come at half the usual rate.
func (p *host) due(w time.Duration) time.Duration {
	period := float64(w) / p.Overhead
	early := max(float64(p.busy+w)/p.Overhead-float64(p.last), min(period, float64(w)/mostCycles))
	return p.last + time.Duration(min(early, 2*period, 1<<62)) // a tiny target overflows
}

// Observe learns the cost and the yield of a cycle.
func (p *host) Observe(c Cycle) {
	p.freed += c.Freed
	p.held += c.Exposed
	p.busy = max(p.busy, time.Duration(p.Overhead*float64(c.Start))-shareOwed*c.work()) + c.work()
	p.last, p.asleep = c.Start, 0
	if c.Trigger != TriggerNatural {
		early := max(0, p.ended-p.began)
		p.worth.learn(float64(c.Exposed)+hostShare*float64(c.Duration), float64(c.Freed), float64(early))
		p.ended = 0
	}
}

func (p *host) String() string { return param.Text("host", p.Params()) }

// An allocRate is the rate at which the program allocates.
type allocRate struct {
	rate  float64 // bytes per ns, smoothed
	begin moment  // start of the present window, which is as long as a cycle
	begun bool
}

func (f *allocRate) see(now moment, request int64, g time.Duration) {
	if !f.begun || now.total < f.begin.total { // the program freed by itself
		f.begin, f.begun = now, true
		return
	}
	if length := now.time - f.begin.time; length >= g {
		grown := float64(now.total - f.begin.total + request)
		f.rate = keepRate*f.rate + (1-keepRate)*grown/float64(max(1, length))
		f.begin = now
	}
}

// headroom returns the headroom that the square-root rule grants at a price.
func (f *allocRate) headroom(work time.Duration, price float64) int64 {
	return max(2*miB, toBytes(math.Sqrt(float64(work)*f.rate/price)))
}
