package policy

import "math"

// A plan is the best place to start before headroom ends, if the program does
// again what it did after the match. Unlike what is foreseen for the next
// opportunity, it knows of a wait that is still to come.
type plan struct {
	lead  float64 // bytes from there to the end of headroom
	wall  int64   // that it was made for
	jumps int     // of the match, by then
}

const (
	planEvery = 8 // entries, for drills: less work
	planStep  = 8 // places are closer than an 8th of what is between them and the wall: less work
)

// plan makes those plans anew whose end of headroom has moved, and all if the program does
// something else than it seemed to; also that of the headroom that there is, where it
// is about to be used. Without a match it takes the margin that is best without a guess.
func (p *pacer) plan(at *Point, now moment, budget int64, price float64) {
	eighth := p.past.head%planEvery == 0
	again := func(wall int64) plan {
		lead, ok := p.past.plan(now, wall, float64(at.Cost), at.Slowdown, price)
		if !ok {
			lead = marginOf[p.practice.plain] * float64(budget)
		}
		return plan{lead, wall, p.past.jumps}
	}
	for i, wall := range p.practice.walls {
		if x := &p.practice.plans[i]; x.wall != wall || eighth && x.jumps != p.past.jumps {
			p.practice.follow(i, again(wall))
		}
	}
	x, wall := &p.practice.plans[drills], p.freed+budget
	near := p.practice.guess == planned && float64(wall-now.total-at.Request) <= 2*x.lead+marginOf[p.practice.margin]*float64(budget)
	if x.wall != wall || x.jumps != p.past.jumps || near {
		*x = again(wall)
	}
	p.guess[planned] = x.lead
}

// plan returns at which distance from a wall it is best to start a cycle of length g, 0 if that is where
// headroom ends: where what it exposes and the bytes that it gives up, at their price, cost the least. It takes the
// program to do again what it did from the match on, and, if the wall is farther than
// that, again and again. ok is false if nothing is known.
func (h *history) plan(now moment, wall int64, g, slow, price float64) (lead float64, ok bool) {
	if h.match == 0 {
		return 0, false
	}
	shift := now.total - h.at(h.match).total // of a lap: from the match to the present
	if left := wall - h.at(h.head-1).top(); shift > 0 && left >= 0 {
		shift *= left/shift + 1
	}
	wall -= shift
	last := h.passes(wall)
	if last == h.head {
		return 0, false
	}
	end := h.at(last).beside(slow)
	least, best := math.Inf(1), last
	for s := last; h.kept(s); s -= 1 + (last-s)/planStep {
		e := h.at(s)
		late, early := e.beside(slow)+g-end, price*float64(wall-e.total)
		if late < 0 {
			late = 0
		}
		if late+early < least {
			least, best = late+early, s
		}
		if late == 0 || early >= least || e.total+shift < now.total {
			break
		}
	}
	if best == last {
		return 0, true
	}
	return float64(max(0, wall-h.at(best).top()) + 1), true
}

// passes returns the first entry from the match on with more than so many bytes; head if
// there is none. Few programs free so much by themselves that they come back.
func (h *history) passes(total int64) int64 {
	low, high := h.match, h.head
	for low < high {
		if mid := (low + high) / 2; h.at(mid).top() > total {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
