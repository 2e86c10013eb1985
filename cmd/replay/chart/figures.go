package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A Figure is one kind of chart of a recording, with its table.
type Figure struct {
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Caption string      `json:"caption"`
	Table   Table       `json:"table"`
	Data    []LineChart `json:"-"` // side by side
}

// A LineChart is a chart with one line for each policy. A page draws it, and so do the functions
// that return a [Chart].
type LineChart struct {
	Label string      `json:"label"` // description for readers who cannot see it
	X     axis        `json:"x"`
	Y     axis        `json:"y"`
	Lines []line      `json:"lines"`
	Front [][]float64 `json:"front,omitempty"` // x and y of the Pareto front
	Step  bool        `json:"step,omitempty"`
	Dots  bool        `json:"dots,omitempty"`
	title string      // of its panel
}

// An axis is the x or the y axis of a chart.
type axis struct {
	Label string    `json:"label"`
	Unit  string    `json:"unit"`            // s, %, x, nines (of a percentile) or none
	Log   bool      `json:"log,omitempty"`   // logarithmic
	Zero  float64   `json:"zero,omitempty"`  // logarithmic above this value, and linear below it
	Range []float64 `json:"range,omitempty"` // least and most
	Ticks []float64 `json:"ticks,omitempty"`
}

// A line belongs to one policy.
type line struct {
	Policy int        `json:"policy"` // its index on the page
	X      []float64  `json:"x"`
	Y      []*float64 `json:"y"`    // null: nothing there
	Rest   string     `json:"rest"` // its summary
	policy string
}

func (l *line) add(x, y float64) {
	y = round(y)
	l.X, l.Y = append(l.X, round(x)), append(l.Y, &y)
}

// lineOf returns the line of a policy, and adds it if it is missing.
func (c *LineChart) lineOf(policy string) *line {
	i := slices.IndexFunc(c.Lines, func(l line) bool { return l.policy == policy })
	if i < 0 {
		i = len(c.Lines)
		c.Lines = append(c.Lines, line{policy: policy})
	}
	return &c.Lines[i]
}

// Figures returns the charts of a recording, in the order of their tabs.
func (b *Builder) Figures(workload int, runs []Run) []Figure {
	at := b.Cell(workload)
	var own, atLimit []sim.Result
	for p := range b.Grid.Contenders {
		at.Contender = p
		for at.Limit = range b.Grid.Limits {
			if o := b.Grid.At(at); o.Err == nil {
				if own = append(own, o.Result); at.Limit == b.Limit {
					atLimit = append(atLimit, o.Result)
				}
			}
		}
	}
	limits := limitsFigure(own, b.Grid.Limits[b.Limit].Of(b.Grid.Workloads[workload]))
	limits.Table = plain(Block(b.Grid, workload, b.Cost))
	all := []Figure{pausesFigure(runs), mmuFigure(runs), lboFigure(overheads(b.Grid, b.Cost, []int{workload})), frontFigure(atLimit), limits}
	for _, f := range all {
		for _, c := range f.Data {
			for i := range c.Lines {
				c.Lines[i].Policy = slices.Index(Names(b.Grid), c.Lines[i].policy)
			}
		}
	}
	return all
}

func pausesFigure(runs []Run) Figure {
	c := LineChart{
		Label: "Exposed pauses by percentile, a line for each policy.", Step: true,
		X: axis{Label: "percentile of the pauses", Unit: "nines", Ticks: []float64{0, math.Log10(2), math.Log10(4)}},
		Y: axis{Label: "exposed pause", Unit: "s", Log: true},
	}
	percents := []float64{50, 90, 99, 99.9, 99.99}
	t := Table{{"policy", "pauses", "p50", "p90", "p99", "p99.9", "p99.99", "longest"}}
	right := 2.0
	for _, r := range runs {
		l := c.lineOf(r.Result.Policy)
		for _, q := range quantiles(r.Log) {
			l.add(q.nines, q.pause.Seconds())
			right = max(right, q.nines)
		}
		row := []string{r.Result.Policy, pressure.Count(len(r.Log.Pauses))}
		lengths := r.Log.Lengths()
		for _, p := range percents {
			cell := "-" // too few to tell
			if float64(len(lengths))*(1-p/100) >= 1-1e-9 {
				cell = Duration(recording.Percentile(lengths, p))
			}
			row = append(row, cell)
		}
		t = append(t, append(row, Duration(r.Result.MaxPause)))
		if n := len(lengths); n > 0 {
			l.Rest = fmt.Sprintf("%s, longest %s", Counted(n, "pause"), Duration(lengths[n-1]))
		} else {
			l.X, l.Y, l.Rest = []float64{0}, []*float64{nil}, "no pause"
		}
	}
	for k := 1.0; k <= right; k++ {
		c.X.Ticks = append(c.X.Ticks, k)
	}
	c.X.Range = []float64{0, round(right)}
	return Figure{Kind: "pauses", Name: "Pauses", Table: t, Data: []LineChart{c},
		Caption: "How long the program was held: read up from 99% to see the pause that 1 in 100 is longer than. A line ends at the longest pause; n pauses tell nothing beyond 1 - 1/n."}
}

