package main

import (
	"math"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// toy returns a recording of 4 s with a wait of half a second. 4 MiB are live from 0 to 2 s, 2 MiB
// from 1 to 4 s, and 6 MiB from 3 s on.
func toy() *trace.Trace {
	at := pressure.Device(0)
	return &trace.Trace{Name: "toy", Events: []trace.Event{
		{Time: 0, ID: 1, Kind: trace.Alloc, Bytes: 4 << 20, Space: at},
		{Time: 1e9, ID: 2, Kind: trace.Alloc, Bytes: 2 << 20, Space: at},
		{Time: 2e9, ID: 1, Kind: trace.Drop, Space: at},
		{Time: 2e9, Kind: trace.Sync, Duration: 5e8},
		{Time: 3e9, ID: 3, Kind: trace.Alloc, Bytes: 6 << 20, Space: at},
		{Time: 4e9, ID: 2, Kind: trace.Drop, Space: at},
	}}
}

func TestCardOfAToy(t *testing.T) {
	w := compiled(t, toy())[0]
	c := newCard(toy(), w)
	for i, want := range map[string]float64{
		"TIM": 4, "PKR": 8, "FIL": 5. / 8, "TUR": 12. / 8, "RAT": 12. / 8 / 4, "BUR": 1, "OBM": 4 << 20, "OBT": 0.5, "OPM": 2. / 8, "AGE": 6. / 8,
		"IMM": 6. / 8, "LEA": 2.08 / 4.08, "WPS": 0.25, "WSH": 0.125, "SEN": (0.002 + 0.05*0.001) / 4, // one refusal at 1.25x
	} {
		for s := range statistics {
			if statistics[s].Name == i && !near(c.Values[s], want) {
				t.Errorf("%s: %v, want %v", i, c.Values[s], want)
			}
		}
	}
	if x := leastLimit(w); x != 1 {
		t.Errorf("the least limit is %v of the peak", x)
	}
}
