package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim/chart"
	"github.com/eagergc/eagergc/sim/experiment"
)

// pageData is what the page's script draws. Times are in seconds but for
// pauses, in ms; memory is in GiB.
type pageData struct {
	Policies []look      `json:"policies"`
	Traces   []traceData `json:"traces"`
}

// A look is how a policy is drawn.
type look struct {
	Name  string    `json:"name"`
	Color string    `json:"color"`
	Dash  []float64 `json:"dash,omitempty"`
	Shown bool      `json:"shown"` // in a memory chart, before anybody clicks
}

type traceData struct {
	Limit   float64   `json:"limit"`
	Runs    []runData `json:"runs"`
	Factors []float64 `json:"factors"` // of Curves
	Curves  []curve   `json:"curves"`
}

type runData struct {
	Policy int       `json:"policy"`
	T      []float64 `json:"t"`
	Live   []float64 `json:"live"`
	Cycles []float64 `json:"cycles"`
	Pauses []float64 `json:"pauses"` // different lengths, growing
	Shares []float64 `json:"shares"` // % of the pauses that are at most as long
}

// A curve is one policy over the limits; null where it has no outcome.
type curve struct {
	Policy  int        `json:"policy"`
	Exposed []*float64 `json:"exposed"`
	Busy    []*float64 `json:"busy"`
}

// looks are those of the contenders. Memory charts begin with the best policy
// at a cost and the first one, to compare it with; all at once hide each other.
func looks(g *experiment.Grid, cost int, colours chart.Palette) []look {
	best := g.Rank(cost).Best
	var all []look
	for p, name := range names(g) {
		colour, dash := colours.Line(name)
		all = append(all, look{name, fmt.Sprintf("#%02x%02x%02x", colour.R, colour.G, colour.B), dash, p == 0 || p == best})
	}
	return all
}

func newTraceData(g *experiment.Grid, at experiment.Cell, runs []chart.Run) traceData {
	w := g.Workloads[at.Workload]
	d := traceData{Limit: gib(g.Limits[at.Limit].Of(w))}
	for i := range runs {
		d.Runs = append(d.Runs, newRunData(g.Find(runs[i].Result.Policy), &runs[i]))
	}
	for _, l := range g.Limits {
		d.Factors = append(d.Factors, float64(l.Of(w))/float64(max(1, w.PeakReachable)))
	}
	for p := range g.Contenders {
		curve := curve{Policy: p}
		for l := range g.Limits {
			o := g.At(experiment.Cell{Workload: at.Workload, Limit: l, Cost: at.Cost, Contender: p})
			if o.Err != nil {
				curve.Exposed, curve.Busy = append(curve.Exposed, nil), append(curve.Busy, nil)
				continue
			}
			e, b := seconds(o.ExposedPause), seconds(o.GCBusy)
			curve.Exposed, curve.Busy = append(curve.Exposed, &e), append(curve.Busy, &b)
		}
		d.Curves = append(d.Curves, curve)
	}
	return d
}

func newRunData(policy int, r *chart.Run) runData {
	d := runData{Policy: policy, T: []float64{}, Live: []float64{}, Cycles: []float64{}, Pauses: []float64{}, Shares: []float64{}}
	for _, x := range r.Levels {
		t := seconds(x.At)
		if n := len(d.T); n > 0 && d.T[n-1] == t { // one level a moment: the last
			d.Live[n-1] = gib(x.Live)
			continue
		}
		d.T, d.Live = append(d.T, t), append(d.Live, gib(x.Live))
	}
	for _, x := range r.Log.Cycles {
		d.Cycles = append(d.Cycles, seconds(x.Start))
	}
	var lengths []time.Duration
	for _, x := range r.Log.Pauses {
		lengths = append(lengths, x.Length)
	}
	slices.Sort(lengths)
	for i, x := range lengths {
		if i+1 < len(lengths) && lengths[i+1] == x {
			continue
		}
		d.Pauses = append(d.Pauses, round(1000*x.Seconds()))
		d.Shares = append(d.Shares, round(100*float64(i+1)/float64(len(lengths))))
	}
	return d
}

func seconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e9 }

func gib(bytes int64) float64 { return round(float64(bytes) / (1 << 30)) }

// round keeps four decimals, which is more than a chart shows.
func round(v float64) float64 { return float64(int64(v*1e4+0.5)) / 1e4 }

// mostDecisions bounds the table of decisions of one workload.
const mostDecisions = 1000

// reasons counts why each policy collected, and lists the moments.
func reasons(runs []chart.Run) (counts, moments table) {
	counts = table{{"policy", "decision", "reason", "times"}}
	moments = table{{"policy", "time", "at", "live", "decision", "reason"}}
	for i := range runs {
		type key struct{ action, reason string }
		times := map[key]int{}
		var order []key
		for _, d := range runs[i].Log.Decisions {
			if d.Action == gc.Skip {
				continue
			}
			k := key{d.Action.String(), d.Reason}
			if times[k] == 0 {
				order = append(order, k)
			}
			times[k]++
			if len(moments) <= mostDecisions {
				moments = append(moments, []string{runs[i].Result.Policy, fmt.Sprintf("%.4f s", seconds(d.Now)), where(&d), formatBytes(d.Sample.Live), k.action, k.reason})
			}
		}
		for _, k := range order {
			counts = append(counts, []string{runs[i].Result.Policy, k.action, k.reason, formatCount(times[k])})
		}
		if n := runs[i].Result.RefusalCollections; n > 0 {
			counts = append(counts, []string{runs[i].Result.Policy, "ladder", "an allocation did not fit", formatCount(n)})
		}
	}
	return counts, moments
}

// plain takes out the marks by which a table is printed.
func (g table) plain() table {
	for _, row := range g {
		for i := range row {
			row[i] = strings.TrimPrefix(row[i], left)
		}
	}
	return g
}
