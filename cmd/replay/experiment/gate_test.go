package experiment

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

func TestGateNamesWhatFails(t *testing.T) {
	g := small(t, "always,never")
	g.Limits = g.Limits[1:]
	g.must(t)
	held := conditions(t, "failed_allocs==0", "collections<=0.5x", "geomean collections<=1000x", "geomean collections<=1x")
	failures, means, err := g.Check(held, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(failures) != 8 { // always collects, never does not: every cell fails one condition
		t.Errorf("%d failures", len(failures))
	}
	for _, f := range failures {
		if f.Text != "collections<=0.5x" || f.Value == 0 || f.Baseline != 0 || !strings.Contains(f.Name, "policy=always") {
			t.Errorf("%+v", f)
		}
	}
	if len(means) != 2 || !means[0].OK || means[1].OK || means[0].Ratio != means[1].Ratio {
		t.Errorf("%+v", means)
	}
}

func TestGateAgainstResults(t *testing.T) {
	g := small(t, "never").must(t)
	held := conditions(t, "exposed_pause<=1x", "geomean exposed_pause==1x")
	if _, _, err := g.Check(held, nil); err == nil || !strings.Contains(err.Error(), "no baseline") {
		t.Errorf("without a baseline: %v", err)
	}
	var results []sim.Result
	for _, o := range g.Outcomes() {
		results = append(results, o.Result)
	}
	failures, means, err := g.Check(held, ByKey(results))
	if err != nil || len(failures) != 0 || len(means) != 1 || !means[0].OK {
		t.Errorf("against itself: %v, %v, %v", failures, means, err)
	}
	if _, _, err := g.Check(held, ByKey(results[1:])); err == nil || !strings.Contains(err.Error(), "has no result of") {
		t.Errorf("against results that lack one: %v", err)
	}
}

func TestConditionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"max_pause":                "want METRIC<=VALUE",
		"speed<=1":                 `no metric "speed"`,
		"max_pause<=20":            "missing unit",
		"peak_live<=10%":           `"10%": want a size`,
		"geomean exposed_pause<=1": "missing unit",
		"geomean collections<=1":   "give the bound as 0.5x",
		"collections==NaN":         "finite",
	} {
		if c, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; want %q", text, c, err, want)
		}
	}
}

func TestLimitRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{Factor: rapid.Float64Range(1e-3, 1e6).Draw(t, "factor")}
		if rapid.Bool().Draw(t, "bytes") {
			l = Limit{Bytes: rapid.Int64Range(1, 1<<60).Draw(t, "bytes")}
		}
		if got, err := ParseLimit(l.String()); err != nil || got != l {
			t.Errorf("%+v is %q, which is %+v, %v", l, l, got, err)
		}
	})
}

// FuzzTexts gives the readers the same text: none panics, and an accepted text
// means something.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		"max_pause<=20ms", "geomean exposed_pause<=0.5x", "peak_live_bytes<1GiB", "collections==NaN", "exposed_pause<=Infx", "1.5x", "8GiB", "50%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text); err == nil && (math.IsNaN(c.Value) || math.IsInf(c.Value, 0)) {
			t.Fatalf("condition %q is a bound of %v", text, c.Value)
		}
		if l, err := ParseLimit(text); err == nil {
			if l.Factor <= 0 == (l.Bytes <= 0) {
				t.Fatalf("limit %q is %+v", text, l)
			}
			if again, err := ParseLimit(l.String()); err != nil || again != l {
				t.Fatalf("limit %q prints as %q, which reads as %+v, %v", text, l, again, err)
			}
		}
	})
}
