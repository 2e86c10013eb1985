package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Setting is what to replay, in the texts of the command line's flags.
type Setting struct {
	Policies []string `json:"policies"`
	Limits   []string `json:"limits"` // 1.5x or 8GiB
	Limit    int      `json:"limit"`  // the one that is shown in detail, an index in Limits
	Cycle    string   `json:"cycle"`  // 10ms
	Ladder   string   `json:"ladder"` // 2x or 20ms
	Rule     string   `json:"rule"`   // of the policy mine, which Policies may name; empty: there is none
}

func (s *Session) grid(q Setting) (*experiment.Grid, error) {
	if s.load == nil {
		return nil, errNothing
	}
	g := &experiment.Grid{Workloads: []*sim.Workload{s.load}}
	for _, text := range q.Policies {
		c, err := contender(text, q.Rule)
		if err != nil {
			return nil, err
		}
		g.Contenders = append(g.Contenders, c)
	}
	for _, text := range q.Limits {
		l, err := experiment.ParseLimit(text)
		if err != nil {
			return nil, err
		}
		g.Limits = append(g.Limits, l)
	}
	cost, err := experiment.ParseCycle(q.Cycle)
	if err != nil {
		return nil, err
	}
	g.Costs = []sim.Cost{cost}
	if g.Ladder, err = sim.ParseLadder(q.Ladder); err != nil {
		return nil, err
	}
	if q.Limit < 0 || q.Limit >= len(g.Limits) || len(g.Contenders) == 0 {
		return nil, errors.New("want at least one policy and one limit")
	}
	return g, nil
}

func contender(text, rule string) (experiment.Contender, error) {
	if text != mine || rule == "" {
		return experiment.ParseContender(text)
	}
	of, err := parseRule(rule)
	return experiment.NewContender(mine, func() policy.Policy { return &ruled{rule: of} }), err
}

// Sweep replays every policy at every limit and returns the results that there are.
// Those that the caller knows already are not run again.
func (s *Session) Sweep(q Setting, known []sim.Result) ([]sim.Result, error) {
	g, err := s.ran(q, known)
	if err != nil {
		return nil, err
	}
	return g.Finished(0), nil
}

func (s *Session) ran(q Setting, known []sim.Result) (*experiment.Grid, error) {
	g, err := s.grid(q)
	if err != nil {
		return nil, err
	}
	g.Know(known)
	if err := g.Run(context.Background(), nil); err != nil {
		return nil, err
	}
	return g, nil
}

// shown is what the page shows of the runs at one limit.
type shown struct {
	Policies  []chart.PolicyLook `json:"policies"`
	Recording chart.Recording    `json:"recording"`
	At        string             `json:"at"`
	Results   []sim.Result       `json:"results"`
}

// Run replays policies at the limit in detail, with at most slots levels of memory
// over time for each.
func (s *Session) Run(q Setting, slots int) (*shown, error) {
	q.Limits, q.Limit = q.Limits[q.Limit:q.Limit+1], 0
	g, err := s.grid(q)
	if err != nil {
		return nil, err
	}
	runs := chart.LogRuns(g, experiment.Cell{}, slots, true)
	out := &shown{}
	for _, r := range runs {
		out.Results = append(out.Results, r.Result)
	}
	g.Know(out.Results)
	if err := g.Run(context.Background(), nil); err != nil {
		return nil, err
	}
	b := chart.NewBuilder(g, 0, 0)
	out.Policies, out.At = chart.Looks(g, b.Palette), b.At(0)
	if len(runs) > 0 {
		out.Recording = b.Recording(0, runs)
	}
	return out, nil
}

// A picture is everything that the page shows beside the memory over time.
type picture struct {
	Verdict string         `json:"verdict"` // which policy loses least
	Beside  string         `json:"beside"`  // the others, with their figures
	Table   chart.Table    `json:"table"`   // the policies at the limit, the least lost first
	Figures []chart.Figure `json:"figures"`
	Charts  map[string]any `json:"charts"` // the lines of each figure, by its kind
	Runs    chart.Table    `json:"runs"`
	Reasons chart.Table    `json:"reasons"`
}

