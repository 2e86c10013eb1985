package fleet

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

// A Neighbour is one of several processes of a machine.
type Neighbour struct {
	Workload *sim.Workload
	Cost     sim.Cost // of a cycle
}

// A Machine is a machine whose processes share a budget of memory, each with a limit of
// its own that a rule moves every so often, as control groups do. A process that has
// ended gives its share back.
type Machine struct {
	Budget int64            // bytes, of all processes
	Every  time.Duration    // between two looks of the rule
	Rule   Rule             //
	Policy func() gc.Policy // of each process, under its limit
	Ladder sim.Ladder
}

// A Shared is what came of a machine.
type Shared struct {
	Results  []sim.Result
	Lost     float64       // sum of the objectives over the sum of the spans
	Busy     time.Duration // collector time of all
	Exposed  time.Duration // pauses of all
	Refusals int
	Over     int   // allocations that did not fit a share even after a collection: the process went over it
	MostLive int64 // bytes of all processes at one moment: ten are seen between two looks
}

// Run runs the processes from the same moment until the last one ends.
func (m *Machine) Run(all []Neighbour) Shared {
	group := make([]*sim.Process, len(all))
	seen := make([]View, len(all))
	for i, n := range all {
		group[i] = sim.Start(n.Workload, m.Policy(), sim.Config{Cost: n.Cost, Ladder: m.Ladder})
		seen[i].Known = n.Workload.PeakReachable
	}
	var out Shared
	for now, running := time.Duration(0), true; running; now += m.Every {
		for i, p := range group {
			seen[i].look(p.Standing(), m.Every)
		}
		for i, limit := range m.Rule.Divide(m.Budget, seen) {
			group[i].SetLimit(max(1, limit))
		}
		const moments = 10
		for k := range time.Duration(moments) {
			var live int64
			running = false
			for _, p := range group {
				running = p.Until(now+(k+1)*m.Every/moments) || running
				live += p.Standing().Live
			}
			out.MostLive = max(out.MostLive, live)
		}
	}
	var objective, span time.Duration
	for _, p := range group {
		r := p.Result()
		out.Results = append(out.Results, r)
		objective, span = objective+r.Objective(), span+r.Span
		out.Busy, out.Exposed = out.Busy+r.GCBusy, out.Exposed+r.ExposedPause
		out.Refusals, out.Over = out.Refusals+r.RefusalCollections, out.Over+r.FailedAllocs
	}
	out.Lost = float64(objective) / float64(max(1, span))
	return out
}

// A View is what a rule sees of a process.
type View struct {
	sim.Standing
	Known int64   // peak of its reachable bytes, which only FixedByPeak may know
	Rate  float64 // bytes per ns that it grows by, of the last seconds

	grown, bytes, time float64
}

// look measures the rate: bytes and time both keep 0.95 a second, as in MemBalancer's
// daemon (MarisaKirisame/MemoryBalancer@ceec60a, src/poll_daemon.cpp).
func (v *View) look(s sim.Standing, since time.Duration) {
	v.Standing = s
	if s.Ended {
		v.Rate = 0
		return
	}
	keep := math.Pow(0.95, since.Seconds())
	v.bytes = keep*v.bytes + max(0, float64(s.Grown)-v.grown)
	v.time = keep*v.time + float64(since)
	v.grown = float64(s.Grown)
	v.Rate = v.bytes / v.time
}

// base is what a process needs at least, as far as one can see: what its last cycle left,
// or all it holds before the first, and the allocation that it is about to make.
func (v *View) base() float64 {
	if v.Cycles == 0 {
		return float64(v.Live + v.Next)
	}
	return float64(min(v.Live, v.LiveAfter) + v.Next)
}

// A Rule divides a budget among processes.
type Rule struct {
	Name   string
	Divide func(budget int64, all []View) []int64
}

// Rules lists the rules:
//
//   - fixed: equal shares for ever, also of processes that have ended: what a limit
//     for each container does.
//   - peak: shares for ever by the peak of the reachable bytes, which nobody knows
//     beforehand.
//   - proportional: shares by what each process needs now.
//   - sqrt: what each needs now, and of the rest shares by the square root of its rate of
//     growth times the cost of its cycle. Then one more byte saves as much collector
//     time in each process as in any other (MemBalancer, OOPSLA 2022; its daemon's
//     duration_balance_factor, since a cycle costs the same whatever is live).
func Rules() []Rule {
	return []Rule{
		{"fixed", func(budget int64, all []View) []int64 {
			return divide(float64(budget), all, func(*View) float64 { return 1 })
		}},
		{"peak", func(budget int64, all []View) []int64 {
			return divide(float64(budget), all, func(v *View) float64 { return float64(v.Known) })
		}},
		{"proportional", func(budget int64, all []View) []int64 {
			return divide(float64(budget), all, (*View).base)
		}},
		{"sqrt", squareRoot},
	}
}

// divide gives each process the share that its weight is of all weights; equal shares if
// there are none.
func divide(budget float64, all []View, weight func(*View) float64) []int64 {
	var sum float64
	for i := range all {
		sum += weight(&all[i])
	}
	out := make([]int64, len(all))
	for i := range all {
		share := 1 / float64(len(all))
		if sum > 0 {
			share = weight(&all[i]) / sum
		}
		out[i] = int64(budget * share)
	}
	return out
}

func squareRoot(budget int64, all []View) []int64 {
	rest := float64(budget)
	for i := range all {
		rest -= all[i].base()
	}
	if rest <= 0 { // not even what they need fits
		return divide(float64(budget), all, (*View).base)
	}
	out := divide(rest, all, func(v *View) float64 { return math.Sqrt(v.Rate * float64(v.Cost)) })
	for i := range all {
		out[i] += int64(all[i].base())
	}
	return out
}

// Needs returns the smallest budget, to 1 in 256, that the processes keep to with no more
// collector time than a known run took; the machine's own if none smaller does.
func (m *Machine) Needs(all []Neighbour, than Shared) int64 {
	try, low, high := *m, int64(0), m.Budget
	for high-low > m.Budget/256 {
		try.Budget = low + (high-low)/2
		if got := try.Run(all); got.Busy <= than.Busy && got.MostLive <= try.Budget {
			high = try.Budget
		} else {
			low = try.Budget
		}
	}
	return high
}
