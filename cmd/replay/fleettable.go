package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/sim/view"
)

// writeFleet prints what a fleet says: all jobs, the groups, and the worst.
func writeFleet(w io.Writer, a *fleet.Answer) error {
	out := newPrinter(w)
	all := a.Partial.Total()
	fmt.Fprintf(out, "%s, %s recorded, %s broken\n", view.Plural(int(all.Jobs), "job"), formatDuration(time.Duration(all.Span.Float())), formatCount(int(a.Partial.Broken.Count)))
	for cycle := range a.Plan.Cycles {
		fmt.Fprintf(out, "\nTime lost: (exposed pause + %v x collector time) / recorded time; geometric mean over the jobs\n", sim.CPUPrice)
		fleetSummary(a, all, cycle).print(out)
	}
	for cycle, d := range a.Plan.Cycles {
		fmt.Fprintf(out, "\nGroups of like jobs, at cycle %s: the policy that loses least at each limit\n", d)
		fleetGroups(a, cycle).print(out)
	}
	worst := worstCell(a, all)
	if t := fleetWorst(a, worst); len(t) > 1 {
		cell := a.Plan.Cells()[worst]
		fmt.Fprintf(out, "\nThe jobs that lose most under %s at %s, cycle %s\n", cell.Policy, cell.Limit, cell.Cycle)
		t.print(out)
	}
	if broken := fleetBroken(a, 10); len(broken) > 0 {
		fmt.Fprintln(out, "\nRecordings that could not be read")
		broken.print(out)
	}
	return out.err
}

// fleetSummary has a policy to a row and a limit to a column.
func fleetSummary(a *fleet.Answer, g *fleet.Group, cycle int) table {
	head := append([]string{"cycle " + a.Plan.Cycles[cycle].String()}, a.Plan.Limits...)
	t := table{append(head, "95 % of jobs", "longest", "failing jobs", "unmet")}
	for p, name := range a.Plan.Policies {
		row := []string{name}
		var longest, failing, unmet int64
		var high float64
		for l := range a.Plan.Limits {
			c := &g.Cells[a.Plan.Index(l, cycle, p)]
			row = append(row, view.LostText(c.Lost()))
			longest, failing, unmet, high = max(longest, c.Longest), max(failing, c.Failing), max(unmet, c.Unmet), max(high, c.LostAt(0.95))
		}
		t = append(t, append(row, formatPercent(high), formatDuration(time.Duration(longest)), formatCount(int(failing)), formatCount(int(unmet))))
	}
	return t
}

// mostGroups is how many groups a table names; the others are one row.
const mostGroups = 12

// fleetGroups has a group to a row: its best policy at each limit, what that saves at
// the last one, and the advice.
func fleetGroups(a *fleet.Answer, cycle int) table {
	head := []string{"", "jobs"}
	for _, l := range a.Plan.Limits {
		head = append(head, l, left)
	}
	last := a.Plan.Limits[len(a.Plan.Limits)-1]
	t := table{append(head, fmt.Sprintf("saved at %s against %s", last, policyName(a.Plan.Policies[0])), "advice")}
	names := a.Partial.Names()
	for _, name := range names[:min(mostGroups, len(names))] {
		t = append(t, groupRow(a, name, a.Partial.Groups[name], cycle))
	}
	if rest := names[min(mostGroups, len(names)):]; len(rest) > 0 {
		others := &fleet.Group{Cells: make([]fleet.Tally, len(a.Plan.Cells()))}
		for _, name := range rest {
			others.Merge(a.Partial.Groups[name])
		}
		t = append(t, groupRow(a, fmt.Sprintf("%d other groups", len(rest)), others, cycle))
	}
	return t
}

func groupRow(a *fleet.Answer, name string, g *fleet.Group, cycle int) []string {
	row := []string{name, formatCount(int(g.Jobs))}
	saved := "-"
	for l := range a.Plan.Limits {
		best := a.Plan.Best(g, l, cycle)
		if best < 0 {
			row, saved = append(row, "-", left), "-"
			continue
		}
		i := a.Plan.Index(l, cycle, best)
		row = append(row, policyName(a.Plan.Policies[best]), left+view.LostText(g.Cells[i].Lost()))
		saved = formatDuration(g.Saved(i, a.Plan.Index(l, cycle, 0)))
	}
	return append(row, saved, groupAdvice(a, g, cycle))
}

// policyName is a policy without its parameters.
func policyName(policy string) string {
	name, _, more := strings.Cut(policy, ":")
	if more {
		name += ":…"
	}
	return name
}

func groupAdvice(a *fleet.Answer, g *fleet.Group, cycle int) string {
	l, p, ok := a.Plan.Advise(g, cycle, experiment.DefaultLost)
	if !ok {
		return "none within " + formatPercent(experiment.DefaultLost)
	}
	return policyName(a.Plan.Policies[p]) + " at " + a.Plan.Limits[l]
}

// worstCell is where the worst jobs are looked for: under the policy that loses least
// over all jobs, at the tightest limit and the last cost.
func worstCell(a *fleet.Answer, all *fleet.Group) int {
	cycle := len(a.Plan.Cycles) - 1
	for l := range a.Plan.Limits {
		if p := a.Plan.Best(all, l, cycle); p >= 0 {
			return a.Plan.Index(l, cycle, p)
		}
	}
	return 0
}

func fleetWorst(a *fleet.Answer, cell int) table {
	t := table{{"job", "lost", "longest pause", "failed", "recording"}}
	for _, w := range a.Partial.Worst[cell] {
		t = append(t, []string{w.Name, view.LostText(float64(w.Lost) / 1e6), formatDuration(time.Duration(w.Longest)), formatCount(int(w.Failed)), w.Hash[:min(12, len(w.Hash))]})
	}
	return t
}

func fleetBroken(a *fleet.Answer, most int) (t table) {
	for i, f := range a.Partial.Broken.Named {
		if i == most {
			t = append(t, []string{"…", left + fmt.Sprintf("and %s more", formatCount(int(a.Partial.Broken.Count)-most))})
			break
		}
		t = append(t, []string{f.Name, left + f.Error})
	}
	return t
}
