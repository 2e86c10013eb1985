package chart

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Table is rows of cells. The first row is its head.
type Table [][]string

// A cell that begins with left stands close to the cell before it.
const left = "\t"

// LostBy describes the figures of a [Summary].
func LostBy(g *experiment.Grid) string {
	return fmt.Sprintf("Time lost, %s: (exposed pause + %v x collector time) / recorded time", meanOver(g), sim.CPUPrice)
}

// meanOver names the workloads of a mean, and the number of recordings in which only cycles date
// deaths.
func meanOver(g *experiment.Grid) string {
	text := fmt.Sprintf("geometric mean over %d workloads", len(g.Workloads))
	if len(g.Workloads) == 1 {
		text = "on " + g.Workloads[0].Name
	}
	late := 0
	for _, w := range g.Workloads {
		if w.SeenDeaths > 0 {
			late++
		}
	}
	if late > 0 {
		text += fmt.Sprintf(" (%d with deaths known only from cycles: replay info says how late)", late)
	}
	return text
}

// Block returns the Table of one workload at one cost: a row for each policy, a column for each
// limit.
func Block(g *experiment.Grid, workload, cost int) Table {
	head := []string{g.CostName(cost)}
	for _, l := range g.Limits {
		head = append(head, limitName(l), left)
	}
	t := Table{head}
	for p, name := range g.Contenders {
		row := []string{name.String()}
		for l := range g.Limits {
			pause, cycles := cellText(g.At(experiment.Cell{Workload: workload, Limit: l, Cost: cost, Contender: p}))
			row = append(row, pause, left+cycles)
		}
		t = append(t, row)
	}
	return t
}

func cellText(o *experiment.Outcome) (pause, cycles string) {
	if errors.Is(o.Err, sim.ErrNoSchedule) {
		return "none", "fits"
	}
	if errors.Is(o.Err, sim.ErrTooLong) {
		return "too", "long"
	}
	cycles = fmt.Sprintf("%d+%d", o.Collections, o.RefusalCollections)
	if o.FailedAllocs > 0 {
		cycles += fmt.Sprintf(" !%d", o.FailedAllocs)
	}
	return Duration(o.ExposedPause), cycles
}

// Summary returns the Table over all workloads at one cost. It has the time lost at each limit,
// the time lost over all limits that can be met, the longest pause, and the failed allocations.
func Summary(g *experiment.Grid, cost int) Table {
	head := []string{g.CostName(cost)}
	for _, l := range g.Limits {
		head = append(head, limitName(l))
	}
	t := Table{append(head, "all", "longest", "failed")}
	for p, name := range g.Contenders {
		row := []string{name.String()}
		for l := range g.Limits {
			row = append(row, LostText(g.Lost(cost, p, l)))
		}
		longest, failed := g.Worst(cost, p)
		t = append(t, append(row, LostText(g.Lost(cost, p, experiment.AllLimits)), Duration(longest), pressure.Count(failed)))
	}
	return t
}

// LostText writes a share of lost time, which may be unknown.
func LostText(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return Percent(share)
}

// Verdict returns a sentence that names the policy with the least time lost at one cost. It
// compares that policy with never, with the second one and with the optimum.
func Verdict(g *experiment.Grid, cost int) string {
	r, name := g.Rank(cost), g.CostName(cost)
	if r.Best < 0 {
		return name + ": nothing to compare" + impossible(g)
	}
	lost := func(p int) string { return LostText(g.Lost(cost, p, experiment.AllLimits)) }
	text := fmt.Sprintf("%s: %s loses least, %s", name, g.Contenders[r.Best], lost(r.Best))
	if r.Second < 0 {
		text = fmt.Sprintf("%s: %s loses %s, and no other policy ran", name, g.Contenders[r.Best], lost(r.Best))
	}
	var others []string
	mention := func(p int) {
		if p >= 0 && p != r.Best {
			others = append(others, fmt.Sprintf("%s %s", g.Contenders[p], lost(p)))
		}
	}
	mention(r.Second)
	if r.Never != r.Second {
		mention(r.Never)
	}
	mention(r.Optimum)
	if len(others) > 0 {
		text += " (" + strings.Join(others, ", ") + ")"
	}
	if failed := g.Failed(cost, r.Best); failed > 0 {
		text += fmt.Sprintf(", but %s allocations fail under it", pressure.Count(failed))
	}
	return text + impossible(g) + "."
}

// Savings returns a sentence with the time and the memory that the best policy saves against
// never. It is empty if there are no savings.
func Savings(g *experiment.Grid, cost int) string {
	r := g.Rank(cost)
	if r.Best < 0 || r.Never < 0 || r.Best == r.Never {
		return ""
	}
	s, best := g.Saved(cost, r.Best, r.Never), g.Contenders[r.Best]
	if s.Time <= 0 {
		return ""
	}
	text := fmt.Sprintf("%s saves %s against never, over %s recorded in %s", best, Duration(s.Time), Duration(s.Recorded), Counted(s.Runs, "run"))
	if s.Bytes > 0 {
		text += fmt.Sprintf(";\nat %s it loses less than never at %s, with %s less memory", s.With, s.Than, pressure.Bytes(s.Bytes).String())
		if n := len(g.Workloads); n > 1 {
			text += fmt.Sprintf(" (the sum of the limits of %d recordings)", n)
		}
	}
	return text + "."
}

// impossible names the limits that some workload cannot meet, as the end of a sentence.
func impossible(g *experiment.Grid) (text string) {
	for l, limit := range g.Limits {
		for i, w := range g.Workloads {
			if !g.Possible(i, l) {
				text += fmt.Sprintf("; %s is below the %s that %s keeps reachable and does not count", limit, pressure.Bytes(w.PeakReachable).String(), w.Name)
				break
			}
		}
	}
	return text
}

// RunTable returns the table of the memory chart.
func RunTable(runs []Run) Table {
	t := Table{{"policy", "cycles", "forced by a refusal", "failed", "exposed pause", "longest", "collector", "peak live", "mean live", "mean garbage", "took"}}
	for _, run := range runs {
		r := run.Result
		t = append(t, []string{r.Policy, pressure.Count(r.Collections), pressure.Count(r.RefusalCollections), pressure.Count(r.FailedAllocs), Duration(r.ExposedPause),
			Duration(r.MaxPause), Duration(r.GCBusy), pressure.Bytes(r.PeakLive).String(), pressure.Bytes(r.MeanLive).String(), pressure.Bytes(r.MeanGarbage).String(), Duration(r.Elapsed)})
	}
	return t
}

// Reasons counts the reasons of each policy's collections.
func Reasons(runs []Run) Table {
	counts := Table{{"policy", "decision", "reason", "times"}}
	for i := range runs {
		type key struct{ action, reason string }
		times := map[key]int{}
		var order []key
		for _, d := range runs[i].Log.Decisions {
			if d.Action == policy.Skip {
				continue
			}
			k := key{d.Action.String(), d.Reason}
			if times[k] == 0 {
				order = append(order, k)
			}
			times[k]++
		}
		for _, k := range order {
			counts = append(counts, []string{runs[i].Result.Policy, k.action, k.reason, pressure.Count(times[k])})
		}
		if n := runs[i].Result.RefusalCollections; n > 0 {
			counts = append(counts, []string{runs[i].Result.Policy, "ladder", "an allocation did not fit", pressure.Count(n)})
		}
	}
	return counts
}

// limitName returns a limit in words: 1.5x, 8.00 GiB.
func limitName(l experiment.Limit) string {
	if l.Factor == 0 {
		return pressure.Bytes(l.Bytes).String()
	}
	return l.String()
}
