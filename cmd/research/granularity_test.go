package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// TestThin: a death is recorded at the next wait with a cycle. The true peak lies between the
// recorded one and its lower bound.
func TestThin(t *testing.T) {
	p, err := samples.Open("gp")
	if err != nil {
		t.Fatal(err)
	}
	var waits []int64
	died := make(map[uint64]int64)
	for _, e := range p.Events {
		switch e.Kind {
		case trace.Sync:
			waits = append(waits, e.Time)
		case trace.Drop:
			died[e.ID] = e.Time
		}
	}
	true := recording.StatsOf(p).PeakReachable
	for _, every := range []int{1, 16} {
		seen := thin(p, every)
		if err := seen.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.Events {
			i := slices.Index(waits, e.Time)
			if e.Kind == trace.Free && (i < 0 || (i+1)%every != 0 || waits[i] < died[e.ID] || i >= every && waits[i-every] > died[e.ID]) {
				t.Fatalf("every %d: object %d died at %d and is found at %d", every, e.ID, died[e.ID], e.Time)
			}
		}
		early, _ := recording.Earlier(seen, 0)
		if most, least := recording.StatsOf(seen).PeakReachable, recording.StatsOf(early).PeakReachable; least > true || true > most || most == least {
			t.Errorf("every %d: the peak is %d, said to be %d to %d", every, true, least, most)
		}
	}
}

func TestGranularityReport(t *testing.T) {
	who, err := experiment.ParseContenders("never,cudajl,pacer")
	if err != nil {
		t.Fatal(err)
	}
	grains, err := granulate(t.Context(), []*trace.Trace{program("a", 3000)}, who)
	if err != nil {
		t.Fatal(err)
	}
	if page, err := writeGranularity(grains); err != nil || !strings.Contains(string(page), "| true | 1.000 | 1.000 | 1.000 | 1.000 | 1, 1 | 1.000 |") {
		t.Errorf("%v in\n%s", err, page)
	}
}
