package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/gc/policy"
)

// A Contender is what a comparison runs: a policy, made anew for every run, or
// an optimum, which knows the whole workload.
type Contender struct {
	name string
	run  func(*Workload, Config) (Result, error)
}

// optima are the contenders that are no policy.
var optima = []Contender{
	{"optimum-blocking", func(w *Workload, cfg Config) (Result, error) {
		s, err := OptimumBlocking(w, cfg.Limit, cfg.Cost)
		if err != nil {
			return Result{}, err
		}
		return RunSchedule(w, "optimum-blocking", s, cfg), nil
	}},
	{"optimum-overlap", func(w *Workload, cfg Config) (Result, error) {
		s, _, err := OptimumOverlap(w, cfg)
		if err != nil {
			return Result{}, err
		}
		return RunSchedule(w, "optimum-overlap", s, cfg), nil
	}},
	{"optimum-objective", func(w *Workload, cfg Config) (Result, error) {
		s, _, err := OptimumObjective(w, cfg)
		if err != nil {
			return Result{}, err
		}
		return RunSchedule(w, "optimum-objective", s, cfg), nil
	}},
}

// Optima lists the names that [ParseContender] takes beside those of policies.
func Optima() []string {
	var names []string
	for _, o := range optima {
		names = append(names, o.name)
	}
	return names
}

// Foresees reports whether a contender, by its name, knows the whole workload: no
// program could run under it.
func Foresees(name string) bool { return slices.Contains(Optima(), name) }

// ParseContender reads the text form of a policy or the name of an optimum.
func ParseContender(text string) (Contender, error) {
	if i := slices.IndexFunc(optima, func(c Contender) bool { return c.name == text }); i >= 0 {
		return optima[i], nil
	}
	spec, err := policy.Parse(text)
	if err != nil {
		if strings.HasPrefix(text, "opt") {
			return Contender{}, fmt.Errorf("%w, or an optimum: %s", err, strings.Join(Optima(), ", "))
		}
		return Contender{}, err
	}
	return Contender{spec.String(), func(w *Workload, cfg Config) (Result, error) {
		return Run(w, spec.New(), cfg), nil
	}}, nil
}

// NewContender returns a contender that runs a policy that no text names; each
// call of fresh makes one.
func NewContender(name string, fresh func() policy.Policy) Contender {
	return Contender{name, func(w *Workload, cfg Config) (Result, error) { return Run(w, fresh(), cfg), nil }}
}

// ParseContenders reads a list of contenders, cut as [policy.SplitList] says.
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

var errBaseOnly = errors.New("sim: an optimum is known in the base world alone, without a machine")

// String returns the text form that ParseContender reads.
func (c Contender) String() string { return c.name }

// Run replays w under a fresh policy, or under the optimum for it. The only
// error is [ErrNoSchedule], from an optimum whose limit is too small; the result
// then says what was to be run, and no more.
func (c Contender) Run(w *Workload, cfg Config) (Result, error) {
	if cfg.Machine != nil && slices.Contains(Optima(), c.name) {
		return Result{}, errBaseOnly
	}
	r, err := c.run(w, cfg)
	if err != nil {
		r = newBase(w, nil, cfg).res
		r.Policy = c.name
	}
	return r, err
}
