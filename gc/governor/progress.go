package governor

import (
	"math"
	"math/bits"
	"time"
)

// A progress learns how much cycles slow the program. It compares the time from one point to the
// next with the time that the program takes from the same place without a cycle. The points before
// a place tell it apart from others, because the rate of a program changes. Counting goroutines
// that wait would not work for a program whose threads belong to C.
type progress struct {
	wanted bool // somebody reads the slowdown; otherwise nothing is learned
	places [1024]place
	tokens [history]uint64 // of the last points
	points int
	here   uint64        // key of the place at the last point
	last   time.Duration // time of the last point
	bytes  int64         // allocated until then
	asked  int64         // bytes of the request there; 0 at a sync
	beside time.Duration // time since then beside a cycle that has settled
	held   time.Duration // the part of it in which the cycle held callers

	began  time.Duration // start of the cycle under way
	length time.Duration // of the last cycle, while it held nobody
	near   time.Duration // until then a loss counts as the last cycle's

	// Decaying sums over cycles, in ns.
	along  float64 // time beside cycles
	loss   float64 // time, beside cycles and near them, beyond what was expected
	noise  float64 // variances of the times that make up loss, in ns²: without a cycle they differ, too
	cycles float64
}

// A place holds what passes between a place and the next point without a cycle.
type place struct {
	key         uint64
	rate        bool    // the time is expected to grow with the bytes
	took, bytes float64 // means: time in ns, bytes allocated
	spread      float64 // mean square of the differences from the expected time, in ns²
	visits      float64 // number of visits in the means, at most mostVisits
	near        bool    // they all followed a cycle closely
}

const (
	history      = 8 // points that tell places apart
	mostVisits   = 16
	leastVisits  = 2
	keepProgress = 0.95 // decay per cycle: the last twenty count
	leastCycles  = 3    // slowdown is 0 before that many cycles
	mostSlowdown = 8
	sure         = 2    // standard deviations by which a loss is reduced
	smallRequest = 1024 // requests below the limit divided by this are alike
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
	if took := at - p.last - p.held; took > 0 && p.points > 0 && p.last >= g.budget.until { // nobody was held
		p.arrive(float64(took), bytes-p.bytes)
	}
	p.last, p.bytes, p.asked, p.beside, p.held = at, bytes, request, 0, 0
	size := request
	if request > 0 {
		size = max(request, small)
	}
	p.tokens[p.points%history] = uint64(bits.Len64(uint64(size)))
	p.points++
	p.here = 0
	for i := range history {
		p.here = (p.here + p.tokens[(p.points+i)%history]) * 0x9e3779b97f4a7c15
		p.here ^= p.here >> 29
	}
}

// forget makes p learn the program's places anew. A cycle may be under way.
func (p *progress) forget() { *p = progress{wanted: p.wanted, began: p.began} }

// arrive learns from what passed since the last point. What counts as near a cycle is known when
// the time begins, so long times do not count more often than short ones. Time alone is compared if
// the governor was asked of all the bytes, and otherwise time per byte.
func (p *progress) arrive(took float64, bytes int64) {
	near := p.beside > 0 || p.last < p.near
	exact, rate := p.place(p.here, false), p.place(^p.here, true)
	var like *place
	switch {
	case bytes == p.asked && exact.visits >= max(leastVisits, rate.visits/2):
		like = exact
	case rate.visits >= leastVisits && rate.bytes > 0 && bytes > 0:
		like = rate
	}
	if like != nil && near {
		most := 2 * float64(p.length) // one pause of the program must not outweigh all else
		p.along += float64(p.beside - p.held)
		p.loss += min(max(took-like.expected(bytes), -most), most)
		p.noise += min(like.spread, most*most)
	}
	if p.beside == 0 {
		rate.learn(took, bytes, near)
		if bytes == p.asked {
			exact.learn(took, bytes, near)
		}
	}
}

// place returns the place with a key. A new place replaces an old one.
func (p *progress) place(key uint64, rate bool) *place {
	x := &p.places[key%uint64(len(p.places))]
	if x.key != key {
		*x = place{key: key, rate: rate}
	}
	return x
}

// expected returns the time to the next point, if so many bytes are allocated until then.
func (x *place) expected(bytes int64) float64 {
	if x.rate && x.bytes > 0 {
		return x.took / x.bytes * float64(bytes)
	}
	return x.took
}

// learn adds a visit. Visits near a cycle count only as long as there are no others.
func (x *place) learn(took float64, bytes int64, near bool) {
	if x.visits == 0 || x.near && !near {
		*x = place{key: x.key, rate: x.rate, near: near}
	}
	if x.near != near {
		return
	}
	if x.visits > 0 {
		off := took - x.expected(bytes)
		x.spread += (off*off - x.spread) / x.visits
	}
	x.visits = min(x.visits+1, mostVisits)
	x.took += (took - x.took) / x.visits
	x.bytes += (float64(bytes) - x.bytes) / x.visits
}

// ended reports that the cycle under way has settled. It held callers for the last part of its
// time, exposed. For as long as it ran without that, losses still count as its own. Sweeping and
// releases go on then, and a program whose device has worked on meanwhile catches up.
func (p *progress) ended(at, exposed time.Duration) {
	p.beside += at - max(p.last, p.began)
	p.held += min(exposed, at-max(p.last, p.began))
	p.length = at - p.began - exposed
	p.near = at + p.length
	for _, sum := range []*float64{&p.along, &p.loss, &p.noise, &p.cycles} {
		*sum *= keepProgress
	}
	p.cycles++
}

// slowdown returns how much longer the program takes beside a cycle, as a share of the time without
// one. It is reduced by what chance may have added to the loss.
func (p *progress) slowdown() float64 {
	if p.cycles < leastCycles {
		return 0
	}
	loss := max(0, p.loss-sure*math.Sqrt(p.noise))
	return min(loss/max(p.along-loss, loss/mostSlowdown, 1), mostSlowdown)
}
