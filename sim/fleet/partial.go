package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A Partial is what is known of some jobs of a fleet. All of it is integers, and
// [Partial.Merge] is associative and commutative. The zero value has no jobs and merges
// with any other. It is for one goroutine at a time.
type Partial struct {
	Plan   string            `json:"plan"` // ID of the plan; empty if there are no jobs
	Broken Broken            `json:"broken"`
	Groups map[string]*Group `json:"groups"` // of like jobs, by name: see Features.Group
	Worst  [][]Worst         `json:"worst"`  // for each cell the jobs that lose the largest share of their time, the worst first
}

// A Group is some jobs that are like each other.
type Group struct {
	Jobs   int64   `json:"jobs"`
	Bytes  Sum     `json:"bytes"`                // of the files
	Allocs Sum     `json:"allocs"`               //
	Peak   Sum     `json:"peak_reachable_bytes"` //
	Span   Sum     `json:"span_ns"`
	Wait   Sum     `json:"wait_ns"`
	Cells  []Tally `json:"cells"` // for each cell of the plan
}

// A Tally adds up the outcomes of one cell. Jobs whose limit is below what they keep
// reachable, and those for which an optimum has no schedule, are counted and otherwise
// left out.
type Tally struct {
	Runs        int64 `json:"runs"`
	Unmet       int64 `json:"unmet"`   // the limit is below the peak of the reachable bytes
	None        int64 `json:"none"`    // the optimum has no schedule
	Failing     int64 `json:"failing"` // runs with failed allocations
	Refused     int64 `json:"refused"` // runs with refusals
	Collections Sum   `json:"collections"`
	Refusals    Sum   `json:"refusal_collections"`
	Failed      Sum   `json:"failed_allocs"`
	Exposed     Sum   `json:"exposed_pause_ns"`
	Busy        Sum   `json:"gc_busy_ns"`
	Objective   Sum   `json:"objective_ns"`
	Span        Sum   `json:"span_ns"` // of the runs
	Elapsed     Sum   `json:"elapsed_ns"`
	Limit       Sum   `json:"limit_bytes"`
	PeakLive    Sum   `json:"peak_live_bytes"`
	LiveTime    Sum   `json:"live_byte_ns"`    // mean live x elapsed
	GarbageTime Sum   `json:"garbage_byte_ns"` // mean garbage x elapsed
	LogLost     Sum   `json:"log_lost"`        // sum of ln(1 + objective / span), in units of 1e-9
	Longest     int64 `json:"max_pause_ns"`    // of all runs

	LostPPM  Histogram `json:"lost_ppm"`     // objective / span of the runs, in millionths
	Pauses   Histogram `json:"longest_ns"`   // the longest pause of each run
	Memories Histogram `json:"live_percent"` // mean live bytes of each run, in percent of its peak reachable bytes
}

// A Worst is one job in one cell, among those that lose most.
type Worst struct {
	Lost    int64  `json:"lost_ppm"` // objective / span, in millionths
	Name    string `json:"job"`
	Hash    string `json:"recording"`
	Longest int64  `json:"max_pause_ns"`
	Failed  int64  `json:"failed_allocs"`
}

// Keep is how many of the worst jobs, and MostBroken how many broken recordings, a
// Partial names.
const (
	Keep       = 10
	MostBroken = 1000
)

// Broken are recordings that could not be read.
type Broken struct {
	Count int64   `json:"count"`
	Named []Fault `json:"named"` // the first by name, at most MostBroken
}

// A Fault says why a recording could not be read.
type Fault struct {
	Name  string `json:"job"`
	Error string `json:"error"` // with its place in the file
}

// Partial returns what cells [from, to) of a job say. The part that begins with cell 0
// counts the job itself, so that a job may be split into parts that do not overlap. The
// job must have those outcomes.
func (m *Mapper) Partial(name string, j *Job, from, to int) *Partial {
	f := &j.Features
	g := &Group{Cells: make([]Tally, m.Len())}
	p := &Partial{Plan: m.id, Groups: map[string]*Group{f.Group(): g}, Worst: make([][]Worst, m.Len())}
	if from == 0 {
		g.Jobs, g.Bytes, g.Allocs = 1, SumOf(j.Bytes), SumOf(f.Allocs)
		g.Peak, g.Span, g.Wait = SumOf(f.PeakReachable), SumOf(f.Span), SumOf(f.Wait)
	}
	for i := from; i < to; i++ {
		o, ok := j.Outcomes[m.keys[i]]
		if !ok {
			panic(fmt.Sprintf("fleet: job %s has no outcome of cell %d", name, i))
		}
		if g.Cells[i].add(&o, f) {
			p.Worst[i] = []Worst{{o.Lost(f.Span), name, j.Hash, o.Longest, o.Failed}}
		}
	}
	return p
}

// Fault returns what a recording says that could not be read.
func (m *Mapper) Fault(name string, err error) *Partial {
	return &Partial{Plan: m.id, Broken: Broken{1, []Fault{{name, err.Error()}}}, Groups: map[string]*Group{}, Worst: make([][]Worst, m.Len())}
}

