package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// churn returns a program that allocates 1 MiB each millisecond and reaches the last 8 of them.
func churn(t *testing.T, name string) *sim.Workload {
	p := &trace.Trace{Name: name}
	for i := range 2000 {
		at := int64(i) * int64(time.Millisecond)
		p.Record(trace.Event{Time: at, Kind: trace.Alloc, ID: uint64(i + 1), Bytes: 1 << 20})
		if i >= 8 {
			p.Record(trace.Event{Time: at, Kind: trace.Drop, ID: uint64(i - 7)})
		}
	}
	return compiled(t, p)[0]
}

// TestBestSplit divides memory between two equal programs. The one whose cycles take 16 times as
// long gets about 4 times the headroom, and equal ones get the same.
func TestBestSplit(t *testing.T) {
	c := &heapCache{kept: make(map[string]*account)}
	w := churn(t, "churn")
	headroom := func(s setting) float64 { return float64(s.limit - w.PeakReachable) }
	heaps := []heap{{Workload: w, cycle: time.Millisecond}, {Workload: w, cycle: 16 * time.Millisecond}, {Workload: w, cycle: time.Millisecond}}
	s := bestSplit(c, heaps, 1e-9)
	if s[0] != s[2] {
		t.Errorf("equal heaps get %v and %v", s[0], s[2])
	}
	if x := headroom(s[1]) / headroom(s[0]); x < 2 || x > 8 {
		t.Errorf("headroom differs by a factor of %.2f, want about 4", x)
	}
}

// TestFrontBetweenPoints reads a front at, between and beyond its points.
func TestFrontBetweenPoints(t *testing.T) {
	front := []heapPoint{{mean: 1, collector: 16}, {mean: 4, collector: 4}, {mean: 8, collector: 9}}
	of := func(p heapPoint) float64 { return p.mean }
	for memory, want := range map[float64]float64{1: 16, 2: 8, 4: 4, 6: 4, 8: 4} {
		if x := at(front, memory, of); math.Abs(x-want) > 1e-9 {
			t.Errorf("at %g: %g, want %g", memory, x, want)
		}
	}
	if x := at(front, 9, of); !math.IsNaN(x) {
		t.Errorf("beyond the last point: %g", x)
	}
}

// TestHeapsReport judges all rules on one recording. Each rule has a row, and the bound has ones.
func TestHeapsReport(t *testing.T) {
	if testing.Short() {
		t.Skip("replays some thousand runs")
	}
	programs, err := load([]string{"mlp", "query"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := heaps(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(ruleNames(), "| best static split | 1.00 (1.00 to 1.00)", "## 16 heaps") {
		if !strings.Contains(string(files["report.md"]), want) {
			t.Errorf("the report has no %q", want)
		}
	}
}
