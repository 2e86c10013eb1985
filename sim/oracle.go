package sim

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
)

// An oracle is [gc.Pacer]'s rule with a perfect forecast: it starts the next
// cycle where e - price D is least, over the next one or two cycles. What it
// loses against an optimum is lost by the rule, what pacer loses against it by
// the forecast.
type oracle struct {
	w     *Workload
	ahead int // cycles

	here    int           // the present point
	target  int           // where the next cycle starts; -1 if there is no plan
	freed   int64         // by all cycles
	held    time.Duration // sum of the exposed pauses
	waiting bool          // an allocation waits for the cycle under way ...
	since   time.Duration // ... since then
	paid    float64       // decaying sum of what cycles cost, ns
	got     float64       // decaying sum of what they freed, bytes
}

const (
	oracleKeep  = 0.85 // of paid and got, per cycle: as pacer's price
	oracleNodes = 128  // places looked at for each cycle ahead
)

// parseOracle reads oracle:ahead=1 or oracle:ahead=2.
func parseOracle(text string) (Contender, error) {
	ahead, err := strconv.Atoi(strings.TrimPrefix(text, "oracle:ahead="))
	if err != nil || ahead < 1 || ahead > 2 {
		return Contender{}, fmt.Errorf("sim: %q: want oracle:ahead=1 or oracle:ahead=2", text)
	}
	return Contender{text, func(w *Workload, cfg Config) (Result, error) {
		return Run(w, &oracle{w: w, ahead: ahead, target: -1}, cfg), nil
	}}, nil
}

// Decide starts a cycle at the planned place.
func (o *oracle) Decide(at gc.Point) gc.Decision {
	if at.Sample.Limit <= 0 {
		return gc.Decision{Wake: math.MaxInt64, Reason: "no limit"}
	}
	o.find(at)
	fits := at.Sample.Live+at.Request <= at.Sample.Limit
	switch {
	case at.Running:
		if !fits && !o.waiting {
			o.waiting, o.since = true, at.Now
		}
		return gc.Decision{Reason: "cycle under way"}
	case !fits:
		return gc.Decision{Action: gc.Block, Reason: "no headroom left"}
	}
	if o.target < 0 {
		o.plan(at)
	}
	if o.here < o.target {
		return gc.Decision{Reason: "a better place comes"}
	}
	o.target = -1
	return gc.Decision{Action: gc.Overlap, Reason: "best place before headroom ends"}
}

// find moves here to the point that is asked about.
func (o *oracle) find(at gc.Point) {
	time, net := int64(at.Now-o.held), at.Sample.Live+o.freed
	for ; o.here < len(o.w.points)-1; o.here++ {
		p := &o.w.points[o.here]
		if p.time >= time && p.net == net && p.sync == (at.At == gc.Sync) && (p.sync || p.arg == at.Request) {
			return
		}
	}
}

// wall returns the first point from i on at which more than end would have
// been allocated; len(points) if there is none.
func (o *oracle) wall(i int, end int64) int {
	if !o.w.monotone {
		for ; i < len(o.w.points) && o.w.points[i].top() <= end; i++ {
		}
		return i
	}
	return i + sort.Search(len(o.w.points)-i, func(k int) bool { return o.w.points[i+k].top() > end })
}

// plan sets the target: the place with the least cost from here to the wall.
func (o *oracle) plan(at gc.Point) {
	limit, g := at.Sample.Limit, int64(at.Cost)
	price := CPUPrice * float64(g) / float64(limit)
	if o.got > 0 {
		price = o.paid / o.got
	}
	last := o.wall(o.here, limit+o.freed)
	if o.target = last; last == len(o.w.points) {
		return
	}
	best := math.Inf(1)
	for i := range o.places(o.here, last) {
		p := &o.w.points[i]
		cost := float64(max(0, p.time+g-o.w.points[last].time))
		if o.ahead == 1 {
			cost -= price * float64(p.dropped)
		} else {
			cost += o.next(i, min(p.time+g, o.w.points[last].time), g, limit, price)
		}
		if cost <= best {
			best, o.target = cost, i
		}
	}
}

// next is the least cost of the cycle after one that starts at i and ends at
// the time end at the latest.
func (o *oracle) next(i int, end, g, limit int64, price float64) float64 {
	points := o.w.points
	last := o.wall(i, limit+points[i].dropped)
	if last == len(points) {
		return -price * float64(o.w.end.dropped)
	}
	least := math.Inf(1)
	for j := range o.places(i, last) {
		if points[j].time < end && j < last {
			continue
		}
		start := max(points[j].time, end)
		cost := float64(max(0, start+g-max(points[last].time, end))) - price*float64(points[j].dropped)
		least = min(least, cost)
	}
	return least
}

// places are some points from i to last, both included.
func (o *oracle) places(i, last int) func(yield func(int) bool) {
	step := max(1, (last-i)/oracleNodes)
	return func(yield func(int) bool) {
		for ; i < last; i += step {
			if !yield(i) {
				return
			}
		}
		yield(last)
	}
}

// Observe keeps the price.
func (o *oracle) Observe(c gc.Cycle) {
	exposed := c.Exposed
	if o.waiting {
		exposed = max(exposed, c.Start+c.Duration-o.since)
		o.waiting = false
	}
	o.freed += c.Freed
	o.held += exposed
	o.paid = oracleKeep*o.paid + float64(exposed) + CPUPrice*float64(c.Duration)
	o.got = oracleKeep*o.got + float64(c.Freed)
	o.target = -1
}

// String returns the contender's name.
func (o *oracle) String() string { return fmt.Sprintf("oracle:ahead=%d", o.ahead) }
