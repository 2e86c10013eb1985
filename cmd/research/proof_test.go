package main

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// program returns a recording of n objects of 1 MiB, one every ms, each dropped 5 ms later. A wait
// follows every tenth object.
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

// TestNothingBeatsTheBestKnownSchedule tries two policies in every trial. The trials differ, and J
// compares each run with the best of its cell.
func TestNothingBeatsTheBestKnownSchedule(t *testing.T) {
	programs := []*trace.Trace{program("short", 300), program("long", 700)}
	for _, policy := range []string{"pacer", "never"} {
		all, err := prove(t.Context(), programs, contenders(policy)[0], allTrials(), func(string) {})
		if err != nil || len(all) != len(allTrials()) {
			t.Fatalf("%d trials, %v", len(all), err)
		}
		reports := map[string]string{}
		for _, x := range all {
			if want := 2 * len(x.trial.Limits) * 4 * 6; x.Len() != want {
				t.Errorf("%s: %d cells, want %d", x.trial.Name, x.Len(), want)
			}
			for i, o := range x.Outcomes() {
				if o.Objective() < x.known(i) && o.FailedAllocs == 0 {
					t.Errorf("%s: cell %+v beats the best known", x.trial.Name, x.Cell(i))
				}
			}
			worst, j := x.worst()
			if x.j(0, nil) < 1 || j < x.j(0, nil)-1e-9 || x.j(0, ofWorkload(worst)) != j || x.j(0, ofWorkload(1-worst)) > j {
				t.Errorf("%s: J %v, worst %v in %d", x.trial.Name, x.j(0, nil), j, worst)
			}
			cells := string(trialCells([]*tried{x}))
			cells = strings.ReplaceAll(cells, x.trial.Name, "")
			if other := reports[cells]; other != "" && policy == "pacer" {
				t.Errorf("%s has the cells of %s", x.trial.Name, other)
			}
			reports[cells] = x.trial.Name
		}
		rivals := "| " + ratioText(all[0].j(1, nil)) + " | " + ratioText(all[0].j(3, nil)) + " |"
		if page := string(reportTrials(all[0].Contenders[0], all)["report.md"]); !strings.Contains(page, rivals) {
			t.Errorf("J of cudajl and sqrt is not %s in\n%s", rivals, page)
		}
		if j, rival := all[0].j(0, nil), all[0].j(4, nil); policy == "never" && (j != rival || j < 1.5 || all[0].delayed(4) != 1) {
			t.Errorf("J of never is %v as a policy, and %v as a rival", j, rival)
		} else if policy == "pacer" && (j > rival/1.5 || all[0].delayed(4) > 0.8) {
			t.Errorf("J of pacer is %v, and %v of never", j, rival)
		}
	}
}

// TestTrialsChangePrograms: the same events in a tenth of the time, and two programs that take turns of 20 ms.
func TestTrialsChangePrograms(t *testing.T) {
	a, b := program("a", 100), program("b", 40)
	fast := faster([]*trace.Trace{a})[0]
	for i, e := range fast.Events {
		was := a.Events[i]
		if was.Time, was.Duration = was.Time/10, was.Duration/10; e != was {
			t.Fatalf("event %d: %+v, want %+v", i, e, was)
		}
	}
	both := pairs([]*trace.Trace{a, b})
	if len(both) != 2 || both[0].Name != "a+b" || both[1].Name != "b+a" || len(both[0].Events) != len(both[1].Events) {
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
		t.Error("a program alone makes a pair")
	}
}

// TestLearnedTrial: a policy expects half of a cycle's length before the first cycle, and lengths differ.
func TestLearnedTrial(t *testing.T) {
	some, err := trialsNamed("plain, learned")
	if err != nil || len(some) != 2 || some[0].Name != "plain" {
		t.Fatalf("%+v, %v", some, err)
	}
	loads := compiled(t, program("long", 700))
	g := some[1].grid(loads, contenders("sqrt"))
	for i := range g.Len() {
		cfg := g.Config(g.Cell(i))
		cost := g.Costs[g.Cell(i).Cost].Base
		if cost < 10*time.Millisecond {
			continue // the first estimate is not below a floor
		}
		cfg.Log = &sim.Log{KeepDecisions: true}
		if _, err := g.Contenders[0].Run(loads[0], cfg); err != nil {
			t.Fatal(err)
		}
		if r := float64(cfg.Log.Decisions[0].Cost) / float64(cost); math.Abs(r-0.5) > 0.01 {
			t.Errorf("cycles of %v: the policy expects %v of that at first", cost, r)
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

// TestTrialWithoutPrograms: a trial without programs has no J.
func TestTrialWithoutPrograms(t *testing.T) {
	files, err := judgeInTrials(t.Context(), []*trace.Trace{program("alone", 300)}, "pacer", "pairs", io.Discard)
	if err != nil || !strings.Contains(string(files["report.md"]), "| 0 | - | - |") {
		t.Errorf("%v in\n%s", err, files["report.md"])
	}
}
