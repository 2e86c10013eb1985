package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Documents with tables in them, from the folder of the runs.
var documents = []string{"README.md", "../../README.md"}

// present makes every table and picture of a folder from its runs.
func present(dir string) error {
	all, err := readAll(dir)
	if err != nil {
		return err
	}
	for _, name := range documents {
		name = filepath.Join(dir, name)
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			text, err = all.fill(text)
		}
		if err == nil {
			err = os.WriteFile(name, text, 0o666)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return draw(dir)
}

// A table stands between two comments of a Markdown file.
var table = regexp.MustCompile(`(?s)(<!-- clients: (\w+) -->\n).*?(<!-- end -->)`)

// fill returns the text of a document with its tables made anew.
func (all runs) fill(text []byte) (filled []byte, err error) {
	filled = table.ReplaceAllFunc(text, func(old []byte) []byte {
		parts := table.FindSubmatch(old)
		make, ok := tables[string(parts[2])]
		if !ok {
			err = fmt.Errorf("no table %q", parts[2])
			return old
		}
		filled := make(all)
		if filled == "" { // none of its runs was made
			return old
		}
		return slices.Concat(parts[1], []byte(filled), parts[3])
	})
	return filled, err
}

var tables = map[string]func(runs) string{"lead": runs.lead, "memory": runs.everyClient, "each": runs.each, "strangers": runs.strangers}

// of returns the runs of one client in one way.
func (all runs) of(client, way string) (some runs) {
	for _, r := range all {
		if r.Client == client && r.Way == way {
			some = append(some, r)
		}
	}
	return some
}

func (all runs) values(of func(*run) *float64) []float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = *of(&all[i])
	}
	slices.Sort(values)
	return values
}

func (all runs) median(of func(*run) *float64) float64 {
	v := all.values(of)
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

var (
	mean      = func(r *run) *float64 { return &r.Mean }
	peak      = func(r *run) *float64 { return &r.Peak }
	seconds   = func(r *run) *float64 { return &r.Seconds }
	cpu       = func(r *run) *float64 { return &r.CPU }
	faults    = func(r *run) *float64 { return &r.Faults }
	forced    = func(r *run) *float64 { return &r.Forced }
	overtaken = func(r *run) *float64 { return &r.Overtaken }
	cycles    = func(r *run) *float64 { return &r.Cycles }
	p50       = func(r *run) *float64 { return &r.P50 }
	p99       = func(r *run) *float64 { return &r.P99 }
)

// memory is the medians of mean and peak.
func (all runs) memory() string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f / %.0f", all.median(mean), all.median(peak))
}

// markdown writes a table, whose first columns are text.
func markdown(text int, header []string, rows [][]string) string {
	var b strings.Builder
	rule := make([]string, len(header))
	for i := range rule {
		rule[i] = "---"
		if i >= text {
			rule[i] = "--:"
		}
	}
	for _, row := range append([][]string{header, rule}, rows...) {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// What readers of the README are told of clients and ways.
var (
	clientTitles = map[string]string{"query": "a service with SQLite", "matrix": "a service with a large Go heap"}
	wayTitles    = map[string]string{"plain": "as it is", "auto": "with the import", "close": "closing everything by hand"}
)

// lead is for the README of the project: one program that the import helps, and one that it does not.
func (all runs) lead() string {
	if len(all.of("query", "plain")) == 0 {
		return ""
	}
	var rows [][]string
	for _, r := range []struct{ client, way string }{{"query", "plain"}, {"query", "auto"}, {"query", "close"}, {"matrix", "plain"}, {"matrix", "auto"}} {
		some := all.of(r.client, r.way)
		rows = append(rows, []string{clientTitles[r.client] + ", " + wayTitles[r.way], some.memory(), fmt.Sprintf("%.1f", some.median(cpu)), fmt.Sprintf("%.0f", some.median(p99))})
	}
	return markdown(1, []string{"", "resident memory, mean / peak MiB", "processor time, s", "p99 of a request, ms"}, rows)
}

// everyClient is mean and peak MiB of every client in every way.
func (all runs) everyClient() string {
	header := []string{"way"}
	for _, j := range ours.jobs {
		header = append(header, j.program)
	}
	var rows [][]string
	for way := range strings.SplitSeq(ways, ",") {
		row := []string{way}
		for _, j := range ours.jobs {
			row = append(row, all.of(j.program, way).memory())
		}
		if strings.Join(row[1:], "") != "" {
			rows = append(rows, row)
		}
	}
	if rows == nil {
		return ""
	}
	return markdown(1, header, rows)
}

// strangers is what every stranger takes in every way and, last, the worst of each way: the largest ratio, over all programs, of mean
// memory x processor time to the least that any way takes.
func (all runs) strangers() string {
	ways := strings.Split(strangers.ways, ",")
	header, worst := append([]string{"mean / peak MiB; processor s; cycles (forced, overtaking)"}, ways...), make([]float64, len(ways))
	var rows [][]string
	for _, j := range strangers.jobs {
		row, products := []string{filepath.Base(j.program)}, make([]float64, len(ways))
		if len(all.of(row[0], "plain")) == 0 {
			continue
		}
		least := math.Inf(1)
		for i, way := range ways {
			some := all.of(row[0], way)
			if len(some) == 0 {
				row = append(row, "")
				continue
			}
			row = append(row, fmt.Sprintf("%s; %.2f; %.0f (%.0f, %.0f)", some.memory(), some.median(cpu), some.median(cycles), some.median(forced), some.median(overtaken)))
			products[i] = some.median(mean) * some.median(cpu)
			least = min(least, products[i])
		}
		for i, product := range products {
			worst[i] = max(worst[i], product/least)
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return ""
	}
	last := []string{"worst"}
	for _, ratio := range worst {
		last = append(last, fmt.Sprintf("%.1f", ratio))
	}
	return markdown(1, header, append(rows, last))
}

// each is one table for every client, with the spread of its rounds.
func (all runs) each() string {
	var b strings.Builder
	for _, j := range ours.jobs {
		var rows [][]string
		for way := range strings.SplitSeq(ways, ",") {
			if some := all.of(j.program, way); len(some) > 0 {
				rows = append(rows, some.row(way))
			}
		}
		if rows == nil {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n", j.program)
		b.WriteString(markdown(1, []string{"way", "rounds", "mean MiB", "peak MiB", "s", "CPU s", "GC CPU s", "1000 faults", "cycles", "ms of one", "p50 ms", "p99 ms"}, rows) + "\n")
	}
	return b.String()
}

func (all runs) row(way string) []string {
	spread := func(digits int, of func(*run) *float64) string {
		v := all.values(of)
		return fmt.Sprintf("%.*f (%.*f..%.*f)", digits, all.median(of), digits, v[0], digits, v[len(v)-1])
	}
	one := func(digits int, of func(*run) *float64) string { return fmt.Sprintf("%.*f", digits, all.median(of)) }
	cycle := ""
	if all.median(func(r *run) *float64 { return &r.Cycle }) > 0 {
		cycle = one(1, func(r *run) *float64 { return &r.Cycle })
	}
	return []string{
		way, fmt.Sprint(len(all)), spread(0, mean), spread(0, peak), spread(2, seconds), one(2, cpu),
		one(2, func(r *run) *float64 { return &r.GCCPU }), fmt.Sprintf("%.0f", all.median(faults)/1000), one(0, cycles), cycle, one(1, p50), one(1, p99),
	}
}
