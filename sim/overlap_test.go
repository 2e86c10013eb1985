package sim

import (
	"math"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// script plays a list of actions, one for each question.
type script struct {
	actions []policy.Action
	asked   int
}

func (p *script) Decide(policy.Point) policy.Decision {
	p.asked++
	return policy.Decision{Action: p.actions[p.asked-1]}
}
func (p *script) Observe(policy.Cycle) {}
func (p *script) String() string       { return "script" }

// bruteOverlap tries every action at every point, as a policy, and as a schedule, which can do more:
// where a cycle is under way it waits for that and starts another.
func bruteOverlap(w *Workload, cfg Config) time.Duration {
	n := len(w.points)
	total := 1
	for range n {
		total *= 3
	}
	best := time.Duration(-1)
	actions := make([]policy.Action, n)
	for set := range total {
		for i, x := 0, set; i < n; i, x = i+1, x/3 {
			actions[i] = policy.Action(x % 3)
		}
		var steps []step
		for i, a := range actions {
			if a != policy.Skip {
				steps = append(steps, step{i, a})
			}
		}
		pause := min(Run(w, &script{actions: actions}, cfg).ExposedPause, runSchedule(w, "", schedule{steps: steps}, cfg).ExposedPause)
		if best < 0 || pause < best {
			best = pause
		}
	}
	return best
}

func TestOptimumOverlapBound(t *testing.T) {
	exact, runs := 0, 0
	check(t, 1500, func(t *random) {
		w, err := Compile(genEvents(t, t.coin(), between(t, 3, 8)), pressure.Host)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.points) > 5 || w.PeakReachable == 0 {
			return // too many schedules, or nothing to limit
		}
		cfg := Config{
			Limit:  int64((1 + t.Float64()) * float64(w.PeakReachable)),
			Cost:   Fixed(time.Duration(between[int64](t, 0, 60))),
			Ladder: Ladder{Factor: 2},
		}
		s, bound, err := optimumOverlap(w, cfg, 0)
		if err != nil {
			t.Fatal(err)
		}
		best := bruteOverlap(w, cfg)
		if bound > best {
			t.Fatalf("bound %v above %v, which a schedule has", bound, best)
		}
		if s.Exposed < best {
			t.Fatalf("schedule claims %v, below every schedule: %v", s.Exposed, best)
		}
		if r := runSchedule(w, "", s, cfg); r.RefusalCollections != 0 || r.ExposedPause != s.Exposed {
			t.Fatalf("schedule claims %v, runs as %+v", s.Exposed, r)
		}
		blocking, err := optimumBlocking(w, cfg.Limit, cfg.Cost)
		if err != nil || s.Exposed > blocking.Exposed {
			t.Fatalf("%v is worse than blocking %v, %v", s.Exposed, blocking.Exposed, err)
		}
		runs++
		if s.Exposed == best {
			exact++
		}
	})
	t.Logf("schedule is the optimum in %d of %d workloads", exact, runs)
}

// TestScheduleHurriesACycle: its best schedule starts a cycle where another is under way, which it waits for.
// No policy can do both at one point.
func TestScheduleHurriesACycle(t *testing.T) {
	alloc := func(at int64, id uint64, bytes int64) trace.Event {
		return trace.Event{Time: at, Kind: trace.Alloc, ID: id, Bytes: bytes}
	}
	drop := func(at int64, id uint64) trace.Event { return trace.Event{Time: at, Kind: trace.Drop, ID: id} }
	w, err := Compile(&trace.Trace{Events: []trace.Event{
		alloc(0, 1, 24), alloc(0, 2, 4), drop(0, 1), alloc(0, 3, 0), drop(3, 2), alloc(9, 4, 0), alloc(9, 5, 0), alloc(23, 6, 2),
		{Time: 38, Kind: trace.Sync, Duration: 4}, drop(44, 3), alloc(44, 7, 27),
	}}, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Limit: w.PeakReachable, Cost: Fixed(29), Ladder: Ladder{Factor: 2}}
	s, bound, err := optimumOverlap(w, cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	if best := bruteOverlap(w, cfg); s.Exposed != best || bound > best {
		t.Errorf("schedule of %v, bound %v, the best %v", s.Exposed, bound, best)
	}
}

func TestBoundBelowEveryPolicy(t *testing.T) {
	check(t, 100, func(t *random) {
		w := genWorkload(t, t.coin())
		if w.PeakReachable == 0 {
			return // nothing to limit
		}
		cfg := genConfig(t, w)
		cfg.Limit = max(cfg.Limit, w.PeakReachable)
		_, bound, err := optimumOverlap(w, cfg, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r := Run(w, genWhim(t, policy.Skip, policy.Skip, policy.Overlap, policy.Block)(), cfg); r.ExposedPause < bound {
			t.Fatalf("%s has %v, below the bound %v", r.Policy, r.ExposedPause, bound)
		}
	})
}

// TestPathsCostWhatTheySay: a path that is found pauses the program by no more than it was priced at. (By less, where a wait hides a part.)
func TestPathsCostWhatTheySay(t *testing.T) {
	check(t, 500, func(t *random) {
		w := genWorkload(t, t.coin())
		g := between[int64](t, 0, 60)
		limit := int64((1 + 2*t.Float64()) * float64(w.PeakReachable))
		far, err := w.reaches(limit)
		if err != nil || limit == 0 {
			return
		}
		p := newPaths(w, far, g, 0)
		steps := p.solve()
		says := int64(math.MaxInt64)
		for k, T := range far {
			if int(T) == len(w.points) {
				says = min(says, p.way[2*k].exposed, p.way[2*k+1].exposed)
			}
		}
		r := runSchedule(w, "", schedule{steps: steps}, Config{Limit: limit, Cost: Fixed(time.Duration(g)), Ladder: Ladder{Factor: 2}})
		if r.RefusalCollections != 0 || int64(r.ExposedPause) > says {
			t.Fatalf("a path of %d ns pauses for %+v", says, r)
		}
	})
}
