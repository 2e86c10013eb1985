package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
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
