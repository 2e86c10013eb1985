package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A heap is one of several programs that share memory.
type heap struct {
	*sim.Workload
	cycle time.Duration // cost of a cycle
	shift time.Duration // when the program starts
}

// A setting is what decides about the cycles of one heap: a policy, or a limit at which each cycle
// starts.
type setting struct {
	policy string
	limit  int64
}

// An account is the time and memory of a heap under a setting.
type account struct {
	collector time.Duration
	bytes     float64 // mean live bytes x elapsed time, in ns
	reachable float64 // the same of the reachable bytes
	levels    []int64 // the highest live bytes in each step
}

const (
	heapStep  = 20 * time.Millisecond
	heapSeeds = 20
)

var (
	heapCounts = []int{4, 8, 16}
	heapCycles = []time.Duration{300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond}
	heapTotals = []float64{1, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 6} // of the sum of the reachable peaks
)

// A rule divides memory among heaps. It has a point of its front for each setting of its parameter.
type rule struct {
	name   string
	values []float64
	of     func(c *heapCache, heaps []heap, value float64) []setting
}

// heapRules are the rules, the bound first.
var heapRules = []rule{
	{"best static split", append([]float64{1e-3, 1e-4, 1e-5, 3e-6}, prices...), bestSplit},
	{"equal headroom", heapTotals, split(func(heap) float64 { return 1 })},
	{"headroom by live size", heapTotals, split(func(h heap) float64 { return float64(h.PeakReachable) })},
	{"headroom by the square root", heapTotals, split(func(h heap) float64 {
		return math.Sqrt(float64(h.cycle) * float64(h.AllocatedBytes) / float64(h.Span))
	})},
	{"`growth`, one factor", []float64{0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5}, same("growth:%g,min=1B")},
	{"`sqrt`, one price", prices, same("sqrt:%g,min=1B")},
	{"`host`, one price", prices, same("host:%g,overhead=0%%")},
}

// heapPrices are the prices at which rules are compared.
var heapPrices = []float64{1e-8, 1e-9, 1e-10, 1e-11}

var prices = []float64{1e-6, 3e-7, 1e-7, 3e-8, 1e-8, 3e-9, 1e-9, 3e-10, 1e-10, 3e-11, 1e-11, 3e-12, 1e-12, 1e-13}

// same gives each heap the same policy.
func same(format string) func(*heapCache, []heap, float64) []setting {
	return func(_ *heapCache, heaps []heap, value float64) []setting {
		return slices.Repeat([]setting{{policy: fmt.Sprintf(format, value)}}, len(heaps))
	}
}

// split gives each heap its reachable peak, and a share of the rest in proportion to its weight.
func split(weight func(heap) float64) func(*heapCache, []heap, float64) []setting {
	return func(_ *heapCache, heaps []heap, value float64) (all []setting) {
		rest, sum := 0.0, 0.0
		for _, h := range heaps {
			rest += (value - 1) * float64(h.PeakReachable)
			sum += weight(h)
		}
		for _, h := range heaps {
			all = append(all, setting{limit: h.PeakReachable + int64(rest*weight(h)/sum)})
		}
		return all
	}
}

// bestSplit finds a static split with the least collector time for its mean memory, at a price of
// memory. It knows the whole of each program. Over all prices, the splits are the convex hull of all
// static splits with limits on the grid.
func bestSplit(c *heapCache, heaps []heap, price float64) (all []setting) {
	for _, h := range heaps {
		best, least := setting{}, math.Inf(1)
		for more := 0.0; more < 4096; more = 1.3*more + 0.02 {
			s := setting{limit: int64((1 + more) * float64(h.PeakReachable))}
			a := c.run(h, s)
			if x := float64(a.collector) + price*a.bytes; x < least {
				best, least = s, x
			}
			if float64(h.AllocatedBytes) <= float64(s.limit) {
				break // no cycle is needed
			}
		}
		all = append(all, best)
	}
	return all
}

// A held is a policy whose cycles all hold the program, as a cycle at a limit does. Rules then differ
// only in when a cycle starts.
type held struct{ policy.Policy }

func (p held) Decide(at policy.Point) policy.Decision {
	d := p.Policy.Decide(at)
	if d.Action == policy.Overlap {
		d.Action = policy.Block
	}
	return d
}

// A heapCache keeps what each heap took under each setting. It is safe for concurrent use.
type heapCache struct {
	mu   sync.Mutex
	kept map[string]*account
}

