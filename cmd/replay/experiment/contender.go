package experiment

import (
	"fmt"
	"slices"
	"strings"

	_ "github.com/eagergc/eagergc/cmd/replay/comparators" // a contender may be any rule
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

// A Contender is a policy, made anew for every run, or an optimum, which knows the whole
// workload.
type Contender struct {
	name string
	run  func(*sim.Workload, sim.Config) (sim.Result, error)
}

// Foresees reports whether a contender, by its name, knows the whole workload. No program could
// run under it.
func Foresees(name string) bool { return slices.Contains(sim.Optima(), name) }

// ParseContender reads the text form of a policy or the name of an optimum.
func ParseContender(text string) (Contender, error) {
	if Foresees(text) {
		return Contender{text, func(w *sim.Workload, cfg sim.Config) (sim.Result, error) {
			r, _, err := sim.Optimum(text, w, cfg)
			return r, err
		}}, nil
	}
	spec, err := policy.Parse(text)
	if err != nil {
		if strings.HasPrefix(text, "opt") {
			return Contender{}, fmt.Errorf("%w, or an optimum: %s", err, strings.Join(sim.Optima(), ", "))
		}
		return Contender{}, err
	}
	return Contender{spec.String(), func(w *sim.Workload, cfg sim.Config) (sim.Result, error) {
		return sim.Run(w, spec.New(), cfg), nil
	}}, nil
}

// ParseContenders reads a list of contenders, split as by [policy.SplitList].
func ParseContenders(text string) ([]Contender, error) {
	var all []Contender
	for _, item := range policy.SplitList(text) {
		c, err := ParseContender(item)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// String returns the text form that ParseContender reads.
func (c Contender) String() string { return c.name }

// Run replays w under a new policy, or under the optimum. Only an optimum fails: see
// [sim.Optimum].
func (c Contender) Run(w *sim.Workload, cfg sim.Config) (sim.Result, error) { return c.run(w, cfg) }
