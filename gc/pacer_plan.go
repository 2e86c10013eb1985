package gc

import "math"

// Futures weigh to start a cycle now against to start it later.
type futures struct {
	like    [sampled]int64
	path    [horizon]foreseen
	exposes float64 // ns that a cycle started now is to expose, on average
}

const (
	sampled = 5    // futures that are looked at
	horizon = 2048 // entries of each
)

// A question is what is asked of the futures.
type question struct {
	now      moment
	request  int64
	g        float64 // program time that a cycle takes, ns
	end      float64 // total at which headroom ends
	limit    float64 // bytes that may be live
	price    float64 // ns per byte
	stretch  float64 // of the growth that is foreseen
	surprise float64 // ns that waiting costs beyond what is foreseen
}

// A foreseen is a moment of a future, a place where a cycle may start.
type foreseen struct{ time, total, top, reachable float64 } // ns, bytes; top is total once the request has been granted

// weigh reports whether to start a cycle now, and if not, the total at which the
// first of the futures has its best place.
func (f *futures) weigh(h *history, q *question) (start bool, next int64) {
	var now, later float64
	next = math.MaxInt64
	like := h.like(f.like[:0])
	f.exposes = 0
	for _, s := range like {
		path, end := f.follow(h, s, q)
		if len(path) < 2 {
			continue
		}
		interpolate(path)
		wall := math.Inf(1)
		if end < len(path) {
			wall = path[end].time
		}
		first, least, best := q.places(path, end, wall)
		now, later = now+first, later+least
		next = min(next, int64(path[best].total))
		f.exposes += max(0, path[0].time+q.g-wall) / float64(len(like))
	}
	return next < math.MaxInt64 && now <= later+q.surprise, next
}

// places returns what a cycle costs at the first place of a path, and the least
// that it costs at a later one up to the end of headroom, which is at the time
// wall, and which place that is.
func (q *question) places(path []foreseen, end int, wall float64) (first, least float64, best int) {
	after := end // where headroom ends after a cycle at the place
	for i := range path[:min(end+1, len(path))] {
		x := &path[i]
		cost := max(0, x.time+q.g-wall) - q.price*(x.total-x.reachable)
		for after < len(path) && path[after].top <= q.limit+x.total-x.reachable {
			after++
		}
		if after < len(path) {
			cost += min(q.g, max(0, x.time+2*q.g-path[after].time))
		}
		if i == 0 {
			first, least = cost, math.Inf(1)
		} else if cost <= least {
			least, best = cost, i
		}
	}
	return first, least, best
}

// follow returns what comes if what followed entry s happens again: up to two
// cycles after the end of headroom, and the place where headroom ends, the number
// of places if that is not in sight. Past the newest entry it goes round: the
// program is taken to repeat what it did since. The first place is the present.
func (f *futures) follow(h *history, s int64, q *question) (path []foreseen, end int) {
	base, last, newest := h.at(s), h.at(h.last), h.at(h.head-1)
	lap := moment{newest.time - base.time, newest.total - base.total}
	shift := moment{last.time - base.time, last.total - base.total}
	now := foreseen{float64(q.now.time), float64(q.now.total), float64(q.now.total + q.request), float64(base.reachable)}
	until := math.Inf(1)
	f.path[0] = now
	n, first := 1, s
	for range 2 * remembered {
		if s++; s == h.head {
			if lap.total <= 0 {
				break
			}
			s = first + 1
			shift.time, shift.total = shift.time+lap.time, shift.total+lap.total
		}
		e := h.at(s)
		total := e.total + shift.total
		if total < q.now.total || total == q.now.total && e.token == 0 {
			continue
		}
		x := &f.path[n]
		x.time, x.total, x.reachable = max(now.time, float64(e.time+shift.time)), float64(total), float64(e.reachable)
		x.top = x.total + float64(e.request)
		if end == 0 && x.top+q.stretch*(x.top-now.total) > q.end {
			end, until = n, x.time+2*q.g
		}
		if n++; n == horizon || x.time > until {
			break
		}
	}
	if end == 0 {
		end = n
	}
	return f.path[:n], end
}

// interpolate fills in what is reachable between the places where it is known.
func interpolate(path []foreseen) {
	known := -1
	for i := range path {
		if path[i].reachable == unknown {
			continue
		}
		for j := known + 1; j < i; j++ {
			path[j].reachable = path[i].reachable
			if known >= 0 {
				a, b := &path[known], &path[i]
				path[j].reachable = a.reachable + (b.reachable-a.reachable)*(path[j].total-a.total)/max(1, b.total-a.total)
			}
		}
		known = i
	}
	for j := known + 1; j < len(path); j++ {
		path[j].reachable = 0
		if known >= 0 {
			path[j].reachable = path[known].reachable
		}
	}
}
