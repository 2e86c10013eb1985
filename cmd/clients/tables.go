package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Documents with tables in them, from the folder of the runs.
var documents = []string{"README.md", "../../README.md", "../../gc/EMBEDDING.md"}

// present makes every table and picture of a folder from its runs.
func present(dir string) error {
	all, err := readRuns(filepath.Join(dir, "runs.csv"))
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
		return slices.Concat(parts[1], []byte(make(all)), parts[3])
	})
	return filled, err
}

var tables = map[string]func(runs) string{
	"lead": runs.lead, "pick": runs.pick, "all": runs.everyClient, "each": runs.each,
}

// of returns the runs of one client under one load in one way.
func (all runs) of(client, load, way string) (some runs) {
	for _, r := range all {
		if r.Client == client && r.Load == load && r.Way == way {
			some = append(some, r)
		}
	}
	return some
}

// names returns what f says of runs, each once, in the order of the plan.
func (all runs) names(f func(run) string) (names []string) {
	for _, r := range all {
		if n := f(r); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	order := strings.Split(allWays, ",")
	for _, c := range clients {
		order = append(order, c.program)
	}
	order = append(order, "", "tenfold", "idle")
	slices.SortStableFunc(names, func(a, b string) int { return place(order, a) - place(order, b) })
	return names
}

func place(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
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
	mean    = func(r *run) *float64 { return &r.Mean }
	peak    = func(r *run) *float64 { return &r.Peak }
	seconds = func(r *run) *float64 { return &r.Seconds }
	cpu     = func(r *run) *float64 { return &r.CPU }
	faults  = func(r *run) *float64 { return &r.Faults }
	cycles  = func(r *run) *float64 { return &r.Cycles }
	p50     = func(r *run) *float64 { return &r.P50 }
	p99     = func(r *run) *float64 { return &r.P99 }
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

// titles of the table that the project's README leads with.
var titles = []struct{ client, title string }{
	{"query", "SQLite"}, {"pack", "zstd"}, {"arrow", "Arrow"}, {"wasm", "WebAssembly"}, {"thumb", "libvips"}, {"lru", "LRU cache"}, {"matrix", "large Go heap"},
}

// lead is for the README of the project, pick for the guide.
func (all runs) lead() string { return all.choice("results/2026-11-22-clients/README.md") }
func (all runs) pick() string { return all.choice("../results/2026-11-22-clients/README.md") }

// choice is mean and peak MiB of the clients in the ways that a reader chooses from.
func (all runs) choice(link string) string {
	header := []string{"[resident memory](" + link + "), mean / peak MiB"}
	for _, t := range titles {
		header = append(header, t.title)
	}
	var rows [][]string
	for _, w := range []struct{ way, title string }{
		{"plain", "as it is"}, {"memlimit:512", "`GOMEMLIMIT=512MiB`"}, {"auto", "**the import**"},
		{"gauge", "a gauge of the library's own counter (`gc.Watch`)"}, {"own", "`gc.Own` for each object"},
		{"tick:100ms", "`runtime.GC()` each 100 ms"}, {"close", "`Close` everywhere"},
	} {
		row := []string{w.title}
		for _, t := range titles {
			row = append(row, all.of(t.client, "", w.way).memory())
		}
		rows = append(rows, row)
	}
	return markdown(1, header, rows)
}

// everyClient is mean and peak MiB of every client in every way, of those that were run.
func (all runs) everyClient() string {
	var ran runs
	for _, r := range all {
		if r.Load == "" && slices.ContainsFunc(clients, func(c client) bool { return c.program == r.Client }) {
			ran = append(ran, r)
		}
	}
	programs := ran.names(func(r run) string { return r.Client })
	var rows [][]string
	for _, way := range ran.names(func(r run) string { return r.Way }) {
		row := []string{way}
		for _, program := range programs {
			row = append(row, ran.of(program, "", way).memory())
		}
		rows = append(rows, row)
	}
	return markdown(1, append([]string{"way"}, programs...), rows)
}

var loadTitles = map[string]string{"": "", "tenfold": ", ten times as many at once", "idle": ", with four idle phases of 400 ms"}

// each is one table for every client and load, with the spread of its rounds.
func (all runs) each() string {
	var b strings.Builder
	for _, load := range all.names(func(r run) string { return r.Load }) {
		for _, client := range all.names(func(r run) string { return r.Client }) {
			var rows [][]string
			for _, way := range all.names(func(r run) string { return r.Way }) {
				if some := all.of(client, load, way); len(some) > 0 {
					rows = append(rows, some.row(way))
				}
			}
			if rows == nil {
				continue
			}
			fmt.Fprintf(&b, "### %s%s\n\n", client, loadTitles[load])
			b.WriteString(markdown(1, []string{"way", "rounds", "mean MiB", "peak MiB", "s", "CPU s", "GC CPU s", "1000 faults", "cycles", "ms of one", "p50 ms", "p99 ms"}, rows) + "\n")
		}
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
