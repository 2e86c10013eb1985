package sim

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/kineto"
)

// A device that is ahead of its program takes a pause up to that much; without a
// measurement it takes one up to the wait.
func TestAPauseMakesTheDeviceLate(t *testing.T) {
	for name, c := range map[string]struct {
		ahead  float64 // negative: not measured
		pauses []float64
		left   float64 // of a wait of 100
	}{
		"no pause":        {50, nil, 100},
		"taken":           {50, []float64{30}, 70},
		"taken, in parts": {50, []float64{30, 20}, 50},
		"not all":         {50, []float64{70}, 50},
		"not ahead":       {0, []float64{70}, 100},
		"longer than it":  {150, []float64{120}, 0},
		"not measured":    {-1, []float64{70}, 30},
	} {
		var l Lead
		if c.ahead >= 0 {
			l.Measured(c.ahead)
		}
		for _, d := range c.pauses {
			l.Pause(d)
		}
		if got := l.Wait(100); got != c.left {
			t.Errorf("%s: %v left, want %v", name, got, c.left)
		}
		if l.Pause(10); c.ahead >= 0 && l.Late() != 10 {
			t.Errorf("%s: after a wait the device is ahead", name)
		}
	}
}

// In a recording that says how far the device was ahead, a pause of 10 before it was
// delays the wait, and one of 10 after it is taken.
func TestElasticWaitsAsRecorded(t *testing.T) {
	run := func(ahead time.Duration) Result {
		const d0 = 1 << 4
		tr := &trace.Trace{Name: "ahead", Labels: []string{"", "wait", trace.AheadLabel}, Events: []trace.Event{
			{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 100, Space: d0},
			{Time: 1, Kind: trace.Drop, ID: 1, Bytes: 100, Space: d0},
			{Time: 2, Kind: trace.Mark, Aux: 2, Duration: ahead},
			{Time: 5, Kind: trace.Alloc, ID: 2, Bytes: 100, Space: d0},
			{Time: 10, Kind: trace.Sync, Duration: 50, Aux: 1},
		}}
		w, err := Compile(tr, d0)
		if err != nil {
			t.Fatal(err)
		}
		return Run(w, policy.MustParse("never").New(), Config{Limit: 150, Machine: &Machine{Mark: Linear{Base: 10}, Elastic: true}})
	}
	for ahead, want := range map[time.Duration]time.Duration{0: 70, 4: 66, 10: 60, 40: 60} {
		if got := run(ahead); got.Elapsed != want || got.ExposedPause != 10 {
			t.Errorf("ahead by %d: took %d, want %d, paused %d", ahead, got.Elapsed, want, got.ExposedPause)
		}
	}
}

// What pauses added to the waits of five programs on a GPU, and what their profiles
// say of it: see results/2026-11-22-elastic.
func TestElasticWaitsAsOnAGPU(t *testing.T) {
	const folder = "../results/2026-11-22-elastic/"
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
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := kineto.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// added is what a pause at a point of each step adds to it, in the mean.
func added(t *trace.Trace, point string, pause float64, measured bool) float64 {
	var lead Lead
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
