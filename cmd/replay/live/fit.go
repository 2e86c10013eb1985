package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// An observation is one cycle of a live run, with the numbers that its length depends on.
type observation struct {
	Held    time.Duration // of the cycle, while the program was held or waited for the device
	Working time.Duration // of the cycle, while the program worked
	Gap     time.Duration // from the end of the cycle before it to its begin
	Tracked int           // objects that the collector knew
	Objects int           // objects that it gave back
	Bytes   int64         // bytes that it gave back, if giving them back depends on how many they are
	Start   time.Duration // until its mark began, as far as is known; negative: it is not
}

// A Fit says how well a machine explains cycles that it was not fitted to: every
// second one.
type Fit struct {
	Cycles int     // that were kept apart
	Total  float64 // predicted time of all, over the measured one
	Half   float64 // half of them are off by at most this, as a share
	Most   float64 // nine of ten are
}

// String says it in a sentence.
func (f Fit) String() string {
	return fmt.Sprintf("of %d cycles kept apart, half are within %.0f %% of what the model says and nine of ten within %.0f %%; all together took %.2f times as long",
		f.Cycles, 100*f.Half, 100*f.Most, 1/f.Total)
}

// minObservations is how few cycles can be fitted: half of them are for the check.
const minObservations = 16

// fitMachine finds the machine on which cycles take what was observed, for an app
// with a Go heap of so many bytes with pointers. Its cost of a mark is that of this
// heap. It returns an error if there are too few cycles to say.
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

// A shape is the fitted model: with the program held, a cycle takes x[0] and x[1] for
// each object tracked, both times a factor by the time since the last one, x[2] for each
// object given back, x[3] for each byte given back, and the rest of the last one's sweep.
type shape struct {
	x       [4]float64 // ns
	stretch float64
	sweep   time.Duration
	after   sim.Curve
	start   time.Duration
}

// work is how long o would have taken with the program held, without what was
// left to sweep.
func (s *shape) work(o *observation) float64 {
	return float64(o.Held) + float64(o.Working)/s.stretch - float64(s.unswept(o))
}

// unswept is how long the sweep of the last cycle still took when o was asked for.
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

// What is not linear is tried: some values each, about evenly spaced in their
// logarithm.
var (
	stretches = []float64{1, 1.05, 1.1, 1.15, 1.2, 1.27, 1.35, 1.42, 1.5, 1.62, 1.75, 1.87, 2, 2.17, 2.35, 2.55, 2.75, 3, 3.25, 3.6, 4, 4.5, 5, 6, 8}
	sweeps    = []time.Duration{0, 1e5, 14e4, 2e5, 28e4, 4e5, 57e4, 8e5, 113e4, 16e5, 226e4, 32e5, 45e5, 64e5, 91e5, 128e5, 181e5, 256e5, 362e5, 512e5, 724e5, 1024e5}
)

// fitShape improves the parts that are not linear, one after the other, until nothing helps.
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

// gaps are the times after a cycle for which the next one is fitted.
var gaps = []time.Duration{1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8}

// leastAtGap is how few cycles say what a gap does.
const leastAtGap = 8

// curve finds what the time since the last cycle does to a mark: the factor near each gap
// that leaves the least absolute deviations, relative to the length of the cycle. That is
// the middle of what marks took over what they would take without a curve, where a cycle
// counts as much as its mark is of it. Over all it is 1 in the mean.
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

// linear fits x by least absolute deviations, relative to the length of the cycle:
// repeated least squares in which a cycle weighs less the further off it is. It
// returns the mean deviation.
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

// solve returns the x, none below 0, with the least weighted squares: one after
// the other, until they stay.
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

// How many quantiles the noise of a fitted machine has, and its stalls, which are few.
const (
	noiseQuantiles = 101
	stallQuantiles = 11
)

// noise is the distribution of how long cycles take, over how long they should, and of how long
// some stall. Only cycles that held the program count, whose lengths are pauses, unless they are
// few.
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

// A cycle has stalled that takes longer than it should by more than leastStall, and by a
// larger share than the noise of the others explains: beyond Tukey's outer fence, which is
// three times the width of the middle half above that (Exploratory Data Analysis, 1977, 2D).
//
// Stalls come in spells: in a calibration of 55 s, two tenths of its cycles had two thirds
// of the stalls (results/2026-11-22-fidelity). So the share is that of the middle one of
// its parts, of some seconds each: most runs see about so much.
const (
	leastStall = float64(500 * time.Microsecond)
	fence      = 3
	mostParts  = 10
	leastPart  = 50 // cycles
)

// split tells stalls from noise, by what cycles in order took over what they should, and
// beyond that in ns.
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

// quantiles returns n evenly spaced quantiles of values, of which there is at least one.
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

// check holds a shape to cycles that it was not fitted to.
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
