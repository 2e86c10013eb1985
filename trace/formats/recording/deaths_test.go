package recording_test

import (
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// Three objects in a recorder with cycles at 10 and 20 ns: a is dropped by the program, b lives on
// after the first cycle, c begins after it.
func TestDeathsBetweenTwoCycles(t *testing.T) {
	seen := &trace.Trace{Events: []trace.Event{
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 1},
		{Time: 2, Kind: trace.Alloc, ID: 2, Bytes: 10},
		{Time: 4, Kind: trace.Drop, ID: 1, Bytes: 1},
		{Time: 10, Kind: trace.Cycle, Duration: 1, Bytes: 1},
		{Time: 11, Kind: trace.Free, ID: 1, Bytes: 1, Aux: trace.FreeCycle},
		{Time: 16, Kind: trace.Alloc, ID: 3, Bytes: 100},
		{Time: 20, Kind: trace.Cycle, Duration: 1, Bytes: 110},
		{Time: 22, Kind: trace.Free, ID: 2, Bytes: 10, Aux: trace.FreeCycle},
		{Time: 23, Kind: trace.Free, ID: 3, Bytes: 100, Aux: trace.FreeCycle},
	}}
	for share, want := range map[float64][2]int64{0: {10, 16}, 0.5: {15, 18}, 1: {20, 20}} {
		moved, late := recording.Earlier(seen, share)
		if err := moved.Validate(); err != nil {
			t.Fatal(share, err)
		}
		var at [2]int64
		for _, e := range moved.Events {
			if e.Kind == trace.Drop && e.ID > 1 {
				at[e.ID-2] = e.Time
			}
		}
		if at != want || !slices.Equal(late, []time.Duration{4, 10}) {
			t.Errorf("share %v: drops at %v, late by %v", share, at, late)
		}
	}
	if w, err := sim.Compile(seen, 0); err != nil || w.SeenDeaths != 2 {
		t.Errorf("%d deaths from cycles, %v", w.SeenDeaths, err)
	}
	if early, _ := recording.Earlier(seen, 0); recording.StatsOf(early).PeakReachable != 100 || recording.StatsOf(seen).PeakReachable != 110 {
		t.Error("the bounds of the peak are wrong")
	}
}
