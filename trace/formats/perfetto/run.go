package perfetto

import "github.com/eagergc/eagergc/trace"

// A Run is what a policy did with a recording in a replay. It becomes a process of
// its own, with counters and slices as a space has, on the clock of the run: one
// that is held longer ends later.
type Run struct {
	Name   string        // of the process: the policy and its limit
	Levels []Level       // in order of time
	Events []trace.Event // cycles, refusals, marks and decisions, in order of time
	Labels []string      // of Events, as in [trace.Trace]
}

// A Level is the memory from a time on.
type Level struct {
	Time               int64 // ns
	Reachable, Garbage int64 // bytes
}

// firstRun is the process of the first run: those below are spaces.
const firstRun = 1000

// run writes one run as process pid.
func (p *writer) run(pid int, r *Run) {
	s := newSpace(pid)
	p.t = &trace.Trace{Labels: r.Labels}
	p.row("M", pid, 0, 0, "process_name", `,"args":{"name":`+string(quoted(r.Name))+`}`)
	for _, l := range r.Levels {
		s.count(p, l.Time, "reachable", l.Reachable)
		s.count(p, l.Time, "garbage", l.Garbage)
	}
	for _, e := range r.Events {
		p.shown(s, e)
	}
}
