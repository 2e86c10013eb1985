package policy

import (
	"math"
	"time"
)

// starts scores how early to start a cycle. It supposes that memory ended at the grain that the
// program has just reached. It then looks at cycles that would have started some grains before.
// The score of a start is the time for which it would have held the program, and the bytes that it
// would have given up. A ring of the times at which the last grains were reached gives the answer
// for every margin at once. Each guess has a ring of its own, for the times at which total plus
// guess first reached the grains.
type starts struct {
	grain int64 // bytes, about budget / budgetGrains
	rings [guesses]ring

	// Scores of each start; the last grains count most. Hidden is the part of a cycle that would
	// not have held or slowed the program, in cycles. Early is the bytes given up.
	hidden, early [guesses][margins]float64
	sum           float64 // of the weights in these sums

	// Foreseen is the part of a cycle that a guess was to hide when it was followed. Hid is the part
	// that was hidden. Decaying sums over starts.
	foreseen, hid [guesses]float64

	guess, margin int     // the start that costs least
	cost          float64 // average cost of a cycle with that start, in ns
}

const (
	budgetGrains = 64
	ringGrains   = 2 * budgetGrains
	margins      = 7           // 0, and 1 to 32 grains
	keepScore    = 1 - 1./2048 // decay per grain: the last 32 budgets count most
	endWeight    = 32          // weight, in grains, of a place where headroom ends, or did at the last start
	paceOver     = 4           // grains over which the pace is measured
	keepHid      = 0.98        // decay per start: the last 50 count
	trustAtFirst = 2           // cycles that each guess counts as having hidden
	lastGrain    = math.MaxInt64 - 1
)

// A moment is a position of the program.
type moment struct {
	time  time.Duration // that it has run, without pauses
	total int64         // bytes that would be live if no cycle had freed any
}

// A ring holds the moments at which a guess first reached each of the last grains.
type ring struct {
	reached [ringGrains]moment
	next    int64 // next grain to be reached
}

func (r *ring) at(grain int64) *moment { return &r.reached[uint64(grain)%ringGrains] }

func (r *ring) reach(grain int64, now moment) {
	grain = min(grain, lastGrain)
	for r.next = max(r.next, grain-ringGrains+1); r.next <= grain; r.next++ {
		*r.at(r.next) = now
	}
}

// A view is one point as starts sees it.
type view struct {
	now      moment
	top      int64     // total, once the request is granted
	guess    []float64 // bytes; the first is 0
	g, slow  float64   // length of a cycle in ns; slowdown beside it
	worth    float64   // of a byte, in ns
	budget   int64     // live bytes at which headroom ends
	headroom int64     // headroom that the last cycle left
	ends     [2]int64  // totals at which headroom ends now, and ended when the last cycle started
}

// room returns the room below which a cycle starts.
func (d *starts) room(guess []float64) float64 {
	return guess[d.guess] + float64(int64(1)<<d.margin>>1*d.grain)
}

// see judges every grain that the program reaches at this point.
func (d *starts) see(s *view) {
	if grain := max(1, s.budget/budgetGrains); 4*grain <= 3*d.grain || 2*grain >= 3*d.grain { // the budget has changed much
		d.grain = grain
		for k := range d.rings {
			d.rings[k].next = -ringGrains
			d.rings[k].reach(s.now.total/grain, s.now)
		}
	}
	from, top := d.rings[noGuess].next, min(s.top/d.grain, lastGrain)
	for k, guess := range s.guess {
		d.rings[k].reach(min((s.top+int64(guess))/d.grain, top+budgetGrains), s.now)
	}
	for end := max(from, top-budgetGrains); end <= top; end++ {
		d.judge(end, s)
	}
}

// settle notes which part of a cycle a guess was to hide, and which part was hidden. Foreseen is 0 if
// the last start followed no guess.
func (d *starts) settle(guess int, foreseen, hid float64) {
	for k := range d.hid {
		d.foreseen[k] *= keepHid
		d.hid[k] *= keepHid
	}
	if foreseen > 0 {
		d.foreseen[guess] += foreseen
		d.hid[guess] += hid
	}
}

// fails reports whether a guess has hidden less than half as much as it was to hide. Such a guess
// counts as hiding nothing. In time that is forgotten, and the guess is tried again.
func (d *starts) fails(guess int) bool {
	return d.hid[guess]+trustAtFirst < (d.foreseen[guess]+trustAtFirst)/2
}

// hides returns the part of a cycle that the start which costs least has hidden on average.
func (d *starts) hides() float64 { return d.hidden[d.guess][d.margin] / max(1, d.sum) }

// judge scores every start for an end of memory at a grain, and takes the start that costs least.
// The cost is the part of a cycle that the start does not hide, plus the worth of the bytes that
// it gives up. These are the bytes allocated from the start to the end, without headroom that was
// too small for the last request. Of equal starts it takes the latest, and then the one without a
// guess. No start is more than a headroom before the end, because the previous cycle would have been
// there.
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
	least, share, most := math.Inf(1), 1/max(1, s.g), 1/(1+s.slow)
	for k := len(s.guess) - 1; k >= 0; k-- {
		g := s.g
		if d.fails(k) {
			g = 0
		}
		for m := margins - 1; m >= 0; m-- {
			hidden, early := 0., 0. // for a cycle that would not have started
			if start := end - int64(1)<<m>>1; start < d.rings[k].next {
				x := d.rings[k].at(start)
				if x.total < first.total {
					x = first
				}
				hidden = min(float64(s.now.time-x.time)*share, most)
				early = float64(max(0, min(end*d.grain, s.now.total)-x.total))
			}
			d.hidden[k][m] = keep*d.hidden[k][m] + w*hidden
			d.early[k][m] = keep*d.early[k][m] + w*early
			if cost := s.worth*d.early[k][m] - g*d.hidden[k][m]; cost <= least {
				least, d.guess, d.margin = cost, k, m
			}
		}
	}
	d.cost = s.g + least/d.sum
}

// pace returns for how long a byte has lasted lately, in ns.
func (d *starts) pace(now moment) float64 {
	then := d.rings[noGuess].at(d.rings[noGuess].next - 1 - paceOver)
	return float64(now.time-then.time) / float64(max(1, now.total-then.total))
}