// View replays the cells whose results are not known, and returns the charts, the tables and the
// verdict. Price is what a GiB that is held for a second is worth, in seconds of
// pause; 0 leaves memory out.
func (s *Session) View(q Setting, known []sim.Result, price float64) (*picture, error) {
	g, err := s.ran(q, known)
	if err != nil {
		return nil, err
	}
	b := chart.NewBuilder(g, 0, q.Limit)
	runs := chart.LogRuns(g, b.Cell(0), 1, true)
	p := &picture{Figures: b.Figures(0, runs), Charts: make(map[string]any), Runs: chart.RunTable(runs), Reasons: chart.Reasons(runs)}
	for _, f := range p.Figures {
		p.Charts[f.Kind] = f.Data
	}
	p.rank(runs, price, b.At(0))
	return p, nil
}

// lost is the share of the recorded time that a run loses, where memory has a price.
func lost(r *sim.Result, price float64) float64 {
	held := price * r.MeanLive / (1 << 30) * r.Elapsed.Seconds()
	return (r.Objective().Seconds() + held) / max(1e-9, r.Span.Seconds())
}

// rank orders runs by what they lose, and says which loses least: of those under
// which no allocation fails, and that could be run without knowing the future.
func (p *picture) rank(runs []chart.Run, price float64, at string) {
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b chart.Run) int {
		x, y := &a.Result, &b.Result
		return cmp.Or(cmp.Compare(min(x.FailedAllocs, 1), min(y.FailedAllocs, 1)), cmp.Compare(lost(x, price), lost(y, price)))
	})
	p.Table = chart.Table{{"policy", "lost", "exposed pause", "longest", "cycles", "forced", "failed", "mean live"}}
	var best *sim.Result
	var others []string
	for i := range order {
		r := &order[i].Result
		lost := chart.Percent(lost(r, price))
		p.Table = append(p.Table, []string{r.Policy, lost, chart.Duration(r.ExposedPause), chart.Duration(r.MaxPause), pressure.Count(r.Collections),
			pressure.Count(r.RefusalCollections), pressure.Count(r.FailedAllocs), pressure.Bytes(r.MeanLive).String()})
		switch {
		case experiment.Foresees(r.Policy) || r.FailedAllocs > 0:
			if r.Policy == "optimum-overlap" {
				others = append(others, "the optimum, which knows the future, "+lost)
			}
		case best == nil:
			best = r
		case len(others) < 2 || r.Policy == "never":
			others = append(others, r.Policy+" "+lost)
		}
	}
	if best == nil {
		p.Verdict = "Allocations fail under every policy that ran."
	} else {
		p.Verdict = fmt.Sprintf("%s loses least: %s of the time", best.Policy, chart.Percent(lost(best, price)))
		if price > 0 {
			p.Verdict += ", memory at its price"
		}
		p.Verdict += "."
	}
	p.Beside = strings.ToUpper(at[:1]) + at[1:]
	if len(others) > 0 {
		p.Beside += "; " + strings.Join(others, ", ")
	}
	p.Beside += "."
}

// An Answer is advice, and what to write to follow it.
type answer struct {
	*experiment.Advice
	Go    string       `json:"go"`
	Text  string       `json:"text"`
	Cards []chart.Card `json:"cards"`
}

// Advise finds the policy that does with the smallest limit, as the command line does.
func (s *Session) Advise(q Setting, lost float64, variants int) (*answer, error) {
	q.Limits, q.Limit = []string{"1x"}, 0
	g, err := s.grid(q)
	if err != nil {
		return nil, err
	}
	question := experiment.Question{Workload: s.load, Policies: g.Contenders, World: g.World(0), Lost: lost, Variants: variants}
	a, err := question.Advise(context.Background())
	b := chart.Builder{Grid: g, Palette: chart.NewPalette(chart.Names(g))}
	switch {
	case errors.Is(err, experiment.ErrNoAdvice):
		return &answer{Cards: b.AdviceCards(nil)}, nil
	case err != nil:
		return nil, err
	}
	return &answer{Advice: a, Go: chart.Program(a), Text: chart.AdviceText(a), Cards: b.AdviceCards(a)}, nil
}

// Check returns the error of a rule, which begins with its column.
func Check(rule string) error {
	_, err := parseRule(rule)
	return err
}
