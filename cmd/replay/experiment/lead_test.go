package experiment_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
)

// What pauses added to the waits of five programs on a GPU, and what their profiles
// say of it: see results/2026-11-22-elastic.
func TestElasticWaitsAsOnAGPU(t *testing.T) {
	const folder = "../../../results/2026-11-22-elastic/"
	file, err := os.Open(folder + "elastic.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	profiles := map[string]*trace.Trace{}
	var n, near, nearWhole int
	var off, offWhole float64
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		var r struct {
			Program string
			Point   int
			Pause   float64 `json:"pause_ns"`
			Base    float64 `json:"base_ns"`
			Held    float64 `json:"held_ns"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if profiles[r.Program] == nil {
			profiles[r.Program] = profile(t, folder+r.Program+".json.gz")
		}
		point := "point" + string(rune('0'+r.Point))
		said, whole := added(profiles[r.Program], point, r.Pause, true), added(profiles[r.Program], point, r.Pause, false)
		d, w := math.Abs(said-(r.Held-r.Base)), math.Abs(whole-(r.Held-r.Base))
		if d <= 0.1*r.Pause+50e3 {
			near++
		}
		if w <= 0.1*r.Pause+50e3 {
			nearWhole++
		}
		off, offWhole = off+d/r.Pause, offWhole+w/r.Pause
	}
	if n != 75 || near != 63 || nearWhole != 44 || math.Abs(off/75-0.070) > 0.0005 || math.Abs(offWhole/75-0.244) > 0.0005 {
		t.Errorf("of %d pauses %d are as said, off by %.3f; if whole waits absorb %d, off by %.3f", n, near, off/75, nearWhole, offWhole/75)
	}
}

func profile(t *testing.T, path string) *trace.Trace {
	t.Helper()
	p, err := formats.Opener{From: "kineto"}.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// added is what a pause at a point of each step adds to it, in the mean.
func added(t *trace.Trace, point string, pause float64, measured bool) float64 {
	var lead sim.Lead
	var sum, steps float64
	for _, e := range t.Events {
		switch {
		case e.Kind == trace.Mark && t.Label(e) == trace.AheadLabel && measured:
			lead.Measured(float64(e.Duration))
		case e.Kind == trace.Mark && t.Label(e) == point:
			lead.Pause(pause)
			steps++
			sum += pause
		case e.Kind == trace.Sync:
			sum += lead.Wait(float64(e.Duration)) - float64(e.Duration)
		}
	}
	return sum / steps
}
