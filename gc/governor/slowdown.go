package governor

import (
	"math"
	"time"
)

const (
	keepProgress = 0.95 // decay per cycle: the last twenty count
	mostSlowdown = 8
	sure         = 3    // standard deviations by which a loss is reduced
	certainShare = 0.05 // of the time beside cycles: a loss is certain to less than that
	ratioBins    = 32   // of ratios, for a factor of two
	leastRatios  = 8    // effective number of ratios from which on their median is known
	mostUnsure   = 0.2  // standard error of the median's logarithm above which it is unknown
)

// A loss is sums over the last cycles, in ns.
type loss struct {
	along float64 // time beside cycles
	lost  float64 // time, beside cycles and near them, beyond what was expected
	noise float64 // variances of the times that make up lost, in ns²: without a cycle they differ, too
}

// add adds a time. One pause of the program must not outweigh all else, so a loss counts up to most.
func (l *loss) add(beside time.Duration, lost, variance float64, most time.Duration) {
	l.along += float64(beside)
	l.lost += min(max(lost, -float64(most)), float64(most))
	l.noise += min(variance, float64(most)*float64(most))
}

func (l *loss) fade() {
	l.along *= keepProgress
	l.lost *= keepProgress
	l.noise *= keepProgress
}

// chance returns what chance may have added to the loss.
func (l *loss) chance() float64 { return sure * math.Sqrt(l.noise) }

func (l *loss) certain() bool { return l.chance() < certainShare*l.along }

func (l *loss) slowdown() float64 {
	lost := max(0, l.lost-l.chance())
	return lost / max(l.along-lost, lost/mostSlowdown, 1)
}

// ratios are a distribution over the last cycles: how long times beside a cycle were, as multiples
// of the usual ones. Long times weigh more.
type ratios struct {
	bins    [8 * ratioBins]float64 // weights, by the logarithm of the ratio, from 1/16 to 16
	sum     float64                // of the weights
	squares float64                // sum of the squares of the weights
	added   bool                   // since the last fade
}

func (d *ratios) add(took, usual float64) {
	i := int(ratioBins*(math.Log2(took/max(usual, 1))+4) + 0.5)
	d.bins[min(max(i, 0), len(d.bins)-1)] += usual
	d.sum += usual
	d.squares += usual * usual
	d.added = true
}

// fade lowers the weights after a cycle that has added some. Cycles that hold the program add none.
func (d *ratios) fade() {
	if !d.added {
		return
	}
	d.added = false
	for i := range d.bins {
		d.bins[i] *= keepProgress
	}
	d.sum *= keepProgress
	d.squares *= keepProgress * keepProgress
}

// quantile returns the logarithm of the ratio below which a share of the weights lies.
func (d *ratios) quantile(share float64) float64 {
	left, i := share*d.sum, 0
	for ; i < len(d.bins)-1 && left > d.bins[i]; i++ {
		left -= d.bins[i]
	}
	return math.Ln2 * ((float64(i)-0.5+left/max(d.bins[i], left, 1))/ratioBins - 4)
}

// slowdown returns the median less 1, or 0 if it is not known well enough. Of a normal distribution,
// the standard error of the median is 1.25 standard deviations divided by the root of the number, and
// the quartiles are 1.35 standard deviations apart.
func (d *ratios) slowdown() float64 {
	n := d.sum * d.sum / max(d.squares, 1)
	if n < leastRatios || 1.25/1.35*(d.quantile(0.75)-d.quantile(0.25)) > mostUnsure*math.Sqrt(n) {
		return 0
	}
	return min(max(0, math.Exp(d.quantile(0.5))-1), mostSlowdown)
}
