package sim

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestResultNames: the names in JSON are part of the file format of results, and stay.
func TestResultNames(t *testing.T) {
	text, err := json.Marshal(Result{"t", "p", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	want := `{"trace":"t","policy":"p","limit_factor":1,"limit_bytes":2,"cycle_ns":3,"ladder_ns":4,"collections":5,"refusal_collections":6,"failed_allocs":7,"exposed_pause_ns":8,` +
		`"max_pause_ns":9,"gc_busy_ns":10,"peak_live_bytes":11,"mean_live_bytes":12,"mean_garbage_bytes":13,"span_ns":14,"elapsed_ns":15}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// TestKeepReasons: KeepReasons keeps the decisions that asked for a cycle, in capitals here, and the last before each cycle, after C, e and H.
func TestKeepReasons(t *testing.T) {
	const all = "a b C d e f G H i"
	var none *Log
	for want, l := range map[string]Log{"": {}, all: {KeepDecisions: true}, "C e G H i": {KeepReasons: true}} {
		for i, what := range strings.Fields(all) {
			d := policy.Decision{Reason: what}
			if strings.ToUpper(what) == what {
				d.Action = policy.Overlap
			}
			l.decide(time.Duration(i), &policy.Point{Request: int64(i)}, d)
			none.decide(0, &policy.Point{}, d)
			if strings.Contains("C e H", what) {
				l.Cycles = append(l.Cycles, Collected{})
			}
		}
		var got []string
		for _, d := range l.Decisions {
			if got = append(got, d.Reason); d.Trace != time.Duration(d.Request) {
				t.Errorf("%q is at %v", d.Reason, d.Trace)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("keeps %q, want %q", got, want)
		}
	}
}

// TestSeriesKeepsTheEndsAndExtremesOfEachSlot: levels 10 ns apart, in slots of 100 ns.
func TestSeriesKeepsTheEndsAndExtremesOfEachSlot(t *testing.T) {
	s, got := sampler{slot: 100}, [][2]int64(nil)
	for i, live := range []int64{5, 9, 9, 5, 1, 1, 5, 4, 4, 3, 3, 3, 7, 3} {
		s.add(Level{At: time.Duration(i * 10), Live: live})
	}
	for _, x := range s.flush() {
		got = append(got, [2]int64{int64(x.At), x.Live})
	}
	if want := [][2]int64{{0, 5}, {10, 9}, {40, 1}, {90, 3}, {100, 3}, {120, 7}, {130, 3}}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// TestLatenciesAgainstTheirDefinition: a step that was due earlier counts from then.
func TestLatenciesAgainstTheirDefinition(t *testing.T) {
	check(t, 300, func(t *random) {
		w := genWorkload(t, t.coin())
		log := new(Log)
		Run(w, genWhim(t, policy.Skip, policy.Block)(), Config{Cost: Fixed(20), Log: log})
		at := func(t int64) float64 {
			sum := t
			for _, p := range log.Pauses {
				if int64(p.Trace) <= t {
					sum += int64(p.Length)
				}
			}
			return float64(sum)
		}
		begins, ends := []float64{at(0)}, []float64(nil)
		for _, p := range w.points {
			if p.sync {
				begins, ends = append(begins, at(p.time+p.arg)), append(ends, at(p.time+p.arg))
			}
		}
		if !slices.IsSorted(ends) {
			return // a wait that began within another
		}
		var want []time.Duration
		for i, end := range ends {
			due := begins[0] + (begins[len(ends)-1]-begins[0])*float64(i)/float64(max(1, len(ends)-1))
			want = append(want, time.Duration(math.Round(end-min(begins[i], due))))
		}
		slices.Sort(want)
		if got := w.Latencies(log); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// TestRunAllocatesNothingPerEvent: a run allocates its state and text, however long the trace.
func TestRunAllocatesNothingPerEvent(t *testing.T) {
	short, long := sawtooth(t, 100), sawtooth(t, 10_000)
	spec, cfg := policy.MustParse("cudajl"), Config{Limit: 1000, Cost: Fixed(200), Ladder: Ladder{Factor: 2}}
	a := testing.AllocsPerRun(10, func() { Run(short, spec.New(), cfg) })
	b := testing.AllocsPerRun(10, func() { Run(long, spec.New(), cfg) })
	if a != b {
		t.Errorf("%v allocations for 100 objects, %v for 10,000", a, b)
	}
}
