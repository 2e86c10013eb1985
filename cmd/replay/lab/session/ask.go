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
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Setting says what to replay, in the texts of the command line's flags.
type Setting struct {
	Policies []string `json:"policies"`
	Limits   []string `json:"limits"` // 1.5x or 8GiB
	Limit    int      `json:"limit"`  // the one that is shown in detail, an index in Limits
	Cycle    string   `json:"cycle"`  // 10ms
	Ladder   string   `json:"ladder"` // 2x or 20ms
}

func (s *Session) grid(q Setting) (*experiment.Grid, error) {
	if s.load == nil {
		return nil, errNothing
	}
	g := &experiment.Grid{Workloads: []*sim.Workload{s.load}}
	for _, text := range q.Policies {
		c, err := experiment.ParseContender(text)
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

// Sweep replays every policy at every limit and returns the results. It does not run the known
// ones again. It calls progress, if that is not nil, with the share that is done.
func (s *Session) Sweep(q Setting, known []sim.Result, progress func(share float64)) ([]sim.Result, error) {
	g, err := s.ran(q, known, progress)
	if err != nil {
		return nil, err
	}
	return g.Finished(0), nil
}

func (s *Session) ran(q Setting, known []sim.Result, progress func(share float64)) (*experiment.Grid, error) {
	g, err := s.grid(q)
	if err != nil {
		return nil, err
	}
	g.Know(known)
	return g, g.Run(context.Background(), progress)
}

// A shown has the runs at one limit in detail.
type shown struct {
	Policies  []chart.PolicyLook `json:"policies"`
	Recording chart.Recording    `json:"recording"`
	At        string             `json:"at"`
	Results   []sim.Result       `json:"results"`
}

// Run replays policies at the limit in detail, with at most slots levels of memory over time for
// each.
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

// A picture has the parts of the page beside the memory over time.
type picture struct {
	Verdict string         `json:"verdict"` // which policy loses least
	Beside  string         `json:"beside"`  // the others, with their figures
	Table   chart.Table    `json:"table"`   // the policies at the limit, the least lost first
	Figures []chart.Figure `json:"figures"`
	Charts  map[string]any `json:"charts"` // the lines of each figure, by its kind
	Runs    chart.Table    `json:"runs"`
	Reasons chart.Table    `json:"reasons"`
}

// View replays the cells without known results, and returns the charts, the tables and the
// verdict. Price is the value of a GiB held for a second, in seconds of pause; 0 ignores memory.
func (s *Session) View(q Setting, known []sim.Result, price float64) (*picture, error) {
	g, err := s.ran(q, known, nil)
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

// lost returns the share of the recorded time that a run loses, with the price of memory.
func lost(r *sim.Result, price float64) float64 {
	held := price * r.MeanLive / (1 << 30) * r.Elapsed.Seconds()
	return (r.Objective().Seconds() + held) / max(1e-9, r.Span.Seconds())
}

// rank orders runs by their loss. The verdict names the policy that loses least without failed
// allocations.
func (p *picture) rank(runs []chart.Run, price float64, at string) {
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b chart.Run) int {
		x, y := &a.Result, &b.Result
		return cmp.Or(cmp.Compare(min(x.FailedAllocs, 1), min(y.FailedAllocs, 1)), cmp.Compare(lost(x, price), lost(y, price)))
	})
	p.Table = chart.Table{{"policy", "lost", "exposed pause", "longest", "cycles", "forced", "failed", "mean live"}}
	var best *sim.Result
	var others []string
	failed := false
	for i := range order {
		r := &order[i].Result
		lost := chart.Percent(lost(r, price))
		p.Table = append(p.Table, []string{r.Policy, lost, chart.Duration(r.ExposedPause), chart.Duration(r.MaxPause), pressure.Count(r.Collections),
			pressure.Count(r.RefusalCollections), pressure.Count(r.FailedAllocs), pressure.Bytes(r.MeanLive).String()})
		switch {
		case experiment.Foresees(r.Policy):
			if r.Policy == "optimum-overlap" {
				others = append(others, "the optimum, which knows the future, "+lost)
			}
		case r.FailedAllocs > 0:
			failed = true
		case best == nil:
			best = r
		case len(others) < 2 || r.Policy == "never":
			others = append(others, r.Policy+" "+lost)
		}
	}
	switch {
	case best == nil && failed:
		p.Verdict = "Allocations fail under every policy that ran."
	case best == nil:
		p.Verdict = "No policy ran, only an optimum."
	default:
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

// An answer is advice with the Go line that follows it.
type answer struct {
	*experiment.Advice
	Go    string       `json:"go"`
	Text  string       `json:"text"`
	Cards []chart.Card `json:"cards"`
}

// Advise finds the policy that needs the smallest limit, as the command line does on a machine with
// so many bytes of memory. It calls progress, if that is not nil, with the share that is done.
func (s *Session) Advise(q Setting, lost float64, variants int, memory int64, progress func(share float64)) (*answer, error) {
	q.Limits, q.Limit = []string{"1x"}, 0
	g, err := s.grid(q)
	if err != nil {
		return nil, err
	}
	question := experiment.Question{Workload: s.load, Policies: g.Contenders, World: g.World(0), Lost: lost, Variants: variants, Most: experiment.Known(0, memory, s.had), Progress: progress}
	a, err := question.Advise(context.Background())
	b := chart.Builder{Grid: g, Palette: chart.NewPalette(chart.Names(g))}
	switch {
	case errors.Is(err, experiment.ErrNoAdvice):
		return &answer{Cards: b.AdviceCards(nil, question.Most)}, nil
	case err != nil:
		return nil, err
	}
	return &answer{Advice: a, Go: chart.Program(a), Text: chart.AdviceText(a), Cards: b.AdviceCards(a, question.Most)}, nil
}
