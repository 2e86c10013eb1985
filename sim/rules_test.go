package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestRulesStepByStep walks the rules of DESIGN.md, section 6, with a limit of
// 100 bytes, cycles of 100 ns and a ladder of 200 ns, by hand:
//
//	t   event        now  what happens                                live
//	0   alloc 60       0                                                60
//	10  drop 60       10
//	20  alloc 30      20  the policy overlaps: ends at 120, frees 60    90
//	50  alloc 40      50  does not fit: waits for the end, 70 ns        70
//	60  drop 30      130
//	70  alloc 50     140  does not fit, no cycle: ladder, 200 ns        90
//	80  alloc 90     350  does not fit: ladder, frees nothing, fails   180
//	90  sync 30      560  the policy blocks: 100 ns, 30 of them hidden
func TestRulesStepByStep(t *testing.T) {
	tr := &trace.Trace{Name: "walk"}
	for _, e := range []trace.Event{
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 60},
		{Time: 10, Kind: trace.Drop, ID: 1},
		{Time: 20, Kind: trace.Alloc, ID: 2, Bytes: 30},
		{Time: 50, Kind: trace.Alloc, ID: 3, Bytes: 40},
		{Time: 60, Kind: trace.Drop, ID: 2},
		{Time: 70, Kind: trace.Alloc, ID: 4, Bytes: 50},
		{Time: 80, Kind: trace.Alloc, ID: 5, Bytes: 90},
		{Time: 90, Kind: trace.Sync, Duration: 30},
	} {
		tr.Record(e)
	}
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	actions := []policy.Action{policy.Skip, policy.Overlap, policy.Skip, policy.Skip, policy.Skip, policy.Block}
	log := &Log{}
	got := Run(w, &script{actions: actions}, Config{Limit: 100, Cost: Fixed(100), Ladder: Ladder{Factor: 2}, Log: log})
	want := Result{
		Trace: "walk", Policy: "script", LimitBytes: 100, Cycle: 100, Ladder: 200,
		Collections: 2, RefusalCollections: 2, FailedAllocs: 1,
		ExposedPause: 70 + 200 + 200 + 70, MaxPause: 200, GCBusy: 400, PeakLive: 180, Span: 90, Elapsed: 90 + 540,
		MeanLive:    (20*60 + 100*90 + 10*70 + 210*70 + 210*90 + 80*180) / 630.0, // each level with how long it lasts
		MeanGarbage: (10*60 + 100*60 + 210*30) / 630.0,
	}
	want.LimitFactor = 100 / float64(w.PeakReachable)
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	pauses := []Pause{{At: 50, Trace: 50, Length: 70}, {At: 140, Trace: 70, Length: 200}, {At: 350, Trace: 80, Length: 200}, {At: 560, Trace: 90, Length: 70}}
	for i, p := range log.Pauses {
		p.seq = 0
		if i >= len(pauses) || p != pauses[i] {
			t.Errorf("pause %d is %+v", i, p)
		}
	}
	freed := []int64{60, 30, 0, 0}
	for i, c := range log.Cycles {
		if i >= len(freed) || c.Freed != freed[i] {
			t.Errorf("cycle %d is %+v", i, c)
		}
	}
	if len(log.Pauses) != 4 || len(log.Cycles) != 4 {
		t.Errorf("%d pauses, %d cycles", len(log.Pauses), len(log.Cycles))
	}
}

// TestSlowdownDoesNotDependOnLooks: a program that is slowed by three tenths beside a cycle of 1,000 ns loses 230.8 of them, however often
// the run looks at it.
func TestSlowdownDoesNotDependOnLooks(t *testing.T) {
	for _, every := range []int64{1, 2, 7, 100} {
		tr := &trace.Trace{Name: "looks"}
		for at := int64(0); at < 1000; at += every {
			tr.Record(trace.Event{Time: at, Kind: trace.Alloc, ID: uint64(at), Bytes: 1})
		}
		w, err := Compile(tr, pressure.Host)
		if err != nil {
			t.Fatal(err)
		}
		actions := make([]policy.Action, 1000)
		actions[0] = policy.Overlap
		if r := Run(w, &script{actions: actions}, Config{Cost: Cost{Base: 1000, Slowdown: 0.3}}); r.Slowed < 229 || r.Slowed > 231 {
			t.Errorf("with a look each %d ns it loses %d ns", every, r.Slowed)
		}
	}
}

// TestSlowdown: beside a cycle of 100 ns, 40 of which it waits, a program at half speed
// gets 30 ns done, and loses as many: waits are not slowed.
func TestSlowdown(t *testing.T) {
	tr := &trace.Trace{Name: "slow"}
	tr.Record(trace.Event{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 1})
	tr.Record(trace.Event{Time: 20, Kind: trace.Sync, Duration: 40})
	tr.Record(trace.Event{Time: 200, Kind: trace.Alloc, ID: 2, Bytes: 1})
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	r := Run(w, &script{actions: []policy.Action{policy.Overlap, policy.Skip, policy.Skip}}, Config{Cost: Cost{Base: 100, Slowdown: 1}})
	if r.ExposedPause != 0 || r.Elapsed-r.Span != time.Duration(30) {
		t.Errorf("exposed %v, delayed by %v", r.ExposedPause, r.Elapsed-r.Span)
	}
}
