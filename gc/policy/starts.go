package policy

import (
	"math"
	"time"
)

// starts scores how early to start a cycle. Suppose that memory ended at the grain that the program has just reached: for how
// long would a cycle have held the program that started so many grains before, and how many bytes would it have given up?
// A ring of when the last grains were reached says so at once, for every margin and at every grain.
// Each guess has a ring of its own: of when total and guess first reached them.
type starts struct {
	grain int64 // bytes: budget / budgetGrains, about
	rings [guesses]ring

	// What each start has cost, the last grains counting most: cycles by which the program was held and slowed
	// for less than one, and bytes given up.
	hidden, early [guesses][margins]float64
	sum           float64 // of the weights in these sums

	guess, margin int     // the start of the least cost
	cost          float64 // ns that a cycle of that start costs on average
}

const (
	budgetGrains = 64
	ringGrains   = 2 * budgetGrains
	margins      = 7           // 0, and 1 to 32 grains
	keepScore    = 1 - 1./2048 // a grain: the last 32 budgets count most
	endWeight    = 32          // of the place at which headroom really ends, or did when the last cycle started, in grains
	paceOver     = 4           // grains over which the pace is taken
)

// A moment is where a program is.
type moment struct {
	time   time.Duration // that it has run, pauses not counted
	total  int64         // bytes that would be live had no cycle freed any
	waited time.Duration // of that time
}

// since is how long a cycle that started at x has run by now, if it slows what the program does but not its waits.
func (now *moment) since(x *moment, slow float64) float64 {
	passed := now.time - x.time
	return float64(passed) + slow*float64(passed-(now.waited-x.waited))
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

// A view is one point, as starts sees it.
type view struct {
	now      moment
	top      int64     // total, once the request is granted
	guess    []float64 // bytes; the first is 0
	g, slow  float64   // length of a cycle in ns; how it slows the program
	worth    float64   // of a byte, in ns
	budget   int64     // live bytes at which headroom ends
	headroom int64     // that the last cycle left
	ends     [2]int64  // totals at which headroom ends, and ended when the last cycle started
}

// room is the room with which a cycle starts.
func (d *starts) room(guess []float64) float64 {
	return guess[d.guess] + float64(int64(1)<<d.margin>>1*d.grain)
}

// see judges every grain that is reached now.
func (d *starts) see(s *view) {
	if grain := max(1, s.budget/budgetGrains); 4*grain <= 3*d.grain || 2*grain >= 3*d.grain { // it has changed much
		d.grain = grain
		for k := range d.rings {
			d.rings[k].next = -ringGrains
			d.rings[k].reach(s.now.total/grain, s.now)
		}
	}
	from, top := d.rings[noGuess].next, s.top/d.grain
	for k, guess := range s.guess {
		d.rings[k].reach(min((s.top+int64(guess))/d.grain, top+budgetGrains), s.now)
	}
	for end := max(from, top-budgetGrains); end <= top; end++ {
		d.judge(end, s)
	}
}

// judge scores every start for an end of memory at a grain, and takes the one of the least cost: the part of a cycle that it does not
// hide, and the bytes that it gives up at their worth. Of equal ones it takes the latest, and the one without a guess.
// None starts more than a headroom before: there is where the cycle before would have been.
func (d *starts) judge(end int64, s *view) {
	w := 1.
	for _, real := range s.ends {
		if end == (real+d.grain-1)/d.grain {
			w = endWeight
		}
	}
	keep := 1 - w*(1-keepScore)
	d.sum = keep*d.sum + w
	first := d.rings[noGuess].at(end - min(max(1, s.headroom/d.grain), budgetGrains))
	least, share := math.Inf(1), 1/max(1, s.g)
	for k := len(s.guess) - 1; k >= 0; k-- {
		for m := margins - 1; m >= 0; m-- {
			hidden, early := 0., 0. // as if it would not have started
			if start := end - int64(1)<<m>>1; start < d.rings[k].next {
				x := d.rings[k].at(start)
				if x.total < first.total {
					x = first
				}
				passed, ran := float64(s.now.time-x.time), s.now.since(x, s.slow)
				if hidden = passed * share; ran > s.g {
					hidden = passed / ran
				}
				early = float64(end*d.grain - x.total)
			}
			d.hidden[k][m] = keep*d.hidden[k][m] + w*hidden
			d.early[k][m] = keep*d.early[k][m] + w*early
			if cost := s.worth*d.early[k][m] - s.g*d.hidden[k][m]; cost <= least {
				least, d.guess, d.margin = cost, k, m
			}
		}
	}
	d.cost = s.g + least/d.sum
}

// pace is for how long a byte lasted lately, in ns.
func (d *starts) pace(now moment) float64 {
	then := d.rings[noGuess].at(d.rings[noGuess].next - 1 - paceOver)
	return float64(now.time-then.time) / float64(max(1, now.total-then.total))
}
