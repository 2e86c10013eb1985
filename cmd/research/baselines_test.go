package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestLowerBound computes overheads by hand, of one recording of 1 s, 0.6 s of them waits, and
// three policies.
func TestLowerBound(t *testing.T) {
	run := func(exposed, slowed, busy time.Duration) *experiment.Outcome {
		return &experiment.Outcome{Host: 400, Result: sim.Result{Span: 1000, Elapsed: 1000 + exposed + slowed, ExposedPause: exposed, Slowed: slowed, GCBusy: busy}}
	}
	blocking, beside := run(200, 0, 200), run(10, 50, 300)
	for name, x := range map[string][2]float64{
		"elapsed, what blocks is the baseline":        {distilled([]cost{wall(blocking), wall(beside)}), 1000},
		"elapsed, only what slows":                    {distilled([]cost{wall(beside)}), 1050},
		"elapsed, by hand":                            {distilled([]cost{wall(beside), wall(byHand(beside))}), 1000},
		"processor, only what slows":                  {distilled([]cost{processor(beside)}), 450},
		"processor, by hand":                          {distilled([]cost{processor(beside), processor(byHand(beside))}), 400},
		"overhead in elapsed time of what blocks":     {wall(blocking).Total / 1000, 1.2},
		"overhead in processor time of what overlaps": {processor(beside).Total / 400, 1.875},
	} {
		if !near(x[0], x[1]) {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
}

func TestLineAtTheSameMemory(t *testing.T) {
	l := line{Live: []float64{1, 3, 4}, Lost: []float64{0.4, 0.9, 0.1}} // 3 is not on the front: it holds more than 1 and loses more
	if x := l.at(2); !near(x, 0.25) {
		t.Errorf("half way between 1 and 4, by factors: %v, want 0.25", x)
	}
	if x := l.at(5); !math.IsNaN(x) {
		t.Errorf("beyond the line: %v", x)
	}
}

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
	if x := leastLimit(w, addressonly.Exact); x != 1 {
		t.Errorf("the least limit is %v of the peak", x)
	}
}

func TestComponentsOfALine(t *testing.T) {
	var cards []card
	for i := range 3 {
		v := make([]float64, len(statistics))
		v[0] = math.NaN() // unknown for all
		v[2], v[7] = float64(i), float64(10*i)
		cards = append(cards, card{Values: v})
	}
	at, weights, share, err := components(cards)
	if err != nil || !near(share[0], 1) || !near(at[2][0], math.Sqrt2) || !near(at[1][0], 0) || !near(weights[7][0], math.Sqrt2/2) || weights[0][0] != 0 {
		t.Errorf("%v, %v, %v, %v", at, weights, share, err)
	}
}

// TestPages writes both pages for three recordings.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, "live.jsonl")
	// Without pauses never took 8 and pacer 9, so the bounds are 8 and 9.
	if err := os.WriteFile(live, []byte(`{"trace":"x","policy":"never","elapsed_ns":12,"exposed_pause_ns":4}
{"trace":"x","policy":"pacer","elapsed_ns":10,"exposed_pause_ns":1}
{"trace":"y","policy":"pacer","elapsed_ns":99,"exposed_pause_ns":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	programs := []*trace.Trace{program("gp", 300), program("b", 500), toy()}
	cards, err := corpus(programs)
	if err != nil {
		t.Fatal(err)
	}
	page, err := baselines(t.Context(), programs, []string{live})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"cards.md": {"## toy", "| TIM | 4 | 1 |"}, "cards.csv": {"\ntoy,PyTorch,4,8,"}, "corpus.svg": {"</svg>"},
		"report.md": {"| `never` | 1.5 |", "| `pacer` | 1.25 | 1.111 | 1.125 |", "| by hand | 1 |", "| `pacer` | 2 | 1 (1.02", "| agrees with the first |  | 1.00 |"},
		"cells.csv": {"\ntoy,\"never\",1.25,1ms,0,0,1,4002000000,2000000,1000000,"}, "knobs.csv": {"\n2x,growth,\"growth:0.25\","}, "overhead.svg": {"</svg>"}, "limited.svg": {"</svg>"}, "free.svg": {"</svg>"},
	} {
		text := string(cards[name]) + string(page[name])
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%.3000s", name, w, text)
			}
		}
	}
	if err := page.save(dir, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "report.md")); err != nil || len(text) != len(page["report.md"]) {
		t.Errorf("saved: %v", err)
	}
}
