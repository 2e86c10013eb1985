package recording_test

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func TestStats(t *testing.T) {
	s := parse(t, `
0 reserve bytes=2048
10 alloc id=1 bytes=100
20 alloc id=2 bytes=1000 space=device1
30 drop id=1 bytes=100
40 cycle bytes=100 duration=7
40 free id=1 bytes=100 aux=1
50 sync duration=30
60 alloc id=3 bytes=500
70 free id=3 bytes=500
80 refuse bytes=9
90 release bytes=2048
`)
	want := recording.Stats{
		Events: 11, Allocs: 3, Drops: 1, Frees: 2, Syncs: 1, Cycles: 1, Refusals: 1,
		AllocatedBytes: 1600, DroppedBytes: 100, FreedBytes: 600,
		PeakReachable: 1500, PeakHeld: 1500, PeakReserved: 2048, LastBytes: 1000, LastObjects: 1,
		Span: 60, Wait: 30, CycleTime: 7, WaitShare: 0.5,
		AllocRate: 3 / time.Duration(60).Seconds(), ByteRate: 1600 / time.Duration(60).Seconds(),
		Sizes:     recording.Quantiles{Min: 100, P50: 500, P90: 1000, P99: 1000, Max: 1000, Mean: 1600. / 3},
		Lifetimes: recording.Quantiles{Min: 10, P50: 10, P90: 20, P99: 20, Max: 20, Mean: 15},
		Waits:     recording.Quantiles{Min: 30, P50: 30, P90: 30, P99: 30, Max: 30, Mean: 30},
	}
	if got := recording.StatsOf(s); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := recording.StatsOf(s, pressure.Device(1)); got.AllocatedBytes != 1000 || got.Syncs != 1 || got.PeakReserved != 0 {
		t.Errorf("of device 1: %+v", got)
	}
	if got := recording.StatsOf(new(trace.Trace)); got != (recording.Stats{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestStatsModel holds the sums to each other.
func TestStatsModel(t *testing.T) {
	check(t, 100, func(t *random) {
		tr := drawValid(t)
		s := recording.StatsOf(tr)
		reachable := make(map[uint64]int64)
		var peak, now int64
		for _, e := range tr.Events {
			switch e.Kind {
			case trace.Alloc:
				reachable[e.ID] = e.Bytes
				now += e.Bytes
			case trace.Drop, trace.Free:
				now -= reachable[e.ID]
				delete(reachable, e.ID)
			}
			peak = max(peak, now)
		}
		if s.PeakReachable != peak || s.LastBytes != now || s.LastObjects != len(reachable) || s.PeakHeld < peak {
			t.Fatalf("%+v, want peak %d and %d bytes in %d objects at the end", s, peak, now, len(reachable))
		}
	})
}
