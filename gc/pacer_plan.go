package gc

import "time"

// A plan is the place at which the next cycle is to start.
type plan struct {
	made   bool
	target int64         // entry of the history; the cycle starts once the match is there
	wall   time.Duration // when headroom ends
	end    float64       // the same in the time of a cycle
	slow   float64       // of the program beside a cycle
}

const noTarget = 1<<63 - 1

// make finds the place with the least delay - price D among those from now to the
// end of headroom, at which the total exceeds end, for a cycle of length g beside which
// the program is slowed. It leaves no target if the forecast does not reach so far.
func (q *plan) make(h *history, now moment, end int64, g, slow, price float64) {
	*q = plan{made: true, target: noTarget, slow: slow}
	f := h.forecast(now)
	var last int64
	for s := h.match + 1; ; s++ {
		e, ok := f.at(s)
		if !ok {
			return
		}
		last, q.wall, q.end = s, time.Duration(e.time), e.beside(slow)
		if e.total+e.request > float64(end) {
			break
		}
	}
	r := ramp{to: h.reachableBefore(h.match), next: h.match}
	over := h.match // entry at which a cycle that starts at s is over
	least := 0.0
	for s := h.match; s <= last; s++ {
		e, _ := f.at(s)
		reachable := r.at(&f, s, last, e.total)
		begin := e.beside(slow)
		delay := max(0, begin+g-q.end)
		if slow > 0 {
			stop := min(begin+g, q.end)
			over = f.reach(over, last, stop, slow)
			delay += slow * (f.worked(over, stop, slow) - e.worked())
		}
		cost := delay - price*(e.total-reachable)
		if q.target == noTarget || cost <= least {
			least, q.target = cost, s
		}
	}
}

// exposes returns the ns that a cycle of length g is to expose if it starts now.
func (q *plan) exposes(now moment, g time.Duration) float64 {
	if !q.made || q.target == noTarget {
		return 0
	}
	return max(0, beside(float64(now.time), float64(now.waited), q.slow)+float64(g)-q.end)
}

// A ramp interpolates what is reachable between the entries at which it is known.
type ramp struct {
	from, to     int64
	begin, width float64
	next         int64
}

// at returns the bytes reachable at entry s, which has the given total.
func (r *ramp) at(f *forecast, s, last int64, total float64) float64 {
	if s >= r.next {
		r.from, r.begin, r.width = r.to, total, 0
		for r.next = s + 1; r.next <= last; r.next++ {
			if e, _ := f.at(r.next); e.reachable != unknown {
				r.to, r.width = e.reachable, e.total-total
				break
			}
		}
		if e, _ := f.at(s); e.reachable != unknown {
			r.from = e.reachable
		}
	}
	if r.width <= 0 {
		return float64(r.from)
	}
	return float64(r.from) + float64(r.to-r.from)*(total-r.begin)/r.width
}

// A forecast is the future, if what followed the match happens again. Past the
// newest entry it goes round: the program is taken to repeat what it did since
// the match.
type forecast struct {
	*history
	now, from moment // the present, and the match
	lag       int64
	lap       moment // from the match to the newest entry
	pace      float64
}

// A foreseen is an entry of a forecast. Time and total are absolute.
type foreseen struct {
	time, total, waited float64 // ns, bytes, ns
	request             float64
	reachable           int64
}

// beside is the time that a cycle runs until the program, slowed by it, is there. Its
// differences count.
func (e *foreseen) beside(slow float64) float64 { return beside(e.time, e.waited, slow) }

func beside(time, waited, slow float64) float64 { return time + slow*(time-waited) }

// worked is the time in which the program did not wait.
func (e *foreseen) worked() float64 { return e.time - e.waited }

// worked returns the same at a moment of a cycle's time between entries s-1 and s: a
// wait begins at an entry.
func (f *forecast) worked(s int64, stop, slow float64) float64 {
	from, _ := f.at(s - 1)
	to, _ := f.at(s)
	return max(from.worked(), to.worked()-(to.beside(slow)-stop)/(1+slow))
}

// reach returns the first entry from s on that a cycle has reached at a moment of its time,
// and at most the last.
func (f *forecast) reach(s, last int64, stop, slow float64) int64 {
	for ; s < last; s++ {
		if e, _ := f.at(s); e.beside(slow) >= stop {
			break
		}
	}
	return s
}

// forecast returns the future as seen from now. The caller has a match.
func (h *history) forecast(now moment) forecast {
	from, to := h.at(h.match).moment, h.at(h.head-1).moment
	return forecast{history: h, now: now, from: from, lag: h.head - 1 - h.match, pace: h.pace(),
		lap: moment{to.time - from.time, to.total - from.total, to.waited - from.waited}}
}

// at returns entry s of the forecast, which counts on from the match; ok is
// false where nothing is foreseen.
func (f *forecast) at(s int64) (e foreseen, ok bool) {
	var laps int64
	if s >= f.head {
		if f.lag <= 0 || s >= f.head+remembered {
			return e, false
		}
		laps = (s-f.head)/f.lag + 1
	}
	x := f.history.at(s - laps*f.lag)
	return foreseen{
		time:      float64(f.now.time) + f.pace*float64(x.time-f.from.time+time.Duration(laps)*f.lap.time),
		total:     float64(f.now.total + x.total - f.from.total + laps*f.lap.total),
		waited:    float64(f.now.waited) + f.pace*float64(x.waited-f.from.waited+time.Duration(laps)*f.lap.waited),
		request:   float64(x.request),
		reachable: x.reachable,
	}, true
}
