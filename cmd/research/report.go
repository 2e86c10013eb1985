package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A folder is the files of a report, by their names. The one whose name ends in .md is the report.
type folder map[string][]byte

// save writes the files into a folder. If path is empty it prints the report.
func (f folder) save(path string, stdout io.Writer) error {
	if path != "" {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	for name, text := range f {
		var err error
		if path != "" {
			err = os.WriteFile(filepath.Join(path, name), text, 0o644)
		} else if filepath.Ext(name) == ".md" {
			_, err = stdout.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A markdown is a page that is written from its beginning to its end.
type markdown struct{ bytes.Buffer }

// head writes the first row of a table and the rule below it.
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

// table writes a table of one number in each cell. The name of the first column is corner.
func table[C, R any](r *markdown, corner string, columns []C, rows []R, cell func(row, column int) any) {
	head := []any{corner}
	for _, c := range columns {
		head = append(head, c)
	}
	r.head(head...)
	for i := range rows {
		row := []any{rows[i]}
		for k := range columns {
			row = append(row, cell(i, k))
		}
		r.row(row...)
	}
}

func code(who experiment.Contender) string { return "`" + who.String() + "`" }

func codes(all []experiment.Contender) (texts []string) {
	for _, who := range all {
		texts = append(texts, code(who))
	}
	return texts
}

func ratioText(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

// figure writes a number with four digits, and nothing for NaN.
func figure(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return fmt.Sprintf("%.4g", x)
}

func lostText(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return fmt.Sprintf("%.3g %%", 100*x)
}

// reportTrials writes the report of one policy in trials, and the cells behind it.
func reportTrials(policy experiment.Contender, trials []*tried) folder {
	var r markdown
	fmt.Fprintf(&r, `# %s in trials

Cycles of 0.1, 1, 10 and 100 ms, limits of 1.25x, 1.5x, 2x and 4x of the peak reachable bytes unless the trial names others, ladder of 2 cycles.
Delay: exposed pause, and what the program loses beside cycles. J: delay + %v x collector time, divided by the least J known for the cell, over the optima and all policies that ran.
All ratios are geometric means over the cells, 1 ms added to both sides.

`, code(policy), sim.CPUPrice)
	r.head("trial", "", "cells", "J", "worst program", "delay / cudajl", "delay / cudajl:poll=50us", "delay / cudajl overlapped", "J of cudajl", "J of sqrt", "refusals", "failed")
	var names []string
	for _, t := range trials {
		names = append(names, t.trial.Name)
		worst := "-"
		if i, j := t.worst(); len(t.Workloads) > 0 {
			worst = t.Workloads[i].Name + " " + ratioText(j)
		}
		refusals, failed := 0, 0
		for _, o := range t.Select(0, nil) {
			refusals += o.RefusalCollections
			failed += o.FailedAllocs
		}
		r.row(t.trial.Name, t.trial.About, t.Len()/len(t.Contenders), ratioText(t.j(0, nil)), worst, ratioText(t.delayed(1)), ratioText(t.delayed(5)), ratioText(t.delayed(2)),
			ratioText(t.j(1, nil)), ratioText(t.j(3, nil)), refusals, failed)
	}
	first := trials[0]
	var programs []string
	for _, w := range first.Workloads {
		programs = append(programs, w.Name)
	}
	r.WriteString("\n## J by program\n\n")
	table(&r, "program", names, programs, func(row, column int) any { return ratioText(trials[column].j(0, ofWorkload(row))) })
	fmt.Fprintf(&r, "\n## J by limit and cycle: %s\n\n", first.trial.Name)
	table(&r, "cycle", first.Limits, trialCycles, func(row, column int) any {
		return ratioText(first.j(0, func(c experiment.Cell) bool { return c.Cost == row && c.Limit == column }))
	})
	return folder{"report.md": r.Bytes(), "cells.csv": trialCells(trials)}
}

// trialCells returns a line for each cell of each trial. Delays, J and the collector's time are in
// us.
func trialCells(trials []*tried) []byte {
	var text bytes.Buffer
	out := csv.NewWriter(&text) // writing to a buffer cannot fail
	head := []string{"trial", "program", "limit", "cycle", "known_j_us"}
	for _, who := range trials[0].Contenders {
		head = append(head, who.String()+"_delay_us", "busy_us", "refusals")
	}
	out.Write(head)
	micros := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
	for _, t := range trials {
		n := len(t.Contenders)
		for i := 0; i < t.Len(); i += n {
			c := t.Cell(i)
			row := []string{t.trial.Name, t.Workloads[c.Workload].Name, t.Limits[c.Limit].String(), t.Costs[c.Cost].Base.String(), micros(t.known(i))}
			for _, o := range t.Outcomes()[i : i+n] {
				row = append(row, micros(o.Delay()), micros(o.GCBusy), strconv.Itoa(o.RefusalCollections))
			}
			out.Write(row)
		}
	}
	out.Flush()
	return text.Bytes()
}
