package gc

import "time"

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
}

// beside is the time that a cycle runs until the program, slowed by it, is there. Its
// differences count.
func beside(time, waited, slow float64) float64 { return time + slow*(time-waited) }

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
		time:    float64(f.now.time) + f.pace*float64(x.time-f.from.time+time.Duration(laps)*f.lap.time),
		total:   float64(f.now.total + x.total - f.from.total + laps*f.lap.total),
		waited:  float64(f.now.waited) + f.pace*float64(x.waited-f.from.waited+time.Duration(laps)*f.lap.waited),
		request: float64(x.request),
	}, true
}

// ahead returns the bytes that are foreseen from now, once the request is granted, until a cycle
// of length g would be over that starts at the next entry: with less room than that the
// next one is too late. The caller has a match.
func (h *history) ahead(now moment, request int64, g, slow float64) float64 {
	f := h.forecast(now)
	next, ok := f.at(h.match + 1)
	if !ok {
		return 0
	}
	till := beside(next.time, next.waited, slow) + g
	before := func(s int64) bool {
		e, ok := f.at(s)
		return ok && beside(e.time, e.waited, slow) <= till
	}
	s := h.horizon // of the entry before, mostly
	if s <= h.match || s > h.match+remembered || !before(s) {
		s = h.match + 1
	}
	step := int64(1)
	for ; before(s + step); step <<= 1 {
		s += step
	}
	for ; step > 0; step >>= 1 {
		if before(s + step) {
			s += step
		}
	}
	h.horizon = s
	e, _ := f.at(s)
	return max(0, e.total+e.request-float64(now.total+request))
}