func mmuFigure(runs []Run) Figure {
	c := LineChart{
		Label: "Minimum mutator utilization against the window, a line for each policy.",
		X:     axis{Label: "window", Unit: "s", Log: true},
		Y:     axis{Label: "share of the window that the program ran", Unit: "%", Range: []float64{0, 100}},
	}
	windows := mmuWindows(runs)
	c.X.Range = []float64{windows[0].Seconds(), windows[len(windows)-1].Seconds()}
	t := Table{{"policy"}}
	for _, w := range experiment.Windows {
		t[0] = append(t[0], w.String())
	}
	for _, r := range runs {
		l := c.lineOf(r.Result.Policy)
		for i, u := range experiment.MMU(r.Log, r.Result.Elapsed, windows) {
			l.add(windows[i].Seconds(), 100*u)
		}
		row := []string{r.Result.Policy}
		for _, u := range experiment.MMU(r.Log, r.Result.Elapsed, experiment.Windows) {
			row = append(row, Percent(u))
		}
		l.Rest = row[2] + " of any " + experiment.Windows[1].String()
		t = append(t, row)
	}
	return Figure{Kind: "mmu", Name: "Utilization (MMU)", Table: t, Data: []LineChart{c},
		Caption: "Minimum mutator utilization: of any window of this length, the program ran at least this share."}
}

func lboFigure(all []overhead) Figure {
	f := Figure{Kind: "lbo", Name: "Overhead (LBO)", Table: Table{{"policy", "limit", "elapsed time", "processor time"}},
		Caption: "Lower-bound overhead: total time over the least that any run could take, 1x if the collector cost nothing. On the left elapsed time, on the right processor time."}
	var factors []float64
	for _, o := range all {
		factors = append(factors, o.Factor)
		f.Table = append(f.Table, []string{o.Policy, Number(o.Factor) + "x", fmt.Sprintf("%.4f", o.Wall), fmt.Sprintf("%.4f", o.Processor)})
	}
	for i, name := range []string{"elapsed", "processor"} {
		c := LineChart{Label: "Lower-bound overhead of " + name + " time against the limit.", Dots: true, title: name + " time",
			X: factorAxis(factors), Y: axis{Label: "overhead, " + name + " time", Unit: "x"}}
		for _, o := range all {
			l, v := c.lineOf(o.Policy), [2]float64{o.Wall, o.Processor}[i]
			l.add(o.Factor, v)
			if l.Rest == "" {
				l.Rest = Number(v) + "x at " + Number(o.Factor) + "x"
			}
		}
		f.Data = append(f.Data, c)
	}
	return f
}

// overheads returns the overheads at one cost, over some workloads.
func overheads(g *experiment.Grid, cost int, workloads []int) (all []overhead) {
	for p, who := range g.Contenders {
		for l := range g.Limits {
			var of []*experiment.Outcome
			factor := 0.0
			for _, w := range workloads {
				of = append(of, g.At(experiment.Cell{Workload: w, Limit: l, Cost: cost, Contender: p}))
				factor = float64(g.Limits[l].Of(g.Workloads[w])) / float64(max(1, g.Workloads[w].PeakReachable))
			}
			o := overhead{Policy: who.String(), Factor: rounded(factor), Wall: experiment.Mean(of, (*experiment.Outcome).WallLBO), Processor: experiment.Mean(of, (*experiment.Outcome).CPULBO)}
			if !math.IsNaN(o.Wall) {
				all = append(all, o)
			}
		}
	}
	return all
}

