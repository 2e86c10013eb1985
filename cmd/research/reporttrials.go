package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// trialList describes every trial in a line.
func trialList() string {
	var b strings.Builder
	for _, t := range allTrials() {
		fmt.Fprintf(&b, "  %-12s  %s\n", t.Name, t.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func prove(ctx context.Context, programs []*trace.Trace, policy, names string, stderr io.Writer) (folder, error) {
	trials, err := trialsNamed(names)
	if err != nil {
		return nil, err
	}
	who, err := experiment.ParseContender(policy)
	if err != nil {
		return nil, err
	}
	p, err := newProof(ctx, programs, who, trials, func(name string) { fmt.Fprintln(stderr, "research: trial", name) })
	if err != nil {
		return nil, err
	}
	var cells bytes.Buffer
	if err := writeTried(&cells, p); err != nil {
		return nil, err
	}
	r := &proofReport{proof: p}
	r.trials()
	r.byWorkload()
	r.byCell()
	r.losses()
	return folder{"report.md": r.Bytes(), "cells.csv": cells.Bytes()}, nil
}

type proofReport struct {
	*proof
	markdown
}

func (r *proofReport) trials() {
	fmt.Fprintf(r, `# %s in trials

Cycles of 0.1, 1, 10 and 100 ms, limits of 1.25x, 1.5x, 2x and 4x of the peak reachable bytes where nothing else is said, ladder of 2 cycles. Delay: exposed pause, and what the program loses beside cycles.
J: delay + %v x collector time, against the best schedule known for the cell: the least J of the optima and of all policies that ran. All ratios are geometric means over the cells, 1 ms added to both sides. In brackets: that schedule, which knows all that will come.
Lost: cells in which it is above %s, %s or %s by more than 2 ms of delay or two refusals.

`, code(r.Policy), sim.CPUPrice, "`cudajl`", "`sqrt`", "`never`")
	r.head("trial", "", "cells", "J", "worst program", "delay / cudajl", "delay / cudajl:poll=50us", "delay / cudajl overlapped", "J of cudajl", "J of sqrt", "refusals", "failed", "lost")
	for _, t := range r.Trials {
		worst := "-"
		if i, j := t.Worst(); len(t.Workloads) > 0 {
			worst = fmt.Sprintf("%s %s", t.Workloads[i].Name, ratioText(j))
		}
		refusals, failed := 0, 0
		for _, o := range t.Select(0, nil) {
			refusals += o.RefusalCollections
			failed += o.FailedAllocs
		}
		r.row(t.Trial.Name, t.Trial.About, t.Len()/len(t.Contenders), ratioText(t.J(0, nil)), worst, delayed(t, 1, nil), delayed(t, 5, nil), delayed(t, 2, nil),
			ratioText(t.J(1, nil)), ratioText(t.J(3, nil)), refusals, failed, len(t.Lost))
	}
}

// tabled is what tables give by program, limit and cycle.
var tabled = []struct {
	name string
	of   func(*tried, func(experiment.Cell) bool) string
}{
	{"J", func(t *tried, keep func(experiment.Cell) bool) string { return ratioText(t.J(0, keep)) }},
	{"Delay / cudajl", func(t *tried, keep func(experiment.Cell) bool) string { return delayed(t, 1, keep) }},
	{"Delay / cudajl overlapped", func(t *tried, keep func(experiment.Cell) bool) string { return delayed(t, 2, keep) }},
}

// delayed is the delay against that of a rival, of the policy and, in brackets, of the best schedule known.
func delayed(t *tried, rival int, keep func(experiment.Cell) bool) string {
	return fmt.Sprintf("%s (%s)", ratioText(t.Delayed(rival, keep)), ratioText(t.KnownDelayed(rival, keep)))
}

func (r *proofReport) byWorkload() {
	for _, m := range tabled {
		fmt.Fprintf(r, "\n## %s by program\n\n", m.name)
		head := []any{"program"}
		for _, t := range r.Trials {
			head = append(head, t.Trial.Name)
		}
		r.head(head...)
		for i, w := range r.Trials[0].Workloads {
			row := []any{w.Name}
			for _, t := range r.Trials {
				row = append(row, m.of(t, Of(i)))
			}
			r.row(row...)
		}
	}
}

func (r *proofReport) byCell() {
	t := r.Trials[0]
	for _, m := range tabled {
		fmt.Fprintf(r, "\n## %s by limit and cycle: %s\n\n", m.name, t.Trial.Name)
		head := []any{"cycle"}
		for _, l := range t.Limits {
			head = append(head, l)
		}
		r.head(head...)
		for k, cost := range t.Costs {
			row := []any{cost.Base}
			for l := range t.Limits {
				row = append(row, m.of(t, func(c experiment.Cell) bool { return c.Cost == k && c.Limit == l }))
			}
			r.row(row...)
		}
	}
}

func (r *proofReport) losses() {
	r.WriteString("\n## Lost cells\n\n")
	r.WriteString(`Delay in ms, cycles + refusals. Headroom: how long it lasts, on average, as a share of a cycle. Cause, the first that holds. Price: it is later, but its J is
the least, by the price of collector time. Told: it does not lose if it is told the truth. Headroom: it lasts for less than a cycle, so that little can be hidden
by anyone. Rule: none of these.

`)
	r.head("cause", "delay", "refusals", "all")
	for _, cause := range []Cause{trade, wrong, Short, Rule} {
		var delay, refusals, all int
		for _, t := range r.Trials {
			for _, l := range t.Lost {
				if l.Cause == cause {
					delay += count(l.ByDelay)
					refusals += count(l.ByRefusals)
					all++
				}
			}
		}
		r.row(cause, delay, refusals, all)
	}
	r.WriteString("\n")
	r.head("trial", "program", "limit", "cycle", r.Policy, "cudajl", "sqrt", "never", "best known J, ms", "headroom", "lost by", "cause")
	for _, t := range r.Trials {
		for _, l := range t.Lost {
			by := []string{"delay", "refusals", "delay, refusals"}[count(l.ByDelay)+2*count(l.ByRefusals)-1]
			cycle := t.Costs[l.Cost].Base
			row := []any{t.Trial.Name, t.Workloads[l.Workload].Name, t.Limits[l.Limit], cycle, delayText(l.Policy)}
			for _, o := range l.Rivals {
				row = append(row, delayText(o))
			}
			r.row(append(row, milliseconds(l.Known), fmt.Sprintf("%.2g", float64(l.Headroom)/float64(cycle)), by, l.Cause)...)
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func delayText(o *experiment.Outcome) string {
	return fmt.Sprintf("%s, %d+%d", milliseconds(o.Delay()), o.Collections, o.RefusalCollections)
}

func milliseconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64) }

// writeTried writes a line for each cell of each trial: delays and J in us.
func writeTried(w io.Writer, p *proof) error {
	out := csv.NewWriter(w)
	head := []string{"trial", "program", "limit", "cycle", "known_j_us"}
	for _, who := range p.Trials[0].Contenders {
		head = append(head, who.String()+"_delay_us", "busy_us", "refusals")
	}
	out.Write(head)
	for _, t := range p.Trials {
		n := len(t.Contenders)
		for i := 0; i < t.Len(); i += n {
			c := t.Cell(i)
			row := []string{t.Trial.Name, t.Workloads[c.Workload].Name, t.Limits[c.Limit].String(), t.Costs[c.Cost].Base.String(), micros(t.Known(i))}
			for _, o := range t.Outcomes()[i : i+n] {
				row = append(row, micros(o.Delay()), micros(o.GCBusy), strconv.Itoa(o.RefusalCollections))
			}
			out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

type markdown struct{ bytes.Buffer }

// head writes the first row of a table, and the line below it.
func (r *markdown) head(cells ...any) {
	r.row(cells...)
	r.WriteString("|" + strings.Repeat("---|", len(cells)) + "\n")
}

func (r *markdown) row(cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(r, "| %v ", c)
	}
	r.WriteString("|\n")
}

func code(who experiment.Contender) string { return "`" + who.String() + "`" }

func ratioText(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
