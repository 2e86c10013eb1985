package experiment

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
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

// Each outcome is where its cell is, as a run alone gives it, and is found by its key.
func TestCellsAreWhereTheyBelong(t *testing.T) {
	g := small(t, "never,cudajl,optimum-blocking").must(t)
	if g.Len() != 36 || len(g.Outcomes()) != 36 {
		t.Fatalf("%d cells, %d outcomes", g.Len(), len(g.Outcomes()))
	}
	for i, o := range g.Outcomes() {
		c := g.Cell(i)
		w, p, cfg := g.Workloads[c.Workload], g.Contenders[c.Contender], g.Config(c)
		if g.At(c) != o || cfg.Limit != g.Limits[c.Limit].Of(w) || keyOf(&o.Result) != g.key(c) {
			t.Fatalf("cell %d, %+v, is not where it says: %+v", i, c, o.Result)
		}
		want, err := p.Run(w, cfg)
		if hopeless := c.Contender == 2 && c.Limit == 0; errors.Is(o.Err, sim.ErrNoSchedule) != hopeless || err == nil && want != o.Result || o.Host != w.Span-w.Wait {
			t.Errorf("cell %+v has %+v, %v, run alone %+v, %v", c, o.Result, o.Err, want, err)
		}
		if o.Policy != p.String() || o.Trace != w.Name || o.Result.Cycle != g.Costs[c.Cost].Base {
			t.Errorf("cell %+v has %+v", c, o.Result)
		}
	}
	if got, want := g.Name(Cell{1, 2, 1, 0}), "Replay/trace=long/policy=never/limit=50x/cycle=2µs/ladder=2x"; got != want {
		t.Errorf("a cell is called %q, want %q", got, want)
	}
	if n := len(g.Finished(1)); n != 16 {
		t.Errorf("%d results at a cost", n)
	}
}

// Run leaves out known cells, tells the share that it has run, and stops when the context ends.
func TestRunLeavesOutKnownCells(t *testing.T) {
	g := small(t, "never,optimum-blocking").must(t)
	var known []sim.Result
	for i, o := range g.Outcomes() {
		if o.Err == nil && i%2 == 0 {
			r := o.Result
			r.Collections = 12345 // as no run gives it
			known = append(known, r)
		}
	}
	g.Know(known)
	var mu sync.Mutex
	var shares []float64
	if err := g.Run(t.Context(), func(share float64) { mu.Lock(); shares = append(shares, share); mu.Unlock() }); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, o := range g.Outcomes() {
		if o.Collections == 12345 {
			kept++
		}
	}
	if slices.Sort(shares); kept != len(known) || len(shares) != g.Len()-kept || shares[0] <= 0 || shares[len(shares)-1] != 1 {
		t.Errorf("%d of %d known results are kept; progress %v", kept, len(known), shares)
	}
	full := errors.New("disk full")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(full)
	if err := small(t, "never").Run(ctx, nil); !errors.Is(err, full) {
		t.Errorf("cancelled: %v", err)
	}
}

// The ranks are by time lost, and policies with failed allocations come last. A limit that
// cannot be met does not count. A saving is the difference of two policies.
func TestRank(t *testing.T) {
	g := small(t, "always,never,threshold:0.9,optimum-blocking").must(t)
	for cost := range g.Costs {
		r := g.Rank(cost)
		sums, s := [4]float64{}, g.Saved(cost, 1, 2)
		for i, o := range g.Outcomes() {
			if c := g.Cell(i); c.Cost == cost && c.Limit > 0 {
				sums[c.Contender] += math.Log1p(float64(o.ExposedPause)/float64(o.Span)+0.05*float64(o.GCBusy)/float64(o.Span)) / 4
			}
		}
		for p, sum := range sums {
			if got := g.Lost(cost, p, AllLimits); math.Abs(got-math.Expm1(sum)) > 1e-4 || (p != r.Best && p < 3 && sum < sums[r.Best]) {
				t.Errorf("%d loses %v, want %v; the best is %d", p, got, math.Expm1(sum), r.Best)
			}
		}
		if r.Never != 1 || r.Optimum != 3 || r.Best == r.Second || sums[r.Second] > max(sums[0], sums[1], sums[2]) {
			t.Errorf("%+v", r)
		}
		if longest, failed := g.Worst(cost, 1); g.Possible(0, 0) || !g.Possible(0, 1) || g.Failed(cost, r.Best) != 0 || failed != 1200 || longest != 2*g.Costs[cost].Base {
			t.Errorf("%v, %d failed", longest, failed)
		}
		if !math.IsNaN(g.Lost(cost, r.Optimum, 0)) {
			t.Error("an optimum without a schedule loses nothing")
		}
		if s.Runs != 4 || s.Recorded != 2*(g.Workloads[0].Span+g.Workloads[1].Span) || s.Than != g.Limits[2] {
			t.Errorf("%+v", s)
		}
	}
}
