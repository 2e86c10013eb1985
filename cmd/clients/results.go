package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
)

type results []result

// group is the runs of one client in one way.
func (all results) groups() (groups []results) {
	index := map[[2]string]int{}
	for _, r := range all {
		key := [2]string{r.Client, r.Way}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

func (all results) median(f func(result) float64) float64 {
	values := make([]float64, len(all))
	for i, r := range all {
		values[i] = f(r)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// columns of table.md, each a median over the rounds.
var columns = []struct {
	name   string
	digits int
	of     func(result) float64
}{
	{"mean MiB", 0, func(r result) float64 { return r.mean }},
	{"peak MiB", 0, func(r result) float64 { return r.peak }},
	{"s", 2, func(r result) float64 { return r.Seconds }},
	{"requests/s", 0, func(r result) float64 { return float64(r.Requests) / r.Seconds }},
	{"p50 ms", 1, func(r result) float64 { return r.P50 }},
	{"p99 ms", 1, func(r result) float64 { return r.P99 }},
	{"longest ms", 0, func(r result) float64 { return r.Longest }},
	{"CPU s", 2, func(r result) float64 { return r.CPU }},
	{"GC CPU s", 2, func(r result) float64 { return r.GCCPU }},
	{"cycles", 0, func(r result) float64 { return float64(r.Cycles) }},
}

// table prints medians, in Markdown.
func (all results) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	defer w.Flush()
	fmt.Fprint(w, "| client\t| way\t")
	for _, c := range columns {
		fmt.Fprintf(w, "| %s\t", c.name)
	}
	fmt.Fprint(w, "|\n|---\t|---\t")
	for range columns {
		fmt.Fprint(w, "|--:\t")
	}
	fmt.Fprintln(w, "|")
	for _, g := range all.groups() {
		fmt.Fprintf(w, "| %s\t| %s\t", g[0].Client, g[0].Way)
		for _, c := range columns {
			fmt.Fprintf(w, "| %.*f\t", c.digits, g.median(c.of))
		}
		fmt.Fprintln(w, "|")
	}
}

// write leaves every run in runs.csv, the first round's resident memory over time in
// timeline.csv, each tenth look, and the medians in table.md.
func (all results) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	runs := [][]string{{"client", "way", "round"}}
	lines := [][]string{{"client", "way", "ms", "resident_mib"}}
	for _, c := range columns {
		runs[0] = append(runs[0], c.name)
	}
	for _, r := range all {
		row := []string{r.Client, r.Way, strconv.Itoa(r.Round)}
		for _, c := range columns {
			row = append(row, strconv.FormatFloat(c.of(r), 'f', c.digits, 64))
		}
		runs = append(runs, row)
		if r.Round > 0 {
			continue
		}
		step := max(1, len(r.timeline)/100)
		for i := 0; i < len(r.timeline); i += step {
			high := slices.MaxFunc(r.timeline[i:min(i+step, len(r.timeline))], func(a, b reading) int { return int(a.resident - b.resident) })
			lines = append(lines, []string{r.Client, r.Way, strconv.FormatInt(high.at.Milliseconds(), 10), strconv.FormatFloat(high.resident, 'f', 0, 64)})
		}
	}
	table, err := os.Create(filepath.Join(dir, "table.md"))
	if err != nil {
		return err
	}
	all.table(table)
	if err := table.Close(); err != nil {
		return err
	}
	if err := writeCSV(filepath.Join(dir, "runs.csv"), runs); err != nil {
		return err
	}
	return writeCSV(filepath.Join(dir, "timeline.csv"), lines)
}

func writeCSV(name string, rows [][]string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = csv.NewWriter(file).WriteAll(rows)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