// add counts an outcome of a job, and reports whether it has run.
func (t *Tally) add(o *Outcome, f *Features) bool {
	switch {
	case o.Limit > 0 && o.Limit < f.PeakReachable:
		t.Unmet++
		return false
	case o.None:
		t.None++
		return false
	}
	t.Runs = 1
	t.Failing, t.Refused = min(1, o.Failed), min(1, o.Refusals)
	t.Collections, t.Refusals, t.Failed = SumOf(o.Collections), SumOf(o.Refusals), SumOf(o.Failed)
	t.Exposed, t.Busy, t.Objective = SumOf(o.Exposed), SumOf(o.Busy), SumOf(o.Objective)
	t.Span, t.Elapsed = SumOf(f.Span), SumOf(o.Elapsed)
	t.Limit, t.PeakLive = SumOf(o.Limit), SumOf(o.PeakLive)
	t.LiveTime, t.GarbageTime = Product(o.MeanLive, o.Elapsed), Product(o.MeanGarbage, o.Elapsed)
	t.LogLost, t.Longest = SumOf(o.logLost(f.Span)), o.Longest
	t.LostPPM = Histogram{bucket(o.Lost(f.Span)): 1}
	t.Pauses = Histogram{bucket(o.Longest): 1}
	t.Memories = Histogram{bucket(ratio(o.MeanLive, 100, f.PeakReachable)): 1}
	return true
}

// Merge returns the sum of two partials of one plan, which stay as they are.
func Merge(p, q *Partial) *Partial {
	sum := new(Partial)
	sum.Merge(p)
	sum.Merge(q)
	return sum
}

// Merge adds q, which stays as it is, to p. Partials of different plans are a broken
// invariant.
func (p *Partial) Merge(q *Partial) {
	if q.Plan == "" {
		return
	}
	if p.Plan == "" {
		*p = Partial{Plan: q.Plan, Groups: make(map[string]*Group), Worst: make([][]Worst, len(q.Worst))}
	}
	if p.Plan != q.Plan || len(p.Worst) != len(q.Worst) {
		panic("fleet: partials of different plans")
	}
	p.Broken.Count += q.Broken.Count
	p.Broken.Named = first(MostBroken, compareFaults, p.Broken.Named, q.Broken.Named)
	for name, g := range q.Groups {
		if p.Groups[name] == nil {
			p.Groups[name] = &Group{Cells: make([]Tally, len(g.Cells))}
		}
		p.Groups[name].Merge(g)
	}
	for i := range q.Worst {
		p.Worst[i] = first(Keep, compareWorst, p.Worst[i], q.Worst[i])
	}
}

// Merge adds h, of the same plan, to g.
func (g *Group) Merge(h *Group) {
	g.Jobs += h.Jobs
	addSums([]*Sum{&g.Bytes, &g.Allocs, &g.Peak, &g.Span, &g.Wait}, []Sum{h.Bytes, h.Allocs, h.Peak, h.Span, h.Wait})
	for i := range h.Cells {
		g.Cells[i].Merge(&h.Cells[i])
	}
}

// Merge adds u to t.
func (t *Tally) Merge(u *Tally) {
	t.Runs, t.Unmet, t.None = t.Runs+u.Runs, t.Unmet+u.Unmet, t.None+u.None
	t.Failing, t.Refused = t.Failing+u.Failing, t.Refused+u.Refused
	to := t.sums()
	for k, s := range u.sums() {
		to[k].Add(*s)
	}
	t.Longest = max(t.Longest, u.Longest)
	mergeInto(&t.LostPPM, u.LostPPM)
	mergeInto(&t.Pauses, u.Pauses)
	mergeInto(&t.Memories, u.Memories)
}

// sums are the sums of a tally, in one order.
func (t *Tally) sums() [13]*Sum {
	return [...]*Sum{
		&t.Collections, &t.Refusals, &t.Failed, &t.Exposed, &t.Busy, &t.Objective, &t.Span, &t.Elapsed,
		&t.Limit, &t.PeakLive, &t.LiveTime, &t.GarbageTime, &t.LogLost,
	}
}

func addSums(to []*Sum, from []Sum) {
	for i := range to {
		to[i].Add(from[i])
	}
}

func mergeInto(h *Histogram, g Histogram) {
	if len(g) == 0 {
		return
	}
	if *h == nil {
		*h = make(Histogram, len(g))
	}
	h.Merge(g)
}

// first returns the first n of two sorted lists together.
func first[T any](n int, compare func(a, b T) int, p, q []T) []T {
	if len(q) == 0 || len(p) == n && compare(p[n-1], q[0]) <= 0 {
		return p // the common case
	}
	all := slices.Concat(p, q)
	slices.SortFunc(all, compare)
	return all[:min(n, len(all)):min(n, len(all))]
}

// compareWorst is a total order: the largest share first.
func compareWorst(a, b Worst) int {
	return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Longest, b.Longest), cmp.Compare(a.Failed, b.Failed))
}

func compareFaults(a, b Fault) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Error, b.Error))
}

// Total returns all groups as one; it has no cells if there are no jobs.
func (p *Partial) Total() *Group {
	all := &Group{Cells: make([]Tally, len(p.Worst))}
	for _, g := range p.Groups {
		all.Merge(g)
	}
	return all
}

// Names lists the groups, those with the most jobs first.
func (p *Partial) Names() []string {
	return slices.SortedFunc(maps.Keys(p.Groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Groups[b].Jobs, p.Groups[a].Jobs), cmp.Compare(a, b))
	})
}