// run replays a heap. The result does not depend on its shift.
func (c *heapCache) run(h heap, s setting) *account {
	key := fmt.Sprint(h.Name, h.cycle, s)
	c.mu.Lock()
	kept := c.kept[key]
	c.mu.Unlock()
	if kept != nil {
		return kept
	}
	log := &sim.Log{}
	p := held{policy.MustParse(cmp.Or(s.policy, "never")).New()}
	r := sim.Run(h.Workload, p, sim.Config{Limit: s.limit, Cost: sim.Fixed(h.cycle), Ladder: sim.Ladder{Factor: 1}, Log: log})
	steps := int(r.Elapsed/heapStep) + 1
	a := &account{collector: r.GCBusy, bytes: r.MeanLive * float64(r.Elapsed), reachable: (r.MeanLive - r.MeanGarbage) * float64(r.Elapsed), levels: make([]int64, steps)}
	for _, l := range h.Series(log, r.Elapsed, steps) {
		i := min(steps-1, int(l.At/heapStep))
		a.levels[i] = max(a.levels[i], l.Live)
	}
	for i := 1; i < steps; i++ {
		if a.levels[i] == 0 {
			a.levels[i] = a.levels[i-1] // nothing happened
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[key] = a
	return a
}

// total adds up the heaps. It returns the peak of their live bytes, the mean of their live bytes
// divided by that of their reachable bytes, and their collector time.
func (c *heapCache) total(heaps []heap, settings []setting) (peak, mean, collector float64) {
	reachable := 0.0
	var sum []int64
	for i, h := range heaps {
		a := c.run(h, settings[i])
		first := int(h.shift / heapStep)
		for len(sum) < first+len(a.levels) {
			sum = append(sum, 0)
		}
		for k, level := range a.levels {
			sum[first+k] += level
		}
		mean += a.bytes
		reachable += a.reachable
		collector += float64(a.collector)
	}
	return float64(slices.Max(sum)), mean / reachable, collector
}

// drawHeaps returns heaps that run at the same time: recordings, costs of a cycle and shifts by lot.
func drawHeaps(loads []*sim.Workload, count int, seed uint64) (heaps []heap) {
	lot := rand.New(rand.NewPCG(seed, uint64(count)))
	longest := time.Duration(0)
	for range count {
		h := heap{Workload: loads[lot.IntN(len(loads))], cycle: heapCycles[lot.IntN(len(heapCycles))]}
		longest = max(longest, h.Span)
		heaps = append(heaps, h)
	}
	for i, h := range heaps {
		heaps[i].shift = time.Duration(lot.Float64() * float64(longest-h.Span))
	}
	return heaps
}

// A heapPoint is one point of the front of a rule.
type heapPoint struct {
	rule                  string
	count                 int
	seed                  uint64
	value                 float64
	peak, mean, collector float64 // factor of the least peak; factor of the reachable bytes; seconds
}

// heaps judges rules that divide memory among several programs.
func heaps(ctx context.Context, programs []*trace.Trace) (folder, error) {
	loads, err := compile(programs)
	if err != nil {
		return nil, err
	}
	cache := &heapCache{kept: make(map[string]*account)}
	var points []heapPoint
	for _, count := range heapCounts {
		found := make([][]heapPoint, heapSeeds)
		cores := make(chan struct{}, runtime.GOMAXPROCS(0))
		var all sync.WaitGroup
		for seed := range uint64(heapSeeds) {
			all.Go(func() {
				cores <- struct{}{}
				defer func() { <-cores }()
				if ctx.Err() == nil {
					found[seed] = fronts(cache, drawHeaps(loads, count, seed), count, seed)
				}
			})
		}
		all.Wait()
		points = append(points, slices.Concat(found...)...)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return reportHeaps(len(loads), points)
}

// fronts returns the points of all rules for one draw.
func fronts(c *heapCache, heaps []heap, count int, seed uint64) (points []heapPoint) {
	least, _, _ := c.total(heaps, split(func(heap) float64 { return 1 })(c, heaps, 1))
	for _, r := range heapRules {
		for _, v := range r.values {
			peak, mean, collector := c.total(heaps, r.of(c, heaps, v))
			points = append(points, heapPoint{r.name, count, seed, v, peak / least, mean, collector / 1e9})
		}
	}
	return points
}
