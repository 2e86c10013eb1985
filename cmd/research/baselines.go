package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/interp"
	"gonum.org/v1/gonum/stat"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A cost is the cost of a run in ns, and the explicit part of the collector in it.
type cost struct{ Total, Collector float64 }

// wall returns the elapsed time of a run. The collector's part is the exposed pauses.
func wall(o *experiment.Outcome) cost { return cost{float64(o.Elapsed), float64(o.ExposedPause)} }

// processor returns the processor time of a run. The collector's part is the time of its cycles.
// The program's own time includes its slowdown beside cycles.
func processor(o *experiment.Outcome) cost {
	return cost{float64(o.Host + o.Slowed + o.GCBusy), float64(o.GCBusy)}
}

// distilled returns the least cost of any run without its collector's explicit part. It is the
// baseline of the lower-bound overhead (Cai, Blackburn, Bond and Maas, ISPASS 2022).
func distilled(runs []cost) float64 {
	least := math.Inf(1)
	for _, c := range runs {
		least = min(least, c.Total-c.Collector)
	}
	return least
}

var (
	allFactors    = []float64{1, 1.25, 1.5, 2, 3, 4, 6}
	publicFactors = []float64{1.25, 1.5, 2, 4} // those of replay compare
	pageCosts     = []sim.Cost{sim.Fixed(time.Millisecond), sim.Fixed(10 * time.Millisecond), {Base: time.Millisecond, Slowdown: 0.25}}
)

// byHand returns the outcome of a program that frees every object at its death and has no
// collector.
func byHand(o *experiment.Outcome) *experiment.Outcome {
	return &experiment.Outcome{Result: sim.Result{Elapsed: o.Span, Span: o.Span}, Host: o.Host}
}

// A judgement is the outcomes of every policy on every recording, and the report on them.
type judgement struct {
	markdown
	*experiment.Grid
	choices       []choice
	limited, free []line // parameters swept: with a limit of 2x, and without a limit
}

// A choice is a way to judge policies. It scores each policy; lower is better, and NaN is unknown.
type choice struct {
	Name   string
	Scores []float64
}

// comparators returns every deterministic policy with its default parameters, and the settings that
// programs use today.
func comparators() []experiment.Contender {
	var names []string
	for _, p := range policy.List() {
		if p.Name != "random" {
			names = append(names, p.Name)
		}
	}
	return contenders(append(names, "cudajl:overlap=true", "growth:0.25", "growth:0.5", "periodic:10s")...)
}

