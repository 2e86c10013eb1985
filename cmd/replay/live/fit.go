package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// An observation is one cycle of a live run, with the numbers that decide its length.
type observation struct {
	Held    time.Duration // part of the cycle in which the program was held or waited for the device
	Working time.Duration // part of the cycle in which the program worked
	Gap     time.Duration // from the end of the cycle before it to its start
	Tracked int           // objects that the collector knew
	Objects int           // objects that it released
	Bytes   int64         // bytes that it released, if the cost depends on them
	Start   time.Duration // from the request to the mark; negative: unknown
}

// A Fit says how well a machine explains test cycles: every second cycle, to which it was not
// fitted.
type Fit struct {
	Cycles int     // number of test cycles
	Total  float64 // predicted time of all, over the measured time
	Half   float64 // largest relative error of the better half
	Most   float64 // largest relative error of the better nine tenths
}

// String describes the fit in a sentence.
func (f Fit) String() string {
	return fmt.Sprintf("of %d cycles kept apart, half are within %.0f %% of what the model says and nine of ten within %.0f %%; all together took %.2f times as long",
		f.Cycles, 100*f.Half, 100*f.Most, 1/f.Total)
}

// minObservations is the least number of cycles for a fit, including the test cycles.
const minObservations = 16

// fitMachine finds the machine that explains the observed cycles, for an app with heap bytes of
// Go heap with pointers. Its mark cost is that of this heap. fitMachine returns an error if
// there are too few cycles.
func fitMachine(heap int64, all []observation) (*sim.Machine, Fit, error) {
	if len(all) < minObservations {
		return nil, Fit{}, fmt.Errorf("live: %d cycles: at least %d are needed to fit a machine", len(all), minObservations)
	}
	var odd, even []observation
	for i, o := range all {
		if i%2 == 0 {
			even = append(even, o)
		} else {
			odd = append(odd, o)
		}
	}
	checked := fitShape(even)
	fit := checked.check(odd)
	s := fitShape(all)
	m := &sim.Machine{
		Heap: heap, Start: s.start,
		Mark:    sim.Linear{Base: max(0, time.Duration(s.x[0])-s.start), PerObject: s.x[1]},
		Settle:  sim.Linear{PerObject: s.x[2], PerGiB: s.x[3] * (1 << 30)},
		Sweep:   sim.Linear{Base: s.sweep},
		After:   s.after,
		Stretch: s.stretch,
	}
	m.Noise, m.Stall = s.noise(all)
	return m, fit, nil
}

// A shape is the fitted model. While the program is held, a cycle takes x[0], x[1] for each
// tracked object, x[2] for each released object, x[3] for each released byte, and the rest of
// the last sweep. The first two are multiplied by a factor for the time since the last cycle.
type shape struct {
	x       [4]float64 // ns
	stretch float64
	sweep   time.Duration
	after   sim.Curve
	start   time.Duration
}

// work returns how long o would have taken with the program held, without the rest of the last
// sweep.
func (s *shape) work(o *observation) float64 {
	return float64(o.Held) + float64(o.Working)/s.stretch - float64(s.unswept(o))
}

// unswept returns how long the last sweep still took when o was requested.
func (s *shape) unswept(o *observation) time.Duration { return max(0, s.sweep-o.Gap) }

func (s *shape) row(o *observation) [4]float64 {
	f := s.after.Of(o.Gap)
	return [4]float64{f, f * float64(o.Tracked), float64(o.Objects), float64(o.Bytes)}
}

func (s *shape) predict(o *observation) (sum float64) {
	for j, v := range s.row(o) {
		sum += v * s.x[j]
	}
	return sum
}

// The nonlinear parameters are tried at these values, which are about evenly spaced on a
// logarithmic scale.
var (
	stretches = []float64{1, 1.05, 1.1, 1.15, 1.2, 1.27, 1.35, 1.42, 1.5, 1.62, 1.75, 1.87, 2, 2.17, 2.35, 2.55, 2.75, 3, 3.25, 3.6, 4, 4.5, 5, 6, 8}
	sweeps    = []time.Duration{0, 1e5, 14e4, 2e5, 28e4, 4e5, 57e4, 8e5, 113e4, 16e5, 226e4, 32e5, 45e5, 64e5, 91e5, 128e5, 181e5, 256e5, 362e5, 512e5, 724e5, 1024e5}
)

