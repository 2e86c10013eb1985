package command

import (
	"bytes"
	"encoding/json"
	"testing"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

func small(t *testing.T) *experiment.Grid {
	t.Helper()
	s := setting{policies: listed{"never,threshold:0.9,optimum-blocking", true}, limits: listed{"0.5x,2x", true}, cycles: listed{text: "1ms"}, ladder: "2x"}
	g, err := s.grid([]string{"mlp"})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// What goes out as JSON comes back, but for the cells that have no outcome.
func TestJSONRoundTrips(t *testing.T) {
	c := small(t)
	var b bytes.Buffer
	if err := writeJSON(&b, c); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("no JSON: %s", line)
		}
	}
	back, err := parseResults("results.json", &b)
	if err != nil {
		t.Fatal(err)
	}
	var want []sim.Result
	for _, o := range c.Outcomes() {
		if o.Err == nil {
			want = append(want, o.Result)
		}
	}
	if len(want) != len(c.Outcomes())-1 || len(back) != len(want) {
		t.Fatalf("%d of %d outcomes came back as %d", len(want), len(c.Outcomes()), len(back))
	}
	for i := range want {
		if back[i] != want[i] {
			t.Errorf("%+v came back as %+v", want[i], back[i])
		}
	}
}

// The reader that benchstat uses finds every cell that has an outcome.
func TestBenchIsReadByBenchfmt(t *testing.T) {
	c := small(t)
	var b bytes.Buffer
	if err := writeBench(&b, c); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&b, "bench")
	n := 0
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(rec)
		case *benchfmt.Result:
			for c.Outcomes()[n].Err != nil {
				n++
			}
			pause, ok := rec.Value("pause-sec")
			if want := c.Outcomes()[n].ExposedPause.Seconds(); !ok || pause != want {
				t.Errorf("%s has a pause of %v s, want %v", rec.Name, pause, want)
			}
			n++
		}
	}
	if n < 5 {
		t.Errorf("%d results", n)
	}
	if r.Units().GetAssumption("pause-sec") != benchmath.AssumeExact {
		t.Error("benchstat would ask for more runs")
	}
}
