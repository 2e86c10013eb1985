package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steady is n objects of a MiB, each dropped when the third after it is there,
// with a sync of 1 ms after every tenth.
func steady(n int) *trace.Trace {
	t := &trace.Trace{Name: "steady", Labels: []string{"", "step"}}
	now := int64(0)
	for i := range n {
		now += 50_000
		t.Record(trace.Event{Time: now, Kind: trace.Alloc, ID: uint64(i), Bytes: 1 << 20, Space: pressure.Device(0)})
		if i >= 3 {
			t.Record(trace.Event{Time: now, Kind: trace.Drop, ID: uint64(i - 3), Space: pressure.Device(0)})
		}
		if i%10 == 9 {
			t.Record(trace.Event{Time: now, Kind: trace.Sync, Duration: time.Millisecond, Aux: 1})
			now += 1_000_000
		}
	}
	return t
}

// TestNeverRefusesAsTheSimulationSays holds what does not depend on time to the
// simulation, exactly: when nothing but the ladder collects, how often it does,
// and how much memory was live at the peak.
func TestNeverRefusesAsTheSimulationSays(t *testing.T) {
	tr := steady(200)
	space := pressure.Device(0)
	w, err := sim.Compile(tr, space)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{4 << 20, 8 << 20, 32 << 20} {
		want := sim.Run(w, policy.Spec{}.New(), sim.Config{Limit: limit})
		log := new(sim.Log)
		var got Report
		for range 10 { // where a machine is so busy that memory comes back after its cycle, there are more
			*log = sim.Log{}
			got, err = Run(context.Background(), tr, Config{Limit: limit, Space: space, Memory: Memory{Direct: true, Touch: -1}, Log: log})
			if err != nil {
				t.Fatal(err)
			}
			if got.RefusalCollections == want.RefusalCollections {
				break
			}
		}
		if got.RefusalCollections != want.RefusalCollections || got.Collections != 0 || got.FailedAllocs != want.FailedAllocs {
			t.Errorf("limit %d: %d refusals, %d failed; simulated %d, %d", limit,
				got.RefusalCollections, got.FailedAllocs, want.RefusalCollections, want.FailedAllocs)
		}
		if got.PeakLive != want.PeakLive || got.Reserved > limit {
			t.Errorf("limit %d: peak %d, reserved %d; simulated %d", limit, got.PeakLive, got.Reserved, want.PeakLive)
		}
		if got.Span != want.Span || got.LimitFactor != want.LimitFactor || got.Trace != want.Trace || got.Policy != want.Policy {
			t.Errorf("limit %d: %+v", limit, got.Result)
		}
		if len(log.Cycles) < got.RefusalCollections || len(log.Pauses) == 0 || got.ExposedPause <= 0 || got.MaxPause > got.ExposedPause {
			t.Errorf("limit %d: %d cycles, %d pauses, %v exposed", limit, len(log.Cycles), len(log.Pauses), got.ExposedPause)
		}
	}
}

func TestRunWithoutALimitTakesTheTimeRecorded(t *testing.T) {
	tr := steady(100)
	got, err := Run(context.Background(), tr, Config{Space: pressure.Device(0), Memory: Memory{Direct: true}, Speed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got.Elapsed < got.Span || got.PeakLive < 100<<20 || got.MeanLive <= got.MeanGarbage {
		t.Errorf("%+v", got.Result)
	}
}

func TestImpossibleLimitFailsAllocationsAndGoesOn(t *testing.T) {
	got, err := Run(context.Background(), steady(20), Config{Limit: 2 << 20, Space: pressure.Device(0), Memory: Memory{Direct: true}})
	if err != nil || got.FailedAllocs == 0 || got.FailedAllocs == 20 {
		t.Errorf("%d failed, %v", got.FailedAllocs, err)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if _, err := Run(ctx, steady(100), Config{Space: pressure.Device(0)}); !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestRunRejectsABadTrace(t *testing.T) {
	bad := &trace.Trace{Events: []trace.Event{{Kind: trace.Alloc, ID: 1}, {Kind: trace.Alloc, ID: 1}}}
	if _, err := Run(context.Background(), bad, Config{}); err == nil {
		t.Error("no error")
	}
}

func TestProgramReusesThePlacesOfDroppedObjects(t *testing.T) {
	p, err := compile(steady(1000), pressure.Device(0))
	if err != nil {
		t.Fatal(err)
	}
	if p.slots != 4 {
		t.Errorf("%d places for 4 reachable objects", p.slots)
	}
	if len(p.places) != 1 || p.places[0] != "step" {
		t.Errorf("places %q", p.places)
	}
}

func TestScale(t *testing.T) {
	got, err := Scale(steady(5), 3)
	if err != nil {
		t.Fatal(err)
	}
	if e := got.Events[0]; e.Bytes != (1<<20+2)/3 {
		t.Errorf("%+v", e)
	}
	if _, err := Scale(got, 0); err == nil {
		t.Error("no error")
	}
}

func TestBallastHasTheNodesItWasAskedFor(t *testing.T) {
	for _, want := range []int{0, 1, 2, 1000, treeNodes, 3*treeNodes + 5} {
		got := 0
		for _, n := range NewBallast(int64(want) * nodeBytes).trees {
			got += count(n)
		}
		if got != want {
			t.Errorf("%d nodes, want %d", got, want)
		}
	}
}

func count(n *node) int {
	if n == nil {
		return 0
	}
	return 1 + count(n.left) + count(n.right)
}

// TestSampleLearnsTheSameUnderEveryPolicy trains on memory that nothing frees
// by hand. What was given back too early would change the result.
func TestSampleLearnsTheSameUnderEveryPolicy(t *testing.T) {
	want := float32(0)
	for i, name := range []string{"never", "always", "cudajl"} {
		c, err := gc.New(gc.Config{Policy: policy.MustParse(name).New(), Caps: gc.Caps{Cycles: 1, Held: 1, Assist: -1}}) // on a slow machine, too, as many cycles as it likes
		if err != nil {
			t.Fatal(err)
		}
		limit := pressure.Limits{Hard: pressure.Limit{Bytes: 4 << 20}}
		if i == 0 {
			limit = pressure.Limits{}
		}
		p, err := pool.New(pool.Config{Collector: c, Limits: limit})
		if err != nil {
			t.Fatal(err)
		}
		first, last, err := Sample{Steps: 100, Width: 64}.Run(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if !(last < first/2) {
			t.Errorf("%s: loss went from %v to %v", name, first, last)
		}
		if i == 0 {
			want = last
		} else if last != want {
			t.Errorf("%s: loss %v, want %v", name, last, want)
		}
		if stats := c.Stats(); name == "always" && (stats.Cycles[policy.TriggerPolicy] < 60 || stats.Freed == 0) {
			t.Errorf("%s: %+v", name, stats)
		}
		p.Close()
		c.Close()
	}
}
