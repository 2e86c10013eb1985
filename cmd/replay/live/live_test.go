package live

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
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

// A learning policy counts the cycles that it observes.
type learning struct {
	policy.Policy
	cycles int
}

func (l *learning) Observe(policy.Cycle) { l.cycles++ }

// The results that do not depend on time equal those of the simulation: when only the ladder
// collects, the number of refusals, and the live bytes at the peak.
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
			told := &learning{Policy: policy.Spec{}.New()}
			got, err = Run(context.Background(), tr, Config{Policy: told, Limit: limit, Space: space, Memory: Memory{Direct: true, Touch: -1}, Log: log})
			if err != nil {
				t.Fatal(err)
			}
			if told.cycles != len(log.Cycles) {
				t.Errorf("limit %d: the policy learns of %d cycles, the log has %d", limit, told.cycles, len(log.Cycles))
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
		if n := got.RefusalCollections; n > 0 && got.Cycle != got.GCBusy/time.Duration(n) || len(log.Cycles) < n || len(log.Pauses) == 0 || got.ExposedPause <= 0 || got.MaxPause > got.ExposedPause {
			t.Errorf("limit %d: %d cycles, %d pauses, %v exposed", limit, len(log.Cycles), len(log.Pauses), got.ExposedPause)
		}
	}
}

func TestRunWithoutALimitTakesTheTimeRecorded(t *testing.T) {
	tr := steady(100)
	var behind sync.Once // at the start
	got, err := Run(context.Background(), tr, Config{Space: pressure.Device(0), Memory: Memory{Direct: true}, Speed: 1, Progress: func(float64) {
		behind.Do(func() { time.Sleep(2 * time.Millisecond) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Late < time.Millisecond || got.Elapsed < got.Span || got.PeakLive < 100<<20 || got.MeanLive <= got.MeanGarbage {
		t.Errorf("%+v", got.Result)
	}
}

func TestImpossibleLimitFailsAllocationsAndGoesOn(t *testing.T) {
	got, err := Run(context.Background(), steady(20), Config{Limit: 2 << 20, Space: pressure.Device(0), Memory: Memory{Direct: true}})
	if err != nil || got.FailedAllocs == 0 || got.FailedAllocs == 20 {
		t.Errorf("%d failed, %v", got.FailedAllocs, err)
	}
	if _, err := Run(context.Background(), &trace.Trace{Events: []trace.Event{{Kind: trace.Drop, ID: 1}}}, Config{}); err == nil {
		t.Error("an invalid recording runs")
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
