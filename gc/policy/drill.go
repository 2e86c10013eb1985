package policy

import (
	"math"
	"time"
)

// Drills find out how early to start a cycle. A drill takes memory to end at a place where it does not: for how long
// would a cycle have held the program that started so many grains before, and how many bytes would it have given up?
// That is known once the program gets there. So every grain is a drill, and each margin takes one look at a ring of when
// the last grains were reached. Each guess has its own: of when total and guess first reached them.
type drills struct {
	grain  int64 // bytes: budget / drillGrains, about
	rings  [guesses]ring
	scores [guesses][margins]score
	sum    float64 // of the weights in scores

	guess, margin int     // the start of the least cost
	plain         int     // the margin of the least cost without a guess
	cost          float64 // ns that a cycle of the chosen start costs on average
}

const (
	drillGrains = 64
	ringGrains  = 2 * drillGrains
	margins     = 7           // 0, and 1 to 32 grains
	keepScore   = 1 - 1./2048 // a grain: the last 32 budgets count most
	wallWeight  = 32          // of the place at which headroom really ends, or did when the last cycle started, in grains
)

// A moment is where a program is.
type moment struct {
	time   time.Duration // that it has run, pauses and slowdown not counted
	total  int64         // bytes that would be live had no cycle freed any
	waited time.Duration // of that time
}

// A ring is when a guess first reached each of the last grains.
type ring struct {
	reached [ringGrains]moment
	next    int64 // grain to be reached next
}

func (r *ring) at(grain int64) *moment { return &r.reached[uint64(grain)%ringGrains] }

func (r *ring) reach(grain int64, now moment) {
	for r.next = max(r.next, grain-ringGrains+1); r.next <= grain; r.next++ {
		*r.at(r.next) = now
	}
}

// A score is what a start has cost in drills, the last ones counting most.
type score struct {
	hidden float64 // cycles by which the program was held and slowed for less than one
	early  float64 // bytes given up
}

// A scene is what drills see.
type scene struct {
	now      moment
	top      int64             // total, once the request is granted
	guess    *[guesses]float64 // bytes
	used     int               // how many of the guesses
	g, slow  float64           // length of a cycle in ns; how it slows the program
	price    float64           // of a byte, in ns
	budget   int64             // live bytes at which headroom ends
	headroom int64             // that a cycle leaves
	walls    [2]int64          // totals at which headroom ends, and ended when the last cycle started
}

// marginOf is a margin in bytes.
func (d *drills) marginOf(margin int) int64 { return int64(1) << margin >> 1 * d.grain }

// room is the room with which a cycle starts.
func (d *drills) room(guess *[guesses]float64) float64 {
	return guess[d.guess] + float64(d.marginOf(d.margin))
}

// see judges every grain that is reached now.
func (d *drills) see(s *scene) {
	d.measure(s)
	from, top := d.rings[noGuess].next, s.top/d.grain
	for k := range s.used {
		d.rings[k].reach(min((s.top+int64(s.guess[k]))/d.grain, top+drillGrains), s.now)
	}
	if from > top {
		return
	}
	for wall := max(from, top-drillGrains); wall <= top; wall++ {
		d.judge(wall, s)
	}
	d.choose(s)
}

// measure sets the grain, and forgets the rings if it has changed much.
func (d *drills) measure(s *scene) {
	grain := max(1, s.budget/drillGrains)
	if 4*grain > 3*d.grain && 2*grain < 3*d.grain {
		return
	}
	d.grain = grain
	here := s.now.total / grain
	for k := range d.rings {
		d.rings[k].next = here - ringGrains + 1
		d.rings[k].reach(here, s.now)
	}
}

// judge scores every start for an end of memory at a grain. None starts more than a headroom before: there
// is where the cycle before would have been.
func (d *drills) judge(wall int64, s *scene) {
	w := 1.
	for _, real := range s.walls {
		if wall == (real+d.grain-1)/d.grain {
			w = wallWeight
		}
	}
	keep := 1 - w*(1-keepScore)
	d.sum = keep*d.sum + w
	first := d.rings[noGuess].at(wall - min(max(1, s.headroom/d.grain), drillGrains))
	for k := range s.used {
		for m := range margins {
			q := &d.scores[k][m]
			q.hidden, q.early = keep*q.hidden, keep*q.early
			start := wall - int64(1)<<m>>1
			if start >= d.rings[k].next {
				continue // it would not have started
			}
			x := d.rings[k].at(start)
			if x.total < first.total {
				x = first
			}
			q.hidden += w * s.hidden(x)
			q.early += w * float64(wall*d.grain-x.total)
		}
	}
}

// hidden is the share of a cycle that started at x which the program would not have noticed.
func (s *scene) hidden(x *moment) float64 {
	passed := float64(s.now.time - x.time)
	lost := s.slow * (passed - float64(s.now.waited-x.waited))
	if ran := passed + lost; ran > s.g {
		return 1 - lost/ran
	}
	return passed / max(1, s.g)
}

// pace is for how long a byte lasted lately, in ns.
func (d *drills) pace(now moment) float64 {
	then := d.rings[noGuess].at(d.rings[noGuess].next - 1 - paceOver)
	return float64(now.time-then.time) / float64(max(1, now.total-then.total))
}

// choose takes the start of the least cost: what it does not hide, and the bytes that it gives up at their
// price. Of equal ones it takes the latest, and the one without a guess.
func (d *drills) choose(s *scene) {
	cost := func(k, m int) float64 { return s.price*d.scores[k][m].early - s.g*d.scores[k][m].hidden }
	least := cost(d.guess, d.margin) // mostly it stays
	for k := s.used - 1; k >= 0; k-- {
		for m := margins - 1; m >= 0; m-- {
			if c := cost(k, m); c <= least {
				least, d.guess, d.margin = c, k, m
			}
			if k == noGuess && cost(k, m) <= cost(k, d.plain) {
				d.plain = m
			}
		}
	}
	d.cost = s.g + least/max(1, d.sum)
}

// A price is what freed bytes have cost so far: decaying sums over cycles.
type price struct {
	paid   float64 // ns
	got    float64 // bytes that were freed
	early  float64 // bytes of room at their starts, which later ones would have freed
	cycles float64
}

const keepPrice = 0.85 // per cycle: the last seven count

func (p *price) learn(paid, got, early float64) {
	p.paid = keepPrice*p.paid + paid
	p.got = keepPrice*p.got + got
	p.early = keepPrice*p.early + early
	p.cycles = keepPrice*p.cycles + 1
}

// of returns what a byte is worth, in ns, where drills say that a cycle costs so much: the geometric mean of what cycles
// cost, which feeds on itself, since dear bytes make starts late and late starts make bytes dear, and of what drills say.
// Before the first cycle it is the latter, and a cycle is taken to free all of the budget.
func (p *price) of(drilled float64, budget int64) float64 {
	if p.got <= 0 {
		return drilled / float64(max(1, budget))
	}
	return math.Sqrt(p.paid / p.got * drilled * p.cycles / (p.got + p.early))
}
