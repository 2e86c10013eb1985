package fleet

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/synthetic"
)

var question = Question{
	Policies: []string{"never", "cudajl", "optimum-overlap"}, Limits: []string{"1.25x", "2x"}, Cycles: []time.Duration{time.Millisecond}, Ladder: "2x",
}

// answers are of six recordings; the last is none.
func answers(t *testing.T) (all []*Answer, loads []*sim.Workload) {
	t.Helper()
	for i, shape := range synthetic.Shapes()[:5] {
		tr, err := synthetic.Open(shape, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		tr.Events = tr.Events[:min(len(tr.Events), 4000)]
		var text bytes.Buffer
		if err := recording.WriteText(&text, tr); err != nil {
			t.Fatal(err)
		}
		a, err := question.Map(shape, &text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil {
			t.Fatal(err)
		}
		loads = append(loads, w)
	}
	a, err := question.Map("broken", strings.NewReader("no recording"))
	if err != nil || a.Recordings != 0 || a.Broken["broken"] == "" {
		t.Fatalf("%+v, %v", a, err)
	}
	return append(all, a), loads
}

// TestMergeIsExact: any order and any grouping give the same bytes, and the sums are those of a grid.
func TestMergeIsExact(t *testing.T) {
	all, loads := answers(t)
	merged := func(order ...int) *Answer {
		sum := new(Answer)
		for _, i := range order {
			sum.Merge(all[i])
		}
		return sum
	}
	text := func(a *Answer) string {
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := merged(0, 1, 2, 3, 4, 5)
	left, right := merged(3, 5), merged(4, 2, 0, 1)
	right.Merge(left)
	if got := merged(5, 3, 1, 0, 2, 4); text(got) != text(want) || text(right) != text(want) {
		t.Errorf("%s\n%s\n%s", text(want), text(got), text(right))
	}
	var again Answer
	if err := json.Unmarshal([]byte(text(want)), &again); err != nil || text(&again) != text(want) {
		t.Errorf("round trip: %v", err)
	}
	if cell, err := json.Marshal(want.Cells[0]); err != nil || !strings.Contains(text(want), string(cell)) {
		t.Errorf("a cell alone: %s, %v", cell, err)
	}
	if want.Recordings != 5 || len(want.Broken) != 1 || len(want.Cells) != 6 {
		t.Fatalf("%+v", want)
	}
	g, err := question.grid()
	if err != nil {
		t.Fatal(err)
	}
	g.Workloads = loads
	if err := g.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for l := range g.Limits {
		for p := range g.Contenders {
			cell := &want.Cells[l*len(g.Contenders)+p]
			var exposed time.Duration
			var logs float64
			runs := 0
			for w := range loads {
				if o := g.At(experiment.Cell{Workload: w, Limit: l, Contender: p}); o.Err == nil {
					exposed += o.ExposedPause
					logs += math.Log1p(float64(o.Objective()) / float64(o.Span))
					runs++
				}
			}
			mean := math.Expm1(logs / float64(runs))
			if int64(runs) != cell.Runs || int64(exposed) != cell.Exposed.Int64() || math.Abs(cell.GeometricMean()-mean) > 1e-8 {
				t.Errorf("limit %d, policy %d: %+v; want %d runs, %v exposed, %v lost", l, p, cell, runs, exposed, mean)
			}
		}
	}
}

func TestBadQuestions(t *testing.T) {
	for want, change := range map[string]func(*Question){
		"pear":         func(q *Question) { q.Policies = []string{"pear"} },
		"1.5":          func(q *Question) { q.Limits = []string{"many 1.5"} },
		"-1ns":         func(q *Question) { q.Cycles = []time.Duration{-1} },
		"ladder":       func(q *Question) { q.Ladder = "high" },
		"needs polici": func(q *Question) { q.Limits = nil },
	} {
		q := question
		change(&q)
		if err := q.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	a, b := &Answer{Recordings: 1, Question: question}, &Answer{Recordings: 1}
	defer func() {
		if recover() == nil {
			t.Error("answers to different questions merge")
		}
	}()
	a.Merge(b)
}
