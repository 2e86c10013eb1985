package policy

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// sqrt is MemBalancer's square-root rule, for memory that does not make a cycle longer. Let T be
// the cost of a cycle, and r the rate of net growth: bytes allocated less those that the program
// freed itself. Under a headroom of H bytes the collector takes the share T r / H of the time. C is
// the price of memory: one more byte of headroom must save this much of the share. The optimum is
//
//	H = sqrt(T r / C)
//
// A cycle starts when live bytes would exceed LiveAfter + H. H is at least Min, and ends at the
// limit. Upstream's T follows from the live heap; here it is measured, since a cycle's cost grows
// with the Go heap. T keeps half of its old value at each cycle. r keeps 0.95 of the old bytes and
// of the old time, at each cycle and once a second (upstream's heartbeat).
//
// The formula is derived for a program that stops for a cycle. V8 starts to mark beside the program
// when its limit is reached, and so does the default here.
//
// C is V8's 3e-10 per byte; the authors try 5e-11 to 3e-8. With Waits, T is the part of a cycle
// that the wait does not hide, so that the rule acts at sync points too. Upstream has no such term.
// The zero value never collects.
//
// Source: Kirisame, Shenoy, Panchekha, "Optimal Heap Limits for Reducing Browser Memory Use",
// OOPSLA 2022; src/heap/memory-balancer.cc, v8/v8@068d19a3e4; src/poll_daemon.cpp
// (duration_balance_factor), MarisaKirisame/MemoryBalancer@ceec60a.
type sqrt struct {
	C       float64    // price of memory, per byte
	Min     param.Size // least headroom
	Overlap bool       // run beside the program
	Waits   bool       // price only the part of a cycle that a wait does not hide

	cost     float64       // smoothed cost of a cycle, ns; 0 before the first
	bytes    float64       // smoothed net bytes allocated per measurement
	time     float64       // smoothed length of a measurement, ns; 0 before the first
	measured time.Duration // when the rate was last measured
	since    int64         // net bytes of the present interval measured so far
	seen     int64         // net bytes of the present interval allocated so far
}

const (
	sqrtKeepRate  = 0.95
	sqrtKeepCost  = 0.5
	sqrtHeartbeat = time.Second
)

func (p *sqrt) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.C, "c", 3e-10, param.Number(0, 1), "price of memory per byte: the smaller, the more memory and the fewer cycles; 0 never collects"),
		param.Bind(&p.Min, "min", param.Size{Bytes: 2 * miB}, param.SizeOr(2*miB), "least headroom"),
		param.Bind(&p.Overlap, "overlap", true, param.Bool(), "run the cycle beside the program"),
		param.Bind(&p.Waits, "waits", false, param.Bool(), "price only the part of a cycle that a wait does not hide"),
	}
}

// Decide compares live bytes with the headroom that is optimal now. It must see every allocation,
// for the rate.
func (p *sqrt) Decide(at Point) Decision {
	if p.C <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "price 0"}
	}
	p.seen = max(0, at.Allocated+at.Request-at.Freed)
	if at.Now-p.measured >= sqrtHeartbeat {
		p.measure(at.Now)
	}
	least, cost := p.Min.Of(at.Sample.Limit), p.cost
	if cost == 0 {
		cost = float64(at.Cost)
	}
	if p.Waits {
		cost = max(0, cost-float64(at.Wait))
	}
	if at.At == Sync && !p.Waits {
		return Decision{Reason: "not an allocation"}
	}
	if granted(&at)-at.LiveAfter <= p.headroom(cost, least, at) {
		return Decision{Reason: "within headroom"}
	}
	d := startCycle(at, p.Overlap, "headroom used up")
	d.Wake = 0
	return d
}

// headroom is the optimum for a cycle of the given cost, in ns, within its bounds.
func (p *sqrt) headroom(cost float64, least int64, at Point) int64 {
	bytes, time := p.bytes, p.time
	if time == 0 { // no measurement yet
		bytes, time = float64(p.seen), float64(at.Now)
	}
	h := max(least, toBytes(math.Sqrt(cost*bytes/time/p.C)))
	if at.Sample.Limit > 0 {
		h = max(least, min(h, at.Sample.Limit-at.LiveAfter))
	}
	return h
}

// measure folds the bytes allocated since the last measurement into the rate.
func (p *sqrt) measure(now time.Duration) {
	bytes, elapsed := float64(max(0, p.seen-p.since)), float64(now-p.measured)
	if p.time == 0 {
		p.bytes, p.time = bytes, elapsed
	} else {
		p.bytes = sqrtKeepRate*p.bytes + (1-sqrtKeepRate)*bytes
		p.time = sqrtKeepRate*p.time + (1-sqrtKeepRate)*elapsed
	}
	p.measured, p.since = now, p.seen
}

// Observe learns from every cycle: natural ones cost the same.
func (p *sqrt) Observe(c Cycle) {
	if now := c.Start + c.Duration; now > p.measured {
		p.measure(now)
	}
	p.since, p.seen = 0, 0
	p.cost = smooth(p.cost, float64(c.Duration), sqrtKeepCost)
}

func (p *sqrt) String() string { return param.Text("sqrt", p.Params()) }

// smooth folds a new value into an average that keeps a share of the old one. An average of 0 has
// seen nothing.
func smooth(average, value, keep float64) float64 {
	if average == 0 {
		return value
	}
	return keep*average + (1-keep)*value
}