func frontFigure(results []sim.Result) Figure {
	front := frontOf(results)
	c := LineChart{
		Label: "Exposed pause against collector time, a point for each policy, and the Pareto front.", Dots: true,
		X: axis{Label: "collector time (% of recorded time)", Unit: "%"}, Y: axis{Label: "exposed pause (% of recorded time)", Unit: "%"},
	}
	t := Table{{"policy", "collector time", "exposed pause", "on the front"}}
	var xs, ys []float64
	for i, r := range results {
		x, y := 100*share(r.GCBusy, r.Span), 100*share(r.ExposedPause, r.Span)
		xs, ys = append(xs, x), append(ys, y)
		l := c.lineOf(r.Policy)
		l.Rest = fmt.Sprintf("%s / %s", Percent(x/100), Percent(y/100))
		l.add(x, y)
		on := "no"
		if slices.Contains(front, i) {
			on = "yes"
		} else if experiment.Foresees(r.Policy) {
			on = "knows the future"
		}
		t = append(t, []string{r.Policy, Percent(x / 100), Percent(y / 100), on})
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

// logRange returns the least and the greatest of the values above 0, and whether a value is 0.
// Without values above 0, most is 0. Values must not be negative.
func logRange(values []float64) (least, most float64, zero bool) {
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

// fit makes a a logarithmic axis of the values. It has a place for 0 if a value is 0.
func (a *axis) fit(values []float64) {
	least, most, zero := logRange(values)
	switch {
	case most == 0:
		a.Range = []float64{0, 1}
	case zero:
		a.Zero, a.Range = round(least), []float64{0, round(1.3 * most)}
	default:
		a.Log, a.Range = true, []float64{round(least / 1.3), round(1.3 * most)}
	}
}

func factorAxis(factors []float64) axis {
	a := axis{Label: "limit / peak reachable", Unit: "x", Log: true}
	for _, f := range factors {
		if f = rounded(f); !slices.Contains(a.Ticks, f) {
			a.Ticks = append(a.Ticks, f)
		}
	}
	if slices.Sort(a.Ticks); len(a.Ticks) > 0 {
		a.Range = []float64{round(a.Ticks[0] / 1.05), round(a.Ticks[len(a.Ticks)-1] * 1.05)}
	}
	return a
}

// rounded removes the effect of rounding a limit to whole bytes on its factor.
func rounded(factor float64) float64 { return math.Round(factor*1e4) / 1e4 }

// limitsFigure returns the figure of the results of one trace. Summaries of lines are at limit.
func limitsFigure(results []sim.Result, limit int64) Figure {
	var pauses, counts, factors []float64
	pause := LineChart{Label: "Exposed pause against the limit, a line for each policy.", Dots: true, Y: axis{Label: "exposed pause (% of time)", Unit: "%"}}
	count := LineChart{Label: "Collections against the limit, a line for each policy.", Dots: true, Y: axis{Label: "collections", Unit: ""}}
	for _, r := range results {
		x, n := rounded(r.LimitFactor), r.Collections+r.RefusalCollections
		y := 100 * share(r.ExposedPause, r.Span)
		a, c := pause.lineOf(r.Policy), count.lineOf(r.Policy)
		a.add(x, y)
		c.add(x, float64(n))
		pauses, counts, factors = append(pauses, y), append(counts, float64(n)), append(factors, x)
		if r.LimitBytes == limit {
			at := " at " + strconv.FormatFloat(x, 'g', -1, 64) + "x"
			a.Rest, c.Rest = Percent(y/100)+at, pressure.Count(n)+at
		}
	}
	pause.X, count.X = factorAxis(factors), factorAxis(factors)
	pause.Y.fit(pauses)
	count.Y.fit(counts)
	return Figure{Kind: "limits", Name: "Against the limit", Data: []LineChart{pause, count},
		Caption: "Exposed pause and collections against the limit. In the table: exposed pause, then collections asked for by the policy + forced by a refusal."}
}

// plain removes the alignment marks of a table.
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

// Counted writes a number of things: 1 file, 2 files.
func Counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return pressure.Count(n) + " " + what
}
