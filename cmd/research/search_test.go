package main

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// TestExpressionDecides runs the rule "live bytes are above 0.8 of the limit" at three points.
func TestExpressionDecides(t *testing.T) {
	e := &expression{left: []term{{op: 'p'}}, right: []term{{'#', 1}, {'#', 0.2}, {op: '-'}}}
	if text := e.String(); text != "p > (1 - 0.2), m: rate" {
		t.Error(text)
	}
	p := &expressed{expression: e}
	for live, want := range map[int64]policy.Action{70: policy.Skip, 90: policy.Overlap, 120: policy.Block} {
		at := policy.Point{Sample: pressure.Sample{Live: live << 20, Limit: 100 << 20}, Cost: 1}
		if d := p.Decide(at); d.Action != want {
			t.Errorf("%d of 100: %v, want %v", live, d.Action, want)
		}
	}
}

// TestRandomExpressions makes expressions by lot and by mutation. Each has a text, at most two
// numbers, and a value that does not depend on what was evaluated before.
func TestRandomExpressions(t *testing.T) {
	lot := rand.New(rand.NewPCG(1, 1))
	values := [len(letters)]float64{0.5, 0.5, 0.2, 0.3, 0.01, 2, 0.1}
	e := randomExpression(lot)
	for range 10_000 {
		first := evaluate(e.left, &values)
		if again := evaluate(e.left, &values); e.String() == "" || e.numbers() > 2 || again != first {
			t.Fatalf("%s: %d numbers, %g and %g", e, e.numbers(), first, again)
		}
		if e = e.mutate(lot); lot.IntN(10) == 0 {
			e = randomExpression(lot)
		}
	}
}

// TestLearnedBeatsNothing trains the Q-learner on one recording. It loses less than refusals alone.
func TestLearnedBeatsNothing(t *testing.T) {
	programs, err := load([]string{"gp"})
	if err != nil {
		t.Fatal(err)
	}
	cells := searchCells(compiled(t, programs...), []float64{1.5}, []sim.Cost{sim.Fixed(time.Millisecond)})
	learned, never := cells[0].run(&qLearner{table: learn(cells, 30, 1)}), cells[0].run(policy.MustParse("never").New())
	if learned >= never {
		t.Errorf("learned: %v, never: %v", learned, never)
	}
}

// TestSearchReport searches among few candidates, and judges them on a recording that they have not
// seen.
func TestSearchReport(t *testing.T) {
	if testing.Short() {
		t.Skip("replays some thousand runs")
	}
	programs, err := load([]string{"mlp", "gp", "burst", "query"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := searches(t.Context(), programs, searchBatch, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| `pacer` | 1.000 (", "| `expression 1` |", "| `Q-learner` |", "| Go |"} {
		if !strings.Contains(string(files["report.md"]), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if _, err := searches(t.Context(), programs[3:], searchBatch, io.Discard); err == nil || !strings.Contains(err.Error(), "three or more") {
		t.Errorf("without PyTorch recordings: %v", err)
	}
}
