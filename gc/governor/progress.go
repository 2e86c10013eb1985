package governor

import (
	"math/bits"
	"slices"
	"time"
)

// A progress learns how much cycles slow the program. It compares the time from one point to the
// next with the times that the program takes from the same place without a cycle. The points before
// a place tell it apart from others, because the rate of a program changes. Counting goroutines
// that wait would not work for a program whose threads belong to C.
type progress struct {
	wanted bool // the slowdown is in use; otherwise it is not learned
	places [1024]place
	tokens [history]uint64 // of the last points
	points int
	here   uint64        // key of the place at the last point
	last   time.Duration // time of the last point
	bytes  int64         // allocated until then
	asked  int64         // bytes of the request there; 0 at a sync
	left   time.Duration // time for which a cycle that ran then was expected to go on
	beside time.Duration // time since then beside a cycle that has settled
	held   time.Duration // the part of it in which the cycle held callers

	cycles int           // that have settled
	began  time.Duration // start of the cycle under way
	length time.Duration // of the last cycle, without its held part
	whole  time.Duration // of the last cycle
	near   time.Duration // until then a loss counts as the last cycle's
	loss   loss
	ratios ratios
}

// A place holds the last times that the program took from there to the next point without a cycle.
type place struct {
	key   uint64
	times [9]float64 // in ns, or in ns per byte
	n     int        // times so far
	far   int        // number of cycles before which times near a cycle do not count
}

const (
	history      = 8    // points that tell places apart
	leastTimes   = 3    // times before a place is compared
	leastCycles  = 3    // slowdown is 0 before that many cycles
	farCycles    = 3    // cycles without a time far from one, after which times near one count
	smallRequest = 1024 // requests below the limit divided by this are alike

	mix = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: spreads keys
)

// point notes a point of the program: an allocation of request bytes, or a sync if that is 0. Small
// requests are alike, because chance decides which of them meets a point.
func (p *progress) point(at time.Duration, g *Governor, request, small int64) {
	if !p.wanted {
		return
	}
	_, bytes := g.counted()
	if g.Running {
		p.beside += at - max(p.last, p.began)
	}
	if took := at - p.last - p.held; took > 0 && p.points > 0 && p.last >= g.budget.until { // no caller was held
		p.arrive(float64(took), bytes-p.bytes)
	}
	p.last, p.bytes, p.asked, p.beside, p.held, p.left = at, bytes, request, 0, 0, 0
	if g.Running {
		p.left = p.began + p.whole - at
	}
	size := request
	if request > 0 {
		size = max(request, small)
	}
	p.tokens[p.points%history] = uint64(bits.Len64(uint64(size)))
	p.points++
	p.here = 0
	for i := range history {
		p.here = (p.here + p.tokens[(p.points+i)%history]) * mix
		p.here ^= p.here >> 29
	}
}

// forget makes p learn the program's places anew. A cycle may be under way.
func (p *progress) forget() { *p = progress{wanted: p.wanted, began: p.began} }

// arrive learns from what passed since the last point. What counts as near a cycle is known when
// the time begins, so long times do not count more often than short ones. Time alone is compared if
// the governor was asked of all the bytes. Otherwise the time per byte is compared with that of other
// times with about as many bytes, because a long wait has few.
func (p *progress) arrive(took float64, bytes int64) {
	key, unit := p.here, 1.
	if bytes != p.asked {
		key, unit = ^key^uint64(bits.Len64(uint64(bytes)))*mix, float64(max(bytes, 1))
	}
	x := &p.places[key%uint64(len(p.places))]
	if x.key != key { // a new place replaces an old one
		*x = place{key: key}
	}
	near := p.beside > 0 || p.last < p.near
	if near && x.n >= leastTimes {
		median, mean, variance := x.expected()
		beside, most := p.beside-p.held, p.length
		if p.beside > 0 {
			most = beside // beside a cycle no more can be lost
		}
		p.loss.add(beside, took-mean*unit, variance*unit*unit, most)
		if p.held == 0 && 2*median*unit < float64(p.left) { // the cycle was expected to go on for longer
			p.ratios.add(took, median*unit)
		}
	}
	if p.beside == 0 {
		x.learn(took/unit, near, p.cycles)
	}
}

// learn adds a time. Times near a cycle count only if there have been no others for some cycles.
func (x *place) learn(took float64, near bool, cycles int) {
	if near && cycles < x.far {
		return
	}
	if !near {
		x.far = cycles + farCycles
	}
	x.times[x.n%len(x.times)] = took
	x.n++
}

// expected returns the median, the mean and the variance of the times.
func (x *place) expected() (median, mean, variance float64) {
	times := x.times
	known := times[:min(x.n, len(times))]
	slices.Sort(known)
	for _, t := range known {
		mean += t / float64(len(known))
	}
	for _, t := range known {
		variance += (t - mean) * (t - mean) / float64(len(known)-1)
	}
	return known[len(known)/2], mean, variance
}

// ended reports that the cycle under way has settled. It held callers for the last part of its
// time, exposed. For as long as it ran without that, losses still count as its own. Sweeping and
// releases go on then, and a program whose device has worked on meanwhile catches up.
func (p *progress) ended(at, exposed time.Duration) {
	p.beside += at - max(p.last, p.began)
	p.held += min(exposed, at-max(p.last, p.began))
	p.whole = at - p.began
	p.length = p.whole - exposed
	p.near = at + p.length
	p.loss.fade()
	p.ratios.fade()
	p.cycles++
}

// slowdown returns how much longer the program takes beside a cycle, as a share of the time without
// one. The sum of all losses is the better measure. But chance may be larger than the loss, and the sum
// says nothing if almost all of the cycles held the program. The median of ratios hardly depends on
// chance, but misses a few long losses. Where the sum is not certain, the larger of the two counts,
// because both are too low then.
func (p *progress) slowdown() float64 {
	switch {
	case p.cycles < leastCycles:
		return 0
	case p.loss.along < float64(p.whole):
		return p.ratios.slowdown()
	case p.loss.certain():
		return p.loss.slowdown()
	}
	return max(p.loss.slowdown(), p.ratios.slowdown())
}
