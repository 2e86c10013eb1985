package gc

import "math"

// Futures weigh to start a cycle now against to start it later.
type futures struct {
	like    [samples]int64
	path    [horizon]foreseen
	exposes float64 // ns that a cycle started now is to expose, on average
}

const (
	samples = 5    // futures that are looked at
	horizon = 2048 // entries of each
)

// A question is what is asked of the futures.
type question struct {
	now      moment
	request  int64
	g        float64 // program time that a cycle takes, ns
	end      float64 // total at which headroom ends
	price    float64 // ns per byte
	stretch  float64 // of the growth that is foreseen
	surprise float64 // ns that waiting costs beyond what is foreseen
}

// A foreseen is a moment of a future.
type foreseen struct{ time, total, reachable float64 } // ns, bytes

// weigh reports whether to start a cycle now, and if not, the total at which the
// first of the futures has its best place.
func (f *futures) weigh(h *history, q *question) (start bool, next int64) {
	var now, later float64
	next = math.MaxInt64
	like := h.like(f.like[:0])
	f.exposes = 0
	for _, s := range like {
		path, wall := f.follow(h, s, q)
		if len(path) < 2 {
			continue
		}
		interpolate(path)
		c := q.cost(&path[0], wall)
		f.exposes += max(0, path[0].time+q.g-wall) / float64(len(like))
		least, best := math.Inf(1), 0
		for i := 1; i < len(path); i++ {
			if c := q.cost(&path[i], wall); c <= least {
				least, best = c, i
			}
		}
		now, later = now+c, later+least
		next = min(next, int64(path[best].total))
	}
	if next == math.MaxInt64 {
		return false, next
	}
	return now <= later+q.surprise, next
}

// cost is e - price D of a cycle started at a place.
func (q *question) cost(x *foreseen, wall float64) float64 {
	return max(0, x.time+q.g-wall) - q.price*(x.total-x.reachable)
}

// follow returns what comes if what followed entry s happens again, up to the end
// of headroom, and its time. Past the newest entry it goes round: the program is
// taken to repeat what it did since. The first place is the present.
func (f *futures) follow(h *history, s int64, q *question) (path []foreseen, wall float64) {
	base, last, newest := h.at(s), h.at(h.last), h.at(h.head-1)
	lap := moment{newest.time - base.time, newest.total - base.total}
	shift := moment{last.time - base.time, last.total - base.total}
	now := foreseen{float64(q.now.time), float64(q.now.total), float64(base.reachable)}
	f.path[0] = now
	n, first := 1, s
	for range 2 * remembered {
		if s++; s == h.head {
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
		n++
		top := x.total + float64(e.request)
		if top+q.stretch*(top-now.total) > q.end {
			return f.path[:n], x.time
		}
		if n == horizon {
			break
		}
	}
	return f.path[:n], math.Inf(1)
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