// fitShape improves the nonlinear parameters one after the other, until no value helps.
func fitShape(all []observation) shape {
	best := shape{stretch: 1}
	least := best.linear(all)
	try := func(s shape) {
		if off := s.linear(all); off < least*0.995 { // a simpler one that is as good stays
			best, least = s, off
		}
	}
	for range 4 {
		before := least
		for _, v := range stretches {
			s := best
			s.stretch = v
			try(s)
		}
		for _, v := range sweeps {
			s := best
			s.sweep = v
			try(s)
		}
		s := best
		for range 3 { // each makes the other better
			s.after = s.curve(all)
			s.linear(all)
		}
		try(s)
		if least == before {
			break
		}
	}
	var starts []time.Duration
	for _, o := range all {
		if o.Start >= 0 {
			starts = append(starts, max(0, o.Start-best.unswept(&o)))
		}
	}
	best.start = min(median(starts), time.Duration(best.x[0]))
	return best
}

// gaps are the times since the last cycle at which the curve has points.
var gaps = []time.Duration{1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8}

// leastAtGap is the least number of cycles for a point of the curve.
const leastAtGap = 8

// curve finds the effect of the time since the last cycle on a mark. For each gap it takes the
// factor with the least absolute deviations, relative to the length of the cycle. That is a
// weighted median of measured over expected marks. The weight of a cycle is its mark's share of
// its length. The mean factor over all cycles is 1.
func (s shape) curve(all []observation) (c sim.Curve) {
	type ratio struct{ factor, weight float64 }
	near := make([][]ratio, len(gaps))
	s.after = nil
	for i := range all {
		o := &all[i]
		k := 0
		for k+1 < len(gaps) && float64(o.Gap)*float64(o.Gap) > float64(gaps[k])*float64(gaps[k+1]) {
			k++
		}
		if mark := s.x[0] + s.x[1]*float64(o.Tracked); mark > 0 {
			rest := s.predict(o) - mark
			near[k] = append(near[k], ratio{max(0, s.work(o)-rest) / mark, mark / (mark + rest)})
		}
	}
	sum, n := 0.0, 0
	for k, ratios := range near {
		if len(ratios) < leastAtGap {
			continue
		}
		slices.SortFunc(ratios, func(a, b ratio) int { return cmp.Compare(a.factor, b.factor) })
		half := 0.0
		for _, r := range ratios {
			half += r.weight / 2
		}
		i := 0
		for ; half > ratios[i].weight; i++ {
			half -= ratios[i].weight
		}
		c = append(c, sim.CurvePoint{At: gaps[k], Factor: ratios[i].factor})
		sum, n = sum+ratios[i].factor*float64(len(ratios)), n+len(ratios)
	}
	for k := range c {
		c[k].Factor *= float64(n) / sum
	}
	return c
}

// linear fits x by least absolute deviations, relative to the length of the cycle. It repeats a
// least-squares fit in which cycles with large deviations weigh less. It returns the mean
// deviation.
func (s *shape) linear(all []observation) float64 {
	weight := make([]float64, len(all))
	for i := range weight {
		weight[i] = 1
	}
	off := 0.0
	for range 8 {
		s.x = s.solve(all, weight)
		off = 0
		for i := range all {
			length := float64(all[i].Held + all[i].Working)
			r := math.Abs(s.work(&all[i])-s.predict(&all[i])) / max(1, length)
			off += r
			weight[i] = 1 / (max(r, 0.02) * max(1, length*length))
		}
	}
	return off / float64(len(all))
}

