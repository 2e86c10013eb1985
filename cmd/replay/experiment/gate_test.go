package experiment

import (
	"math"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/sim"
)

func conditions(t *testing.T, texts ...string) (all []Condition) {
	t.Helper()
	for _, text := range texts {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// Check names the cells that fail, and judges means, against a contender or against results.
func TestGate(t *testing.T) {
	g := small(t, "always,never")
	g.Limits = g.Limits[1:]
	g.must(t)
	held := conditions(t, "failed_allocs==0", "collections<=0.5x", "geomean collections<=1000x", "geomean collections<=1x", "collections>=20", "collections>20", "collections<100", "peak_live_bytes<1GiB")
	failures, means, err := g.Check(held, nil)
	if err != nil || len(means) != 2 || !means[0].OK || means[1].OK || means[0].Ratio != means[1].Ratio {
		t.Errorf("%+v, %v", means, err)
	}
	failed := map[string]int{}
	for _, f := range failures {
		failed[f.Text]++
		if f.Value == 0 || f.Baseline != 0 || !strings.Contains(f.Name, "policy=always") {
			t.Errorf("%+v", f)
		}
	}
	// Always has 20 and 100 cycles, never has none: 8 cells.
	if len(failed) != 3 || failed["collections<=0.5x"] != 8 || failed["collections>20"] != 4 || failed["collections<100"] != 4 {
		t.Errorf("%v", failed)
	}

	g = small(t, "never").must(t)
	held = conditions(t, "exposed_pause<=1x", "geomean exposed_pause==1x")
	var results []sim.Result
	for _, o := range g.Outcomes() {
		results = append(results, o.Result)
	}
	failures, means, err = g.Check(held, ByKey(results))
	if err != nil || len(failures) != 0 || len(means) != 1 || !means[0].OK {
		t.Errorf("against itself: %v, %v, %v", failures, means, err)
	}
	for want, known := range map[string]map[Key]sim.Result{"there is no baseline": nil, "has no result of": ByKey(results[1:])} {
		if _, _, err := g.Check(held, known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzTexts gives the readers the same text: none panics, and an accepted text means something and is
// read again as it is printed.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		"max_pause<=20ms", "geomean exposed_pause<=0.5x", "peak_live_bytes<1GiB", "collections==NaN", "exposed_pause<=Infx", "1.5x", "1e6x", "0.001x", "8GiB", "1025B", "50%",
		"never,cudajl", "optimum-overlap", "optimum-blokcing", "threshold:0.5,overlap=true,random", "pacer:share=0.05,,", ",",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text); err == nil && (math.IsNaN(c.Value) || math.IsInf(c.Value, 0)) {
			t.Fatalf("condition %q is a bound of %v", text, c.Value)
		}
		if l, err := ParseLimit(text); err == nil {
			if again, err := ParseLimit(l.String()); err != nil || again != l || l.Factor <= 0 == (l.Bytes <= 0) {
				t.Fatalf("limit %q is %+v, prints as %q, which reads as %+v, %v", text, l, l, again, err)
			}
		}
		all, err := ParseContenders(text)
		if err != nil && strings.HasPrefix(text, "opt") && !strings.Contains(err.Error(), "optimum-blocking") {
			t.Fatalf("%q: no optimum is named: %v", text, err)
		}
		for _, c := range all {
			if again, err := ParseContender(c.String()); err != nil || again.String() != c.String() {
				t.Fatalf("%q: %v prints as %q, which reads as %v, %v", text, c, c.String(), again, err)
			}
		}
	})
}
