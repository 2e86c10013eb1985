package sim

import (
	"time"

	"github.com/eagergc/eagergc/gc"
)

// A Process is a run that can be held at any moment and whose limit may move, as that of
// a process in a control group does: several of them, each brought to the same time in
// turn, share a machine. It is for one goroutine at a time.
type Process struct {
	w *Workload
	m *base
	i int // the next point
}

// Start begins a run in the base world: cfg has no Machine. Run is Start, and Until
// for ever.
func Start(w *Workload, p gc.Policy, cfg Config) *Process {
	if cfg.Machine != nil {
		panic("sim: a process needs the base world")
	}
	return &Process{w: w, m: newBase(w, p, cfg)}
}

// Until lets the process do what it does before a virtual time, and reports whether
// something is left.
func (p *Process) Until(now time.Duration) bool {
	m, n := p.m, len(p.w.points)
	for p.i < n {
		j := m.next(p.w, p.i)
		stop := p.w.firstTime(p.i, min(j+1, n), int64(now)-m.shift)
		m.peak = max(m.peak, p.w.maxTop(p.i, min(j, stop))-m.freed)
		if stop <= j && stop < n {
			p.i = stop
			return true
		}
		if p.i = j; j == n {
			break
		}
		if q := &p.w.points[j]; q.sync {
			m.sync(q.time, q.arg, &q.totals)
		} else {
			m.alloc(q.time, q.arg, &q.totals)
		}
		p.i++
	}
	return false
}

// SetLimit moves the limit, in bytes; 0 is none. A lower one frees nothing by itself: the
// next allocation finds that it does not fit.
func (p *Process) SetLimit(bytes int64) {
	p.m.cfg.Limit = bytes
	p.m.setWake(p.m.wake)
}

// A Standing is how a process stands, as far as one can see from beside it.
type Standing struct {
	Live      int64         // bytes
	LiveAfter int64         // live when the last cycle had settled; 0 before the first
	Grown     int64         // bytes allocated so far, less those that the program freed itself
	Cycles    uint64        // so far
	Cost      time.Duration // of a cycle
	Next      int64         // bytes of the next allocation; 0 if a wait is next, or nothing
	Ended     bool
}

// Standing returns how the process stands. One that has ended holds nothing.
func (p *Process) Standing() Standing {
	s := Standing{LiveAfter: p.m.liveAfter, Cycles: p.m.cycles, Cost: p.m.res.Cycle, Ended: p.i == len(p.w.points)}
	if s.Ended {
		return s
	}
	q := &p.w.points[p.i]
	s.Grown, s.Live = q.net, q.net-p.m.freed
	if !q.sync {
		s.Next = q.arg
	}
	return s
}

// Result returns the metrics, once Until has returned false. The limit is the last one.
func (p *Process) Result() Result {
	r := p.m.finish(p.w)
	r.LimitBytes = p.m.cfg.Limit
	return r
}
