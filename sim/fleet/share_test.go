package fleet

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

func neighbours(t testing.TB, names ...string) (all []Neighbour) {
	t.Helper()
	for i, tr := range bases(t, names...) {
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Neighbour{w, sim.Fixed(time.Duration(1+i) * time.Millisecond)})
	}
	return all
}

func ruleNamed(name string) Rule {
	all := Rules()
	return all[slices.IndexFunc(all, func(r Rule) bool { return r.Name == name })]
}

// A process alone on a machine is a run, however often somebody looks at it.
func TestMachineOfOne(t *testing.T) {
	for _, n := range neighbours(t, "gnn", "mlp", "solver:1") {
		budget := 2 * n.Workload.PeakReachable
		want := sim.Run(n.Workload, gc.MustParse("pacer").New(), sim.Config{Limit: budget, Cost: n.Cost, Ladder: sim.Ladder{Factor: 2}})
		m := Machine{Budget: budget, Every: 7 * time.Millisecond, Rule: ruleNamed("fixed"), Policy: gc.MustParse("pacer").New, Ladder: sim.Ladder{Factor: 2}}
		got := m.Run([]Neighbour{n}).Results[0]
		want.LimitFactor = got.LimitFactor // of the limit at the start
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Every rule gives shares that are not negative and not more than the budget.
func TestRulesKeepToTheBudget(t *testing.T) {
	view := rapid.Custom(func(t *rapid.T) View {
		v := View{Known: rapid.Int64Range(0, 1<<40).Draw(t, "known"), Rate: rapid.Float64Range(0, 1e3).Draw(t, "rate")}
		v.Live, v.LiveAfter = rapid.Int64Range(0, 1<<40).Draw(t, "live"), rapid.Int64Range(0, 1<<40).Draw(t, "after")
		v.Cycles, v.Cost = rapid.Uint64Range(0, 2).Draw(t, "cycles"), time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "cost"))
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(view, 1, 9).Draw(t, "processes")
		budget := rapid.Int64Range(0, 1<<42).Draw(t, "budget")
		for _, r := range Rules() {
			var sum int64
			for _, limit := range r.Divide(budget, all) {
				if limit < 0 {
					t.Fatalf("%s gives %d", r.Name, limit)
				}
				sum += limit
			}
			if slack := budget / 1e9; sum > budget+slack+1 { // float64 has 53 bits
				t.Fatalf("%s gives %d of %d", r.Name, sum, budget)
			}
		}
	})
}

// Among processes that differ, the square-root rule loses less than equal shares, and
// does with less memory.
func TestSquareRootSharesWell(t *testing.T) {
	all := neighbours(t, "mlp", "gp", "serve", "decoder:1")
	var budget int64
	for _, n := range all {
		budget += 3 * n.Workload.PeakReachable / 2
	}
	run := func(name string) (*Machine, Shared) {
		m := &Machine{Budget: budget, Every: 100 * time.Millisecond, Rule: ruleNamed(name), Policy: gc.MustParse("never").New, Ladder: sim.Ladder{Factor: 2}}
		return m, m.Run(all)
	}
	_, fixed := run("fixed")
	m, root := run("sqrt")
	if root.Lost >= fixed.Lost || root.Over > fixed.Over || root.MostLive > budget {
		t.Errorf("sqrt loses %v and is %d times over, fixed %v and %d; %d bytes of %d", root.Lost, root.Over, fixed.Lost, fixed.Over, root.MostLive, budget)
	}
	if n := m.Needs(all, fixed); n >= budget*9/10 {
		t.Errorf("sqrt needs %d of %d", n, budget)
	}
}
