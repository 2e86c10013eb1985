package experiment

import (
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/samples"
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
	who, err := sim.ParseContenders(policies)
	if err != nil {
		t.Fatal(err)
	}
	return Question{Workload: w, Policies: who, Config: sim.Config{Cost: sim.Fixed(cycle), Ladder: sim.Ladder{Factor: 2}}, Variants: 4}
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
		cfg := q.Config
		cfg.Limit = c.Needs * 99 / 100
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
