package view

import (
	"fmt"
	"github.com/eagergc/eagergc/pressure"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A LineChart is a chart of one line for each policy.
type LineChart struct {
	Label string      `json:"label"` // what a reader who does not see it is told
	X     Axis        `json:"x"`
	Y     Axis        `json:"y"`
	Lines []Line      `json:"lines"`
	Front [][]float64 `json:"front,omitempty"` // x and y of a line through the best
	Step  bool        `json:"step,omitempty"`
	Dots  bool        `json:"dots,omitempty"`
}

// An Axis is one of the two of a chart.
type Axis struct {
	Label string    `json:"label"`
	Unit  string    `json:"unit"`            // s, %, x, nines (of a percentile) or none
	Log   bool      `json:"log,omitempty"`   // factors are distances
	Zero  float64   `json:"zero,omitempty"`  // the same, with a place for 0: linear below this
	Range []float64 `json:"range,omitempty"` // least and most
	Ticks []float64 `json:"ticks,omitempty"`
}

// A Line is that of one policy.
type Line struct {
	Policy int        `json:"policy"`
	X      []float64  `json:"x"`
	Y      []*float64 `json:"y"`    // null: nothing there
	Rest   string     `json:"rest"` // what sums it up
}

func (l *Line) add(x, y float64) {
	y = round(y)
	l.X, l.Y = append(l.X, round(x)), append(l.Y, &y)
}

// Own returns the outcomes of one workload.
func (b *Builder) Own(workload int) (all []*experiment.Outcome) {
	for p := range b.Grid.Contenders {
		all = append(all, b.Grid.Select(p, func(c experiment.Cell) bool { return c.Workload == workload && c.Cost == b.Cost })...)
	}
	return all
}

func (b *Builder) AtLimit(workload int) (all []sim.Result) {
	at := b.Cell(workload)
	for p := range b.Grid.Contenders {
		at.Contender = p
		if o := b.Grid.At(at); o.Err == nil {
			all = append(all, o.Result)
		}
	}
	return all
}

func (b *Builder) policy(name string) int { return slices.Index(Names(b.Grid), name) }

func (b *Builder) pauses(runs []Run) Figure {
	c := LineChart{
		Label: "Exposed pauses by percentile, a line for each policy.", Step: true,
		X: Axis{Label: "percentile of the pauses", Unit: "nines", Ticks: []float64{0, math.Log10(2), math.Log10(4)}},
		Y: Axis{Label: "exposed pause", Unit: "s", Log: true},
	}
	percents := []float64{50, 90, 99, 99.9, 99.99}
	t := Table{{"policy", "pauses", "p50", "p90", "p99", "p99.9", "p99.99", "longest"}}
	right := 2.0
	for _, r := range runs {
		l := Line{Policy: b.policy(r.Result.Policy), Rest: "no pause"}
		for _, q := range Quantiles(r.Log) {
			l.add(q.Nines, q.Pause.Seconds())
			right = max(right, q.Nines)
		}
		row := []string{r.Result.Policy, pressure.Count(len(r.Log.Pauses))}
		lengths := r.Log.Lengths()
		for _, p := range percents {
			cell := "-" // too few to tell
			if float64(len(lengths))*(1-p/100) >= 1-1e-9 {
				cell = pressure.Duration(trace.Percentile(lengths, p))
			}
			row = append(row, cell)
		}
		t = append(t, append(row, pressure.Duration(r.Result.MaxPause)))
		if n := len(lengths); n > 0 {
			l.Rest = fmt.Sprintf("%s, longest %s", plural(n, "pause"), pressure.Duration(lengths[n-1]))
			c.Lines = append(c.Lines, l)
		} else {
			c.Lines = append(c.Lines, Line{Policy: l.Policy, X: []float64{0}, Y: []*float64{nil}, Rest: l.Rest})
		}
	}
	for k := 1.0; k <= right; k++ {
		c.X.Ticks = append(c.X.Ticks, k)
	}
	c.X.Range = []float64{0, round(right)}
	return Figure{Kind: "pauses", Name: "Pauses", Table: t, Data: []LineChart{c},
		Caption: "How long the program was held: read up from 99 % to see the pause that 1 in 100 is longer than. A line ends at the longest pause; n pauses tell nothing beyond 1 - 1/n."}
}

func (b *Builder) mmu(runs []Run) Figure {
	c := LineChart{
		Label: "Minimum mutator utilization against the window, a line for each policy.",
		X:     Axis{Label: "window", Unit: "s", Log: true},
		Y:     Axis{Label: "share of the window that the program ran", Unit: "%", Range: []float64{0, 100}},
	}
	windows := MMUWindows(runs)
	t := Table{{"policy"}}
	for _, w := range experiment.Windows {
		t[0] = append(t[0], w.String())
	}
	for _, r := range runs {
		l := Line{Policy: b.policy(r.Result.Policy)}
		for i, u := range r.Log.MMU(r.Result.Elapsed, windows) {
			l.add(windows[i].Seconds(), 100*u)
		}
		row := []string{r.Result.Policy}
		for _, u := range r.Log.MMU(r.Result.Elapsed, experiment.Windows) {
			row = append(row, pressure.Percent(u))
		}
		l.Rest = row[2] + " of any " + experiment.Windows[1].String()
		t = append(t, row)
		c.Lines = append(c.Lines, l)
	}
	return Figure{Kind: "mmu", Name: "Utilization (MMU)", Table: t, Data: []LineChart{c},
		Caption: "Minimum mutator utilization: of any window of this length, the program ran at least this share."}
}

func (b *Builder) lbo(workload int) Figure {
	all := Overheads(b.Grid, b.Cost, []int{workload})
	f := Figure{Kind: "lbo", Name: "Overhead (LBO)", Table: Table{{"policy", "limit", "elapsed time", "processor time"}},
		Caption: "Lower-bound overhead: total time over the least that any run could take, 1x if the collector cost nothing. On the left elapsed time, on the right processor time."}
	for i, name := range []string{"elapsed", "processor"} {
		c := LineChart{Label: "Lower-bound overhead of " + name + " time against the limit.", Dots: true,
			X: factorAxis(b.Grid, workload), Y: Axis{Label: "overhead, " + name + " time", Unit: "x"}}
		for p, who := range Names(b.Grid) {
			l := Line{Policy: p}
			for _, o := range all {
				if o.Policy == who {
					v := [2]float64{o.Wall, o.Processor}[i]
					l.add(o.Factor, v)
					if l.Rest == "" {
						l.Rest = pressure.Number(v) + "x at " + pressure.Number(o.Factor) + "x"
					}
				}
			}
			if len(l.X) > 0 {
				c.Lines = append(c.Lines, l)
			}
		}
		f.Data = append(f.Data, c)
	}
	for _, o := range all {
		f.Table = append(f.Table, []string{o.Policy, pressure.Number(o.Factor) + "x", fmt.Sprintf("%.4f", o.Wall), fmt.Sprintf("%.4f", o.Processor)})
	}
	return f
}

// Overheads are those of a grid at one cost, over some workloads.
func Overheads(g *experiment.Grid, cost int, workloads []int) (all []Overhead) {
	for p, who := range g.Contenders {
		for l := range g.Limits {
			var of []*experiment.Outcome
			factor := 0.0
			for _, w := range workloads {
				of = append(of, g.At(experiment.Cell{Workload: w, Limit: l, Cost: cost, Contender: p}))
				factor = float64(g.Limits[l].Of(g.Workloads[w])) / float64(max(1, g.Workloads[w].PeakReachable))
			}
			o := Overhead{Policy: who.String(), Factor: round(factor), Wall: experiment.Mean(of, (*experiment.Outcome).WallLBO), Processor: experiment.Mean(of, (*experiment.Outcome).CPULBO)}
			if !math.IsNaN(o.Wall) {
				all = append(all, o)
			}
		}
	}
	return all
}

func (b *Builder) front(workload int) Figure {
	results := b.AtLimit(workload)
	front := FrontOf(results)
	c := LineChart{
		Label: "Exposed pause against collector time, a point for each policy, and the Pareto front.", Dots: true,
		X: Axis{Label: "collector time (% of recorded time)", Unit: "%"}, Y: Axis{Label: "exposed pause (% of recorded time)", Unit: "%"},
	}
	t := Table{{"policy", "collector time", "exposed pause", "on the front"}}
	var xs, ys []float64
	for i, r := range results {
		x, y := 100*share(r.GCBusy, r.Span), 100*share(r.ExposedPause, r.Span)
		xs, ys = append(xs, x), append(ys, y)
		l := Line{Policy: b.policy(r.Policy), Rest: fmt.Sprintf("%s / %s", pressure.Percent(x/100), pressure.Percent(y/100))}
		l.add(x, y)
		c.Lines = append(c.Lines, l)
		on := "no"
		if slices.Contains(front, i) {
			on = "yes"
		} else if sim.Foresees(r.Policy) {
			on = "knows the future"
		}
		t = append(t, []string{r.Policy, pressure.Percent(x / 100), pressure.Percent(y / 100), on})
	}
	c.X.fit(xs)
	c.Y.fit(ys)
	c.Front = [][]float64{{}, {}}
	for _, i := range front {
		c.Front[0], c.Front[1] = append(c.Front[0], round(xs[i])), append(c.Front[1], round(ys[i]))
	}
	return Figure{Kind: "front", Name: "Pareto front", Table: t, Data: []LineChart{c},
		Caption: "Down and to the left is better. The line joins the policies that no other beats in one without losing in the other."}
}

func share(part, whole time.Duration) float64 { return float64(part) / float64(max(1, whole)) }

// LogRange returns the least and the most of the values above 0, and whether one is 0.
// If none is above, most is 0. No value may be negative.
func LogRange(values []float64) (least, most float64, zero bool) {
	least = math.Inf(1)
	for _, v := range values {
		most = max(most, v)
		if v > 0 {
			least = min(least, v)
		} else {
			zero = true
		}
	}
	return least, most, zero
}

// fit makes a an axis of the values on which factors are distances, with a place
// for 0 if one is 0.
func (a *Axis) fit(values []float64) {
	least, most, zero := LogRange(values)
	switch {
	case most == 0:
		a.Range = []float64{0, 1}
	case zero:
		a.Zero, a.Range = round(least), []float64{0, round(1.3 * most)}
	default:
		a.Log, a.Range = true, []float64{round(least / 1.3), round(1.3 * most)}
	}
}

// factorAxis is the axis of the limits of a grid for a workload.
func factorAxis(g *experiment.Grid, workload int) Axis {
	a := Axis{Label: "limit / peak reachable", Unit: "x", Log: true}
	w := g.Workloads[workload]
	for _, l := range g.Limits {
		a.Ticks = append(a.Ticks, round(float64(l.Of(w))/float64(max(1, w.PeakReachable))))
	}
	a.Range = []float64{round(slices.Min(a.Ticks) / 1.05), round(slices.Max(a.Ticks) * 1.05)}
	return a
}

func (b *Builder) limits(workload int) Figure {
	g := b.Grid
	pause := LineChart{Label: "Exposed pause against the limit, a line for each policy.", Dots: true,
		X: factorAxis(g, workload), Y: Axis{Label: "exposed pause (% of recorded time)", Unit: "%"}}
	count := LineChart{Label: "Collections against the limit, a line for each policy.", Dots: true, X: pause.X, Y: Axis{Label: "collections", Unit: ""}}
	var pauses, counts []float64
	for p := range g.Contenders {
		a, c := Line{Policy: p}, Line{Policy: p}
		for l := range g.Limits {
			o := g.At(experiment.Cell{Workload: workload, Limit: l, Cost: b.Cost, Contender: p})
			if o.Err != nil {
				continue
			}
			x, n := o.LimitFactor, float64(o.Collections+o.RefusalCollections)
			y := 100 * share(o.ExposedPause, o.Span)
			a.add(x, y)
			c.add(x, n)
			pauses, counts = append(pauses, y), append(counts, n)
			if l == b.Limit {
				a.Rest, c.Rest = fmt.Sprintf("%s at %s", pressure.Percent(y/100), g.Limits[l]), fmt.Sprintf("%s at %s", pressure.Count(int(n)), g.Limits[l])
			}
		}
		if len(a.X) > 0 {
			pause.Lines, count.Lines = append(pause.Lines, a), append(count.Lines, c)
		}
	}
	pause.Y.fit(pauses)
	count.Y.fit(counts)
	return Figure{Kind: "limits", Name: "Against the limit", Table: plain(Block(g, workload, b.Cost)), Data: []LineChart{pause, count},
		Caption: "Exposed pause and collections against the limit. In the table: exposed pause, then collections asked for by the policy + forced by a refusal."}
}

// plain takes out the marks by which a table is printed.
func plain(t Table) Table {
	for _, row := range t {
		for i := range row {
			if len(row[i]) > 0 && row[i][:1] == left {
				row[i] = row[i][1:]
			}
		}
	}
	return t
}

// Figures are the charts of a recording, in the order of their tabs.
func (b *Builder) Figures(workload int, runs []Run) []Figure {
	return []Figure{b.pauses(runs), b.mmu(runs), b.lbo(workload), b.front(workload), b.limits(workload)}
}
