package experiment

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

func question(t *testing.T, name, policies string, cycle time.Duration) Question {
	t.Helper()
	tr, err := samples.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.Compile(tr, sim.SpaceOf(tr))
	if err != nil {
		t.Fatal(err)
	}
	who, err := ParseContenders(policies)
	if err != nil {
		t.Fatal(err)
	}
	return Question{Workload: w, Policies: who, World: baseWorld(cycle), Variants: 4}
}

func baseWorld(cycle time.Duration) World {
	return func(limit int64) sim.Config {
		return sim.Config{Limit: limit, Cost: sim.Fixed(cycle), Ladder: sim.Ladder{Factor: 2}}
	}
}

// What is advised holds when it is replayed, and less would not do.
func TestAdviceHolds(t *testing.T) {
	q := question(t, "mlp", "never,cudajl,pacer,optimum-overlap", 10*time.Millisecond)
	a, err := q.Advise(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := a.Choice
	if c.Policy != a.Policy || c.Refusals != 0 || c.Failed != 0 || c.Lost > DefaultLost {
		t.Errorf("the advised policy: %+v", c)
	}
	if a.Limit < a.Most || a.Least > c.Needs || c.Needs > a.Most || a.Most < a.Reachable || a.Reachable != q.Workload.PeakReachable {
		t.Errorf("limits %+v", a)
	}
	if len(a.Others) != 2 {
		t.Errorf("%d other policies, want 2: an optimum is no advice", len(a.Others))
	}
	for _, p := range q.Policies {
		cfg := q.World(c.Needs * 99 / 100)
		if r, err := p.Run(q.Workload, cfg); err == nil && p.String() == a.Policy && r.RefusalCollections == 0 && q.lost(&r) <= DefaultLost {
			t.Errorf("%s does with %d bytes, and %d are said to be needed", p, cfg.Limit, c.Needs)
		}
	}
	for _, o := range a.Others {
		if o.Needs != 0 && o.Needs < a.Limit && o.Lost > c.Lost*1.01 {
			t.Errorf("%s loses %v at the advised limit, and is said to lose no more than %v from %d bytes on", o.Policy, o.Lost, c.Lost, o.Needs)
		}
	}
	again, err := q.Advise(t.Context())
	if err != nil || again.Limit != a.Limit || again.Choice != a.Choice {
		t.Errorf("asked again: %+v, %v", again, err)
	}
}

// On a machine what cycles take beside the program counts, and each run has a memory
// of its own: the calls are concurrent.
func TestAdviceOnAMachine(t *testing.T) {
	ask := func(slowdown float64) *Advice {
		q := question(t, "mlp", "never,pacer,every-sync", 10*time.Millisecond)
		m := sim.MachineOf(sim.Fixed(10*time.Millisecond), sim.Ladder{Factor: 2})
		m.Slowdown, m.Stretch, m.Noise = slowdown, 1+slowdown, sim.Noise{0.5, 1, 2}
		var made atomic.Int64
		q.World = func(limit int64) sim.Config {
			made.Add(1)
			cfg := baseWorld(0)(limit)
			cfg.Machine, cfg.Seed = m, 7
			return cfg
		}
		q.Lost = 0.05
		a, err := q.Advise(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if made.Load() < 20 {
			t.Errorf("%d worlds for all runs", made.Load())
		}
		return a
	}
	quiet, busy := ask(0), ask(1)
	for _, a := range []*Advice{quiet, busy} {
		if a.Least >= a.Most {
			t.Errorf("noise and cost change nothing: %d to %d bytes", a.Least, a.Most)
		}
	}
	if busy.Limit <= quiet.Limit {
		t.Errorf("%d bytes where cycles slow the program down, %d where they do not", busy.Limit, quiet.Limit)
	}
	for _, o := range busy.Others {
		if o.Policy == "every-sync" && o.Held <= float64(o.Exposed)/float64(question(t, "mlp", "pacer", 0).Workload.Span) {
			t.Errorf("%+v loses nothing beside its cycles", o)
		}
	}
}

func TestNoAdvice(t *testing.T) {
	q := question(t, "mlp", "every-sync", time.Hour)
	if a, err := q.Advise(t.Context()); !errors.Is(err, ErrNoAdvice) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRoundUp(t *testing.T) {
	for n, want := range map[int64]int64{1: 1, 1000: 1000, 1025: 1035, 1 << 20: 1 << 20, 20_000_000_000: 20_078_972_109, 123 << 20: 123 << 20} {
		if got := roundUp(n); got != want || got < n {
			t.Errorf("roundUp(%d) = %d, want %d", n, got, want)
		}
	}
}