// baselines reports the cost of each policy, and how its rank depends on the choice of baseline,
// limit and parameters.
func baselines(ctx context.Context, programs []*trace.Trace, live []string) (folder, error) {
	loads, err := compile(programs)
	if err != nil {
		return nil, err
	}
	p := &judgement{Grid: &experiment.Grid{Workloads: loads, Contenders: comparators(), Limits: factorLimits(allFactors), Costs: pageCosts, Ladder: sim.Ladder{Factor: 2}}}
	if err := p.Run(ctx, nil); err != nil {
		return nil, err
	}
	fmt.Fprintf(p, "# Baselines, limits and knobs\n\n%d recordings, %d policies. Simulated; a cycle takes 1 ms where nothing else is said. Means are geometric.\n", len(loads), len(p.Contenders))
	p.overhead("elapsed", wall)
	p.overhead("processor", processor)
	p.distilled()
	p.judge()
	if err := p.inPool(ctx, programs); err != nil {
		return nil, err
	}
	if p.limited, err = p.sweep(ctx, experiment.Limit{Factor: 2}); err != nil {
		return nil, err
	}
	if p.free, err = p.sweep(ctx, experiment.Limit{}); err != nil {
		return nil, err
	}
	p.knobs("limit 2x", p.limited)
	p.knobs("without a limit", p.free)
	p.ranks()
	for _, file := range live {
		if err := p.live(file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return p.files()
}

// in returns a filter for the cells of one cost and of some limits.
func (p *judgement) in(cost int, factors []float64) func(experiment.Cell) bool {
	return func(c experiment.Cell) bool {
		return c.Cost == cost && slices.Contains(factors, p.Limits[c.Limit].Factor)
	}
}

// overhead reports the lower-bound overhead by limit. The baselines are all policies and freeing by
// hand.
func (p *judgement) overhead(name string, of func(*experiment.Outcome) cost) {
	fmt.Fprintf(p, "\n## Lower-bound overhead in %s time\n\nTotal time over the least that any run of the recording at that limit takes without what is explicitly its collector's. By limit, as a factor of the least one. Processor time is not known where several threads wait at once, for longer than the recording (`infer`).\n\n", name)
	table(&p.markdown, "policy", p.Limits, codes(p.Contenders), func(k, limit int) any {
		return figure(experiment.GeometricMean(p.ratios(k, of, anyone, p.in(0, allFactors[limit:limit+1]))))
	})
	p.row("by hand", strings.TrimSuffix(strings.Repeat("1 | ", len(allFactors)), " | "))
}

func anyone(string) bool { return true }

// ratios returns the total cost of a contender in each cell, divided by the distilled cost over the
// contenders that the filter with accepts.
func (p *judgement) ratios(contender int, of func(*experiment.Outcome) cost, with func(string) bool, keep func(experiment.Cell) bool) (all []float64) {
	for i, o := range p.Outcomes() {
		if c := p.Cell(i); c.Contender == contender && keep(c) && of(byHand(o)).Total > 0 {
			all = append(all, of(o).Total/p.bound(c, of, with))
		}
	}
	return all
}

// bound returns the distilled cost over the runs of a cell's recording, limit and cycle.
func (p *judgement) bound(c experiment.Cell, of func(*experiment.Outcome) cost, with func(string) bool) float64 {
	var runs []cost
	for k, who := range p.Contenders {
		if c.Contender = k; with(who.String()) {
			runs = append(runs, of(p.At(c)))
		}
	}
	if with("by hand") {
		runs = append(runs, of(byHand(p.At(c))))
	}
	return distilled(runs)
}

// overlapped reports whether a policy runs all its cycles beside the program, refusals apart. With
// such policies alone, every run of a recording has cycles beside it.
func overlapped(name string) bool {
	return slices.Contains([]string{"pacer", "sqrt", "growth:1", "growth:0.25", "growth:0.5", "cpucontrol", "host"}, name)
}

// distilled reports how the distilled cost depends on the set of policies.
func (p *judgement) distilled() {
	p.WriteString("\n## What the baseline depends on\n\nThe distilled cost over that of freeing by hand; mean, and the largest. Beside a cycle the program takes 1.25 times as long.\n\n")
	p.head("baseline over", "elapsed time", "largest", "processor time", "largest")
	for _, b := range []struct {
		name string
		with func(string) bool
	}{
		{"all policies, and by hand", anyone},
		{"all policies", func(s string) bool { return s != "by hand" }},
		{"all policies but `never`", func(s string) bool { return s != "by hand" && s != "never" }},
		{"only what overlaps: `pacer`, `sqrt`, `growth`, `cpucontrol`, `host`", overlapped},
	} {
		row := []any{b.name}
		for _, of := range []func(*experiment.Outcome) cost{wall, processor} {
			var x []float64
			for i, o := range p.Outcomes() {
				if c := p.Cell(i); c.Contender == 0 && c.Cost == 2 && of(byHand(o)).Total > 0 {
					x = append(x, p.bound(c, of, b.with)/of(byHand(o)).Total)
				}
			}
			row = append(row, fmt.Sprintf("%.4f", experiment.GeometricMean(x)), fmt.Sprintf("%.4f", floats.Max(x)))
		}
		p.row(row...)
	}
}

// slower returns 1 + the time lost, as a share of the recorded time.
func slower(o *experiment.Outcome) float64 {
	return 1 + float64(o.Objective())/float64(max(1, o.Span))
}

func (p *judgement) score(name string, of func(contender int) float64) {
	c := choice{Name: name}
	for k := range p.Contenders {
		c.Scores = append(c.Scores, of(k))
	}
	p.choices = append(p.choices, c)
}

// judge scores the policies by each choice that the grid can answer.
func (p *judgement) judge() {
	public := append(samples.Names(), samples.Programs()...)
	seen := func(w *sim.Workload) bool { return slices.Contains(public, w.Name) }
	unseen := func(w *sim.Workload) bool { return !seen(w) }
	every := func(*sim.Workload) bool { return true }
	lost := func(at int, factors []float64, of func(*sim.Workload) bool) func(int) float64 {
		return func(k int) float64 {
			return experiment.Mean(p.Select(k, func(c experiment.Cell) bool { return p.in(at, factors)(c) && of(p.Workloads[c.Workload]) }), slower)
		}
	}
	priced := func(price float64) func(int) float64 {
		return func(k int) float64 {
			return experiment.Mean(p.Select(k, p.in(0, allFactors)), func(o *experiment.Outcome) float64 {
				return 1 + (float64(o.Delay())+price*float64(o.GCBusy))/float64(max(1, o.Span))
			})
		}
	}
	overhead := func(at int, of func(*experiment.Outcome) cost, with func(string) bool) func(int) float64 {
		return func(k int) float64 { return experiment.GeometricMean(p.ratios(k, of, with, p.in(at, allFactors))) }
	}
	p.score("time lost, as `compare`", lost(0, publicFactors, seen))
	p.score("the others alone", lost(0, publicFactors, unseen))
	p.score("all recordings", lost(0, publicFactors, every))
	p.score("1 to 6x", lost(0, allFactors, every))
	p.score("price 0", priced(0))
	p.score("price 0.25", priced(0.25))
	p.score("price 1", priced(1))
	p.score("10 ms", lost(1, allFactors, every))
	p.score("LBO, elapsed", overhead(0, wall, anyone))
	p.score("LBO, processor", overhead(0, processor, anyone))
	p.score("slowed, LBO, elapsed", overhead(2, wall, anyone))
	p.score("of what overlaps", overhead(2, wall, overlapped))
	p.score("arithmetic", func(k int) float64 { return stat.Mean(p.ratios(k, wall, anyone, p.in(2, allFactors)), nil) })
}

// inPool scores the policies in the pool of each recording's memory. Its limits are factors of the
// least limit that the recording needs there.
func (p *judgement) inPool(ctx context.Context, programs []*trace.Trace) error {
	ratios := make([][]float64, len(p.Contenders))
	for i, w := range p.Workloads {
		kind := poolOf(programs[i], w)
		if kind == addressonly.Exact {
			continue
		}
		least := leastLimit(w, kind)
		g := &experiment.Grid{Workloads: p.Workloads[i : i+1], Limits: factorLimits([]float64{least, 1.5 * least, 4 * least}), Contenders: p.Contenders}
		g.Memory = func(limit int64) sim.Memory { return addressonly.New(kind, limit) }
		g.SetMachine(sim.MachineOf(pageCosts[0], p.Ladder), 1)
		if err := g.Run(ctx, nil); err != nil {
			return err
		}
		for k := range ratios {
			for _, o := range g.Select(k, nil) {
				ratios[k] = append(ratios[k], slower(o))
			}
		}
	}
	p.score("in a pool", func(k int) float64 { return experiment.GeometricMean(ratios[k]) })
	return nil
}

// A line is the memory and the time lost of one policy, for each setting of its parameter. The
// figures are means over all recordings.
type line struct {
	Name       string
	Knobs      []string
	Live, Lost []float64 // live / reachable bytes in the mean over time; time lost
}

// families are the policies whose parameter is swept. The settings are in the order of the memory
// that they hold. A policy without a parameter is a single point.
var families = [][]string{
	{"growth:0.05", "growth:0.1", "growth:0.25", "growth:0.5", "growth:1", "growth:1.5", "growth:2", "growth:4"},
	{"sqrt:1e-06", "sqrt:1e-07", "sqrt:1e-08", "sqrt:1e-09", "sqrt", "sqrt:1e-10", "sqrt:1e-11"},
	{"host:1e-06", "host:1e-07", "host", "host:1e-08", "host:1e-09", "host:1e-10"},
	{"cpucontrol:40%", "cpucontrol:20%", "cpucontrol:10%", "cpucontrol", "cpucontrol:2%", "cpucontrol:1%", "cpucontrol:0.5%"},
	{"periodic:1ms", "periodic:3ms", "periodic:10ms", "periodic:30ms", "periodic:100ms", "periodic:300ms", "periodic:1s", "periodic:10s"},
	{"dotnet:1MiB", "dotnet", "dotnet:16MiB", "dotnet:64MiB", "dotnet:256MiB", "dotnet:1GiB"},
	{"v8step:1MiB", "v8step:4MiB", "v8step:16MiB", "v8step", "v8step:256MiB", "v8step:1GiB"},
	{"threshold:0.5", "threshold:0.6", "threshold:0.7", "threshold:0.8", "threshold:0.9", "threshold:0.95"},
	{"pacer:share=0.2", "pacer:share=0.1", "pacer", "pacer:share=0.02", "pacer:share=0.01"},
	{"cudajl"}, {"opencl"}, {"gomemlimit"}, {"never"}, {"optimum-overlap"},
}

// sweep runs every family under one limit.
func (p *judgement) sweep(ctx context.Context, limit experiment.Limit) ([]line, error) {
	var lines []line
	for _, family := range families {
		who := contenders(family...)
		g := &experiment.Grid{Workloads: p.Workloads, Contenders: who, Limits: []experiment.Limit{limit}, Costs: pageCosts[:1], Ladder: p.Ladder}
		if err := g.Run(ctx, nil); err != nil {
			return nil, err
		}
		l := line{Name: strings.SplitN(family[0], ":", 2)[0]}
		for k := range who {
			live := experiment.Mean(g.Select(k, nil), func(o *experiment.Outcome) float64 { return o.MeanLive / (o.MeanLive - o.MeanGarbage) })
			if !math.IsNaN(live) { // NaN: the optimum has no schedule
				l.Knobs, l.Live, l.Lost = append(l.Knobs, family[k]), append(l.Live, live), append(l.Lost, experiment.Mean(g.Select(k, nil), slower)-1)
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// at returns the time lost where the policy holds x, by interpolation between two points of its
// front. It returns NaN outside the front.
func (l *line) at(x float64) float64 {
	order := make([]int, len(l.Live))
	floats.ArgsortStable(slices.Clone(l.Live), order)
	var xs, ys []float64
	for _, i := range order {
		if m := math.Log(l.Live[i]); len(xs) == 0 || m > xs[len(xs)-1] && l.Lost[i] < ys[len(ys)-1] {
			xs, ys = append(xs, m), append(ys, l.Lost[i])
		}
	}
	var f interp.PiecewiseLinear
	if x = math.Log(x); len(xs) < 2 || x < xs[0] || x > xs[len(xs)-1] || f.Fit(xs, ys) != nil {
		return math.NaN()
	}
	return f.Predict(x)
}

// knobs reports the memory and the time lost of each policy, with its default and with its best
// setting. It also reports the time lost at the same memory as the others.
func (p *judgement) knobs(title string, lines []line) {
	levels := []float64{1.75, 2, 2.5, 3, 4}
	fmt.Fprintf(p, "\n## Parameters swept, %s\n\nLive / reachable bytes in the mean over time, and time lost: as the policy is by default, and set so that it loses least. Then the time lost on the line between its settings, where it holds so much; empty where no setting does.\n\n", title)
	head := []any{"policy", "holds", "loses", "least with", "holds", "loses"}
	for _, x := range levels {
		head = append(head, fmt.Sprintf("at %gx", x))
	}
	p.head(head...)
	for _, l := range lines {
		given, best := max(0, slices.Index(l.Knobs, contenders(l.Name)[0].String())), floats.MinIdx(l.Lost)
		row := []any{l.Name, figure(l.Live[given]), lostText(l.Lost[given]), "`" + l.Knobs[best] + "`", figure(l.Live[best]), lostText(l.Lost[best])}
		for _, x := range levels {
			row = append(row, lostText(l.at(x)))
		}
		p.row(row...)
	}
}

// ranks reports the rank of each policy under each choice, and how well the ranks agree with those
// of the first choice.
func (p *judgement) ranks() {
	p.WriteString("\n## Ranks under each choice\n\nThe place, and in brackets the mean cost: recorded time and what is lost, over the recorded time; or the lower-bound overhead (LBO). `compare`: its recordings, limits of 1.25x, 1.5x, 2x and 4x; the others: GoMLX's and the C programs, which no rule was tuned on, at the same limits; all that is to the right has all recordings, and from the fourth on limits of 1x to 6x. Price: that of a second of the collector's time, 0.05 where nothing is said. Slowed: beside a cycle the program takes 1.25 times as long; of what overlaps: the same, with the baseline of those policies alone; arithmetic: the same, another mean. In a pool: with fragments, at 1, 1.5 and 4 times the least limit there, without the C programs. The last row is Spearman's correlation with the first choice. First in: of how many recordings, by the time lost from 1x to 6x.\n\n")
	head := []any{"policy", "first in"}
	last := []any{"agrees with the first", ""}
	places := make([][]float64, len(p.choices))
	for i, c := range p.choices {
		head = append(head, c.Name)
		for _, x := range c.Scores {
			places[i] = append(places[i], float64(1+floats.Count(func(y float64) bool { return y < x }, c.Scores)))
		}
		agrees, err := stats.Spearman(p.choices[0].Scores, c.Scores)
		if err != nil {
			panic(err) // cannot happen: both have a score for each policy
		}
		last = append(last, fmt.Sprintf("%.2f", agrees))
	}
	p.head(head...)
	first := make([]int, len(p.Contenders))
	for w := range p.Workloads {
		var lost []float64
		for k := range p.Contenders {
			lost = append(lost, experiment.Mean(p.Select(k, func(c experiment.Cell) bool { return p.in(0, allFactors)(c) && c.Workload == w }), slower))
		}
		first[floats.MinIdx(lost)]++
	}
	order := make([]int, len(p.Contenders))
	floats.ArgsortStable(slices.Clone(p.choices[0].Scores), order)
	for _, k := range order {
		row := []any{code(p.Contenders[k]), first[k]}
		for i, c := range p.choices {
			row = append(row, fmt.Sprintf("%.0f (%s)", places[i][k], figure(c.Scores[k])))
		}
		p.row(row...)
	}
	p.row(last...)
}
