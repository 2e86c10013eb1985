package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// program is n objects of 1 MiB, one every ms, each dropped 5 ms later, with a wait
// after every tenth.
func program(name string, n int) *trace.Trace {
	t := &trace.Trace{Name: name}
	for i := range n {
		now := int64(i) * 1e6
		if i >= 5 {
			t.Record(trace.Event{Time: now, ID: uint64(i - 5), Kind: trace.Drop, Space: pressure.Device(1)})
		}
		t.Record(trace.Event{Time: now, ID: uint64(i), Kind: trace.Alloc, Bytes: 1 << 20, Space: pressure.Device(1)})
		if i%10 == 9 {
			t.Record(trace.Event{Time: now + 1, Kind: trace.Sync, Duration: 5e5})
		}
	}
	return t
}

func proofOf(t *testing.T, policy, trials string) *proof {
	t.Helper()
	who, err := experiment.ParseContender(policy)
	if err != nil {
		t.Fatal(err)
	}
	some, err := trialsNamed(trials)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProof(t.Context(), []*trace.Trace{program("short", 300), program("long", 700)}, who, some, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProofKnowsTheBest(t *testing.T) {
	p := proofOf(t, "pacer", "all")
	if len(p.Trials) != len(allTrials()) {
		t.Fatalf("%d trials", len(p.Trials))
	}
	for k, x := range p.Trials {
		if k > 0 && x.Len() == p.Trials[0].Len() && slices.EqualFunc(x.Outcomes(), p.Trials[0].Outcomes(), func(a, b *experiment.Outcome) bool { return a.Result == b.Result }) {
			t.Errorf("%s is the plain trial", x.Trial.Name)
		}
		want := 2 * len(x.Trial.Limits) * 4 * 6
		if x.Len() != want {
			t.Errorf("%s: %d cells, want %d", x.Trial.Name, x.Len(), want)
		}
		for i, o := range x.Outcomes() {
			if o.Objective() < x.Known(i) && o.FailedAllocs == 0 {
				t.Errorf("%s: cell %+v beats the best known", x.Trial.Name, x.Cell(i))
			}
		}
		if best, got := x.KnownDelayed(1, nil), x.Delayed(1, nil); !(best > 0 && best <= got*1.01) { // least J, not least delay
			t.Errorf("%s: delay %v of cudajl's, the best known %v", x.Trial.Name, got, best)
		}
		if _, worst := x.Worst(); x.J(0, nil) < 1 || worst < x.J(0, nil) {
			t.Errorf("%s: J %v, worst %v", x.Trial.Name, x.J(0, nil), worst)
		}
	}
}

// TestLossesAreFound: every policy loses to itself in no cell, and never loses where
// it is held against a policy that collects.
func TestLossesAreFound(t *testing.T) {
	if lost := proofOf(t, "optimum-objective", "plain").Trials[0].Lost; len(lost) > 0 {
		t.Errorf("the optimum loses %d cells", len(lost))
	}
	lost := proofOf(t, "never", "plain").Trials[0].Lost
	if len(lost) == 0 {
		t.Fatal("never loses nowhere")
	}
	for _, l := range lost {
		worse := false
		for _, r := range l.Rivals {
			worse = worse || l.Policy.Delay() > r.Delay()+2*time.Millisecond || l.Policy.RefusalCollections > r.RefusalCollections+2
		}
		if !worse || l.Known > l.Policy.Objective() {
			t.Errorf("%+v", l.Cell)
		}
	}
}

// TestCausesAreWhatTheySay: what a loss is put down to does not lose in its place.
func TestCausesAreWhatTheySay(t *testing.T) {
	seen := map[Cause]bool{}
	for _, x := range proofOf(t, "threshold:0.97", "plain,limit-10%").Trials {
		for _, l := range x.Lost {
			seen[l.Cause] = true
			cfg := x.Config(l.Cell)
			cfg.Told = sim.Told{}
			instead := map[Cause]string{wrong: "threshold:0.97"}[l.Cause]
			if instead == "" {
				continue
			}
			who, err := experiment.ParseContender(instead)
			if err != nil {
				t.Fatal(err)
			}
			r, err := who.Run(x.Workloads[l.Workload], cfg)
			if delay, refusals := l.worse(&experiment.Outcome{Result: r}); err != nil || delay || refusals {
				t.Errorf("%s %+v: %s loses, too", x.Trial.Name, l.Cell, instead)
			}
		}
	}
	if !seen[wrong] || !seen[Rule] {
		t.Errorf("causes %v: the test tries too little", seen)
	}
}

func TestTrialsChangePrograms(t *testing.T) {
	a, b := program("a", 100), program("b", 40)
	fast := faster([]*trace.Trace{a})[0]
	for i, e := range fast.Events {
		if was := a.Events[i]; e.Time != was.Time/10 || e.Duration != was.Duration/10 || e.Bytes != was.Bytes || e.ID != was.ID {
			t.Fatalf("event %d: %+v of %+v", i, e, was)
		}
	}
	both := pairs([]*trace.Trace{a, b})
	if len(both) != 2 || both[0].Name != "a+b" || both[1].Name != "b+a" {
		t.Fatalf("%d pairs", len(both))
	}
	w, err := sim.Compile(both[0], pressure.Device(1))
	if err != nil {
		t.Fatal(err)
	}
	if w.Allocs != 140 || w.Syncs != 14 || w.PeakReachable < 10<<20 || w.Span < 135*time.Millisecond || w.Span > 160*time.Millisecond {
		t.Errorf("%+v", w)
	}
	for _, e := range both[0].Events { // b has the second turn of every two, until it ends
		if turn := e.Time / 20e6; turn < 4 && (e.ID >= 100) != (turn%2 == 1) && e.Kind != trace.Sync {
			t.Errorf("turn %d has %+v", turn, e)
		}
	}
	if alone := pairs([]*trace.Trace{a}); alone != nil {
		t.Error("a program has itself as a pair")
	}
}

func TestTrialsNamed(t *testing.T) {
	some, err := trialsNamed("limit-5%, plain")
	if err != nil || len(some) != 2 || some[0].Told.Limit != 1.05 || some[1].Name != "plain" {
		t.Errorf("%+v, %v", some, err)
	}
	if _, err := trialsNamed("plain,pear"); err == nil {
		t.Error("a trial that is not there")
	}
	if x := (&tried{Grid: &experiment.Grid{}}).J(0, nil); !math.IsNaN(x) {
		t.Errorf("J of nothing is %v", x)
	}
}

// TestLearnedTrial: before its first cycle a policy is told half of what cycles take, then about what they
// took, and they differ.
func TestLearnedTrial(t *testing.T) {
	some, err := trialsNamed("learned")
	if err != nil {
		t.Fatal(err)
	}
	tr := program("long", 700)
	w, err := sim.Compile(tr, sim.SpaceOf(tr))
	if err != nil {
		t.Fatal(err)
	}
	who, err := experiment.ParseContenders("sqrt")
	if err != nil {
		t.Fatal(err)
	}
	g := some[0].grid([]*sim.Workload{w}, who)
	for i := range g.Len() {
		c := g.Cell(i)
		cost := g.Costs[c.Cost].Base
		if cost < 10*time.Millisecond {
			continue // a collector expects no less
		}
		cfg := g.Config(c)
		cfg.Log = &sim.Log{KeepDecisions: true}
		if _, err := who[0].Run(w, cfg); err != nil {
			t.Fatal(err)
		}
		first := cfg.Log.Decisions[0].Cost
		if r := float64(first) / float64(cost); math.Abs(r-0.5) > 0.01 {
			t.Errorf("cycles of %v: expects %v at first", cost, first)
		}
		took := map[time.Duration]bool{}
		for _, x := range cfg.Log.Cycles {
			took[x.Duration] = true
		}
		if n := len(cfg.Log.Cycles); n == 0 || len(took) < n {
			t.Errorf("cycles of %v: %d of %d lengths differ", cost, len(took), n)
		}
	}
}
