package experiment

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// sawtooth is n objects of 100 bytes, one every us, each dropped before the next
// is there, with a wait after every tenth.
func sawtooth(t *testing.T, name string, n int) *sim.Workload {
	t.Helper()
	tr := &trace.Trace{Name: name}
	for i := range n {
		now := int64(i) * 1000
		tr.Record(trace.Event{Time: now, ID: uint64(i), Kind: trace.Alloc, Bytes: 100})
		tr.Record(trace.Event{Time: now + 500, ID: uint64(i), Kind: trace.Drop})
		if i%10 == 9 {
			tr.Record(trace.Event{Time: now + 600, Kind: trace.Sync, Duration: 300})
		}
	}
	w, err := sim.Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// small is a grid of two workloads, three limits, two costs and the contenders.
// The first limit is below the reachable bytes.
func small(t *testing.T, contenders string) *Grid {
	t.Helper()
	who, err := ParseContenders(contenders)
	if err != nil {
		t.Fatal(err)
	}
	return &Grid{
		Workloads:  []*sim.Workload{sawtooth(t, "short", 200), sawtooth(t, "long", 1000)},
		Limits:     []Limit{{Bytes: 50}, {Factor: 10}, {Factor: 50}},
		Costs:      []sim.Cost{sim.Fixed(200), sim.Fixed(2000)},
		Contenders: who,
		Ladder:     sim.Ladder{Factor: 2},
	}
}

func (g *Grid) must(t *testing.T) *Grid {
	t.Helper()
	if err := g.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCellsAreWhereTheyBelong(t *testing.T) {
	g := small(t, "never,cudajl,optimum-blocking").must(t)
	if g.Len() != 36 || len(g.Outcomes()) != 36 {
		t.Fatalf("%d cells, %d outcomes", g.Len(), len(g.Outcomes()))
	}
	for i, o := range g.Outcomes() {
		c := g.Cell(i)
		if g.At(c) != o {
			t.Fatalf("cell %d, %+v, is not where it says", i, c)
		}
		if cfg := g.Config(c); o.LimitBytes != cfg.Limit || o.Result.Cycle != cfg.Cost.Base ||
			o.Policy != g.Contenders[c.Contender].String() || o.Trace != g.Workloads[c.Workload].Name {
			t.Errorf("cell %+v has %+v", c, o.Result)
		}
		if keyOf(&o.Result) != g.key(c) {
			t.Errorf("cell %+v goes by %+v, its result by %+v", c, g.key(c), keyOf(&o.Result))
		}
		hopeless := o.Policy == "optimum-blocking" && o.LimitBytes == 50
		if errors.Is(o.Err, sim.ErrNoSchedule) != hopeless {
			t.Errorf("cell %+v: %v", c, o.Err)
		}
		if o.Err == nil {
			want, err := g.Contenders[c.Contender].Run(g.Workloads[c.Workload], g.Config(c))
			if err != nil || want != o.Result {
				t.Errorf("cell %+v has %+v, run alone %+v, %v", c, o.Result, want, err)
			}
		}
	}
	if got, want := g.Name(Cell{1, 2, 1, 0}), "Replay/trace=long/policy=never/limit=50x/cycle=2µs/ladder=2x"; got != want {
		t.Errorf("a cell is called %q, want %q", got, want)
	}
}

func TestRunCallsInOrderAndStops(t *testing.T) {
	g := small(t, "never,cudajl")
	var seen []*Outcome
	if err := g.Run(t.Context(), func(o *Outcome) error { seen = append(seen, o); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(seen, g.Outcomes()) {
		t.Error("the outcomes did not come in order")
	}
	full := errors.New("disk full")
	calls := 0
	if err := small(t, "never").Run(t.Context(), func(*Outcome) error { calls++; return full }); !errors.Is(err, full) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(full)
	if err := small(t, "never").Run(ctx, nil); !errors.Is(err, full) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestKnownCellsAreNotRun(t *testing.T) {
	whole := small(t, "never,optimum-blocking").must(t)
	var known []sim.Result
	for i, o := range whole.Outcomes() {
		if o.Err == nil && i%2 == 0 {
			r := o.Result
			r.Collections = 12345 // as no run gives it
			known = append(known, r)
		}
	}
	g := small(t, "never,optimum-blocking")
	left, ran := g.Know(known), 0
	if err := g.Run(t.Context(), func(*Outcome) error { ran++; return nil }); err != nil {
		t.Fatal(err)
	}
	if left != g.Len()-len(known) || ran != left {
		t.Errorf("%d left of %d with %d known, %d were run", left, g.Len(), len(known), ran)
	}
	kept := 0
	for _, o := range g.Outcomes() {
		if o.Collections == 12345 {
			kept++
		}
	}
	if kept != len(known) {
		t.Errorf("%d of %d known results are there", kept, len(known))
	}
}

func TestOverhead(t *testing.T) {
	g := small(t, "every-sync")
	g.must(t)
	o := g.At(Cell{1, 2, 1, 0})
	if o.Host <= 0 || o.Host >= o.Span || o.Collections != 100 || o.WallLBO() <= 1 || o.CPULBO() <= 1 {
		t.Errorf("%+v: wall %v, processor %v", o, o.WallLBO(), o.CPULBO())
	}
}

func TestMinLimit(t *testing.T) {
	g := small(t, "never")
	few := func(r *sim.Result) bool { return r.RefusalCollections <= 3 }
	for _, w := range g.Workloads {
		found, err := minLimit(w, g.Contenders[0], g.World(1), few)
		if err != nil {
			t.Fatal(err)
		}
		cfg := sim.Config{Cost: g.Costs[1], Ladder: g.Ladder}
		for limit, want := range map[int64]bool{found: true, found*998/1000 - 1: false} {
			cfg.Limit = limit
			if r, _ := g.Contenders[0].Run(w, cfg); few(&r) != want {
				t.Errorf("%s: limit %d, found %d: %d refusals", w.Name, limit, found, r.RefusalCollections)
			}
		}
		if _, err := minLimit(w, g.Contenders[0], g.World(1), func(*sim.Result) bool { return false }); err == nil {
			t.Error("a condition that never holds has a limit")
		}
	}
}

func TestRank(t *testing.T) {
	g := small(t, "always,never,threshold:0.9,optimum-blocking").must(t)
	for cost := range g.Costs {
		r := g.Rank(cost)
		if r.Never != 1 || r.Optimum != 3 {
			t.Errorf("%+v", r)
		}
		if best, second := g.Lost(cost, r.Best, AllLimits), g.Lost(cost, r.Second, AllLimits); !(best <= second) || r.Best == r.Second {
			t.Errorf("%+v: best loses %v, second %v", r, best, second)
		}
		if g.Possible(0, 0) || !g.Possible(0, 1) || g.Failed(cost, r.Best) != 0 {
			t.Error("a limit below what is reachable counts")
		}
		if _, failed := g.Worst(cost, r.Never); failed == 0 {
			t.Error("nothing fails below what is reachable")
		}
		if !math.IsNaN(g.Lost(cost, r.Optimum, 0)) {
			t.Error("an optimum without a schedule loses nothing")
		}
	}
	front := g.Front(1, 1, 1, Exposed, Busy)
	for i := 1; i < len(front); i++ {
		if front[i].ExposedPause <= front[i-1].ExposedPause || front[i].GCBusy >= front[i-1].GCBusy {
			t.Errorf("no front: %+v", front)
		}
	}
	if len(front) == 0 {
		t.Error("no front")
	}
}