// solve returns the nonnegative x with the least weighted squares. It improves one coordinate
// after the other.
func (s *shape) solve(all []observation, weight []float64) (x [4]float64) {
	var a [4][4]float64
	var b [4]float64
	for i := range all {
		o := &all[i]
		row := s.row(o)
		for j := range row {
			for k := range row {
				a[j][k] += weight[i] * row[j] * row[k]
			}
			b[j] += weight[i] * row[j] * s.work(o)
		}
	}
	for range 200 {
		for j := range x {
			if a[j][j] == 0 {
				continue
			}
			sum := b[j]
			for k := range x {
				if k != j {
					sum -= a[j][k] * x[k]
				}
			}
			x[j] = max(0, sum/a[j][j])
		}
	}
	return x
}

// The numbers of quantiles for the noise of a fitted machine and for its stalls. Stalls are rarer.
const (
	noiseQuantiles = 101
	stallQuantiles = 11
)

// noise returns the distribution of measured over expected lengths, and of the lengths of
// stalls. It uses only cycles that held the program, since their lengths are pauses, unless
// there are too few.
func (s *shape) noise(all []observation) (sim.Noise, sim.Stall) {
	held := slices.DeleteFunc(slices.Clone(all), func(o observation) bool { return o.Working*10 >= o.Held })
	if len(held) < noiseQuantiles {
		held = all
	}
	var ratios, excess []float64
	for i := range held {
		if p := s.predict(&held[i]); p > 0 {
			w := s.work(&held[i])
			ratios, excess = append(ratios, max(0, w/p)), append(excess, w-p)
		}
	}
	if len(ratios) < 2 {
		return nil, sim.Stall{}
	}
	return split(ratios, excess)
}

// A cycle has stalled if it takes longer than expected by more than leastStall, and by a larger
// factor than the noise of the others explains. The bound for the factor is Tukey's outer fence:
// three times the interquartile range above the third quartile (Exploratory Data Analysis, 1977,
// 2D).
//
// Stalls come in bursts: in a calibration of 55 s, two tenths of the cycles had two thirds of
// the stalls (results/2026-11-22-fidelity). So the share of stalls is the median over parts of
// some seconds, which is the share that most runs have.
const (
	leastStall = float64(500 * time.Microsecond)
	fence      = 3
	mostParts  = 10
	leastPart  = 50 // cycles
)

// split separates stalls from noise. Ratios are measured over expected lengths of cycles in
// order; excess is the difference in ns.
func split(ratios, excess []float64) (sim.Noise, sim.Stall) {
	quarter := quantiles(ratios, 5)
	most := quarter[3] + fence*(quarter[3]-quarter[1])
	parts := max(1, min(mostParts, len(ratios)/leastPart))
	shares := make([]float64, parts)
	var rest, stalls []float64
	for i, ratio := range ratios {
		if ratio <= most || excess[i] <= leastStall {
			rest = append(rest, ratio)
			continue
		}
		stalls = append(stalls, excess[i])
		shares[i*parts/len(ratios)] += float64(parts) / float64(len(ratios))
	}
	n, share := quantiles(rest, noiseQuantiles), quantiles(shares, 3)[1]
	if share == 0 {
		return n, sim.Stall{}
	}
	return n, sim.Stall{Share: share, Length: quantiles(stalls, stallQuantiles)}
}

// quantiles returns n evenly spaced quantiles of values. There must be a value.
func quantiles(values []float64, n int) []float64 {
	values = slices.Sorted(slices.Values(values))
	q := make([]float64, n)
	for k := range q {
		at := float64(k) / float64(n-1) * float64(len(values)-1)
		i := min(int(at), max(0, len(values)-2))
		next := values[min(i+1, len(values)-1)]
		q[k] = values[i] + (at-float64(i))*(next-values[i])
	}
	return q
}

// check compares a shape with test cycles.
func (s *shape) check(all []observation) Fit {
	var said, took float64
	var off []float64
	for i := range all {
		p, w := s.predict(&all[i]), s.work(&all[i])
		said += p
		took += w
		off = append(off, math.Abs(w-p)/max(1, p))
	}
	slices.Sort(off)
	return Fit{Cycles: len(all), Total: said / max(1, took), Half: off[len(off)/2], Most: off[len(off)*9/10]}
}
