package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/interp"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/sim"
)

// Documents with tables in them, relative to the folder of the runs.
var documents = []string{"README.md"}

// present makes the tables and the picture of a folder from its runs.
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

var tables = map[string]func(runs) string{"memory": runs.everyClient, "each": runs.each, "strangers": runs.strangers, "programs": runs.programs, "equal": runs.equal}

// fill returns the text of a document with new tables. A table whose programs have no runs stays as
// it is.
func (all runs) fill(text []byte) (filled []byte, err error) {
	filled = table.ReplaceAllFunc(text, func(old []byte) []byte {
		parts := table.FindSubmatch(old)
		make, ok := tables[string(parts[2])]
		if !ok {
			err = fmt.Errorf("no table %q", parts[2])
			return old
		}
		filled := make(all)
		if filled == "" {
			return old
		}
		return slices.Concat(parts[1], []byte(filled), parts[3])
	})
	return filled, err
}

// of returns the runs of one client in one way.
func (all runs) of(client, way string) (some runs) {
	for _, r := range all {
		if r.client == client && r.way == way {
			some = append(some, r)
		}
	}
	return some
}

// values returns one column of the runs, sorted.
func (all runs) values(column string) []float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = all[i].Report[column]
	}
	slices.Sort(values)
	return values
}

// median returns the median of one column; 0 if there are no runs.
func (all runs) median(column string) float64 {
	v := all.values(column)
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// sum returns the sum of one column.
func (all runs) sum(column string) string {
	return strconv.FormatFloat(floats.Sum(all.values(column)), 'f', 0, 64)
}

// text formats the medians of some columns.
func (all runs) text(format string, columns ...string) string {
	if len(all) == 0 {
		return ""
	}
	var medians []any
	for _, c := range columns {
		medians = append(medians, all.median(c))
	}
	return fmt.Sprintf(format, medians...)
}

// memory returns the medians of mean and peak.
func (all runs) memory() string { return all.text("%.0f / %.0f", "mean_mib", "peak_mib") }

// markdown writes a table whose first column is text. It returns nothing if there are no rows.
func markdown(header []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	rule := append([]string{"---"}, slices.Repeat([]string{"--:"}, len(header)-1)...)
	for _, row := range append([][]string{header, rule}, rows...) {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// The names of clients and ways in the README of the project.
var (
	clientTitles = map[string]string{"query": "a service with SQLite", "matrix": "a service with a large Go heap",
		"imgproxyforgets": "imgproxy, where one handler in ten forgets to free"}
	wayTitles = map[string]string{"plain": "as it is", "auto": "with the import", "close": "closing everything by hand",
		remedy: "with its authors' remedy", idle: "as it is", "import": "with the import"}
)

// everyClient returns the mean and peak MiB of every client in every way.
func (all runs) everyClient() string {
	header := []string{"way"}
	for _, j := range ours.jobs {
		header = append(header, j.program)
	}
	var rows [][]string
	for way := range strings.SplitSeq(ours.ways, ",") {
		row := []string{way}
		for _, j := range ours.jobs {
			row = append(row, all.of(j.program, way).memory())
		}
		if strings.Join(row[1:], "") != "" {
			rows = append(rows, row)
		}
	}
	return markdown(header, rows)
}

// strangers returns the figures of every stranger in every way. The last row is the worst ratio of
// each way over all programs. The ratio is mean memory x processor time, divided by the least
// product of any way.
func (all runs) strangers() string {
	ways := strings.Split(strangers.ways, ",")
	worst := make([]float64, len(ways))
	var rows [][]string
	for _, j := range strangers.jobs {
		row, products, least := []string{j.name()}, make([]float64, len(ways)), math.Inf(1)
		if len(all.of(j.name(), "plain")) == 0 {
			continue
		}
		for i, way := range ways {
			some := all.of(j.name(), way)
			row = append(row, some.text("%.0f / %.0f; %.2f; %.0f (%.0f, %.0f)", "mean_mib", "peak_mib", "cpu_s", "cycles", "forced", "overtaken"))
			if len(some) > 0 {
				products[i] = some.median("mean_mib") * some.median("cpu_s")
				least = min(least, products[i])
			}
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
	return markdown(append([]string{"mean / peak MiB; processor s; cycles (forced, overtaking)"}, ways...), append(rows, last))
}

// equal compares the import with a ticker that has the same peak. The processor time of that ticker
// is interpolated, by the logarithm of the peak, between the measured tickers and the program as it
// is. If all of these have a higher peak, it is that of the lowest.
func (all runs) equal() string {
	var rows [][]string
	for _, j := range slices.Concat(ours.jobs, strangers.jobs) {
		others := map[float64]float64{} // processor time by the logarithm of the peak
		for _, r := range all {
			if r.client == j.name() && (r.way == "plain" || strings.HasPrefix(r.way, "tick:")) {
				way := all.of(r.client, r.way)
				others[math.Log(way.median("peak_mib"))] = way.median("cpu_s")
			}
		}
		auto, peaks, times := all.of(j.name(), "auto"), slices.Sorted(maps.Keys(others)), []float64(nil)
		if len(auto) == 0 || len(peaks) < 2 {
			continue
		}
		for _, peak := range peaks {
			times = append(times, others[peak])
		}
		var line interp.PiecewiseLinear
		_ = line.Fit(peaks, times) // has no errors
		cpu, note := line.Predict(math.Log(auto.median("peak_mib"))), ""
		if least := math.Exp(peaks[0]); auto.median("peak_mib") < least {
			note = fmt.Sprintf(" with %.0f MiB, the least", least)
		}
		rows = append(rows, []string{j.name(), auto.memory(), auto.text("%.2f", "cpu_s"), fmt.Sprintf("%.2f%s", cpu, note), fmt.Sprintf("%.2f", auto.median("cpu_s")/cpu)})
	}
	return markdown([]string{"program", "import: mean / peak MiB", "processor s", "a ticker with that peak: processor s", "import / ticker"}, rows)
}

// each returns one table for every client, with the spread of its rounds.
func (all runs) each() string {
	var b strings.Builder
	for _, j := range ours.jobs {
		var rows [][]string
		for way := range strings.SplitSeq(ours.ways, ",") {
			if some := all.of(j.program, way); len(some) > 0 {
				rows = append(rows, some.row(way))
			}
		}
		if rows != nil {
			fmt.Fprintf(&b, "### %s\n\n", j.program)
			b.WriteString(markdown([]string{"way", "rounds", "mean MiB", "peak MiB", "s", "CPU s", "GC CPU s", "1000 faults", "cycles", "ms of one", "p50 ms", "p99 ms"}, rows) + "\n")
		}
	}
	return b.String()
}

func (all runs) row(way string) []string {
	spread := func(digits int, column string) string {
		v := all.values(column)
		return fmt.Sprintf("%.*f (%.*f..%.*f)", digits, all.median(column), digits, v[0], digits, v[len(v)-1])
	}
	one := ""
	if all.median("cycle_ms") > 0 {
		one = all.text("%.1f", "cycle_ms")
	}
	return []string{
		way, fmt.Sprint(len(all)), spread(0, "mean_mib"), spread(0, "peak_mib"), spread(2, "s"), all.text("%.2f", "cpu_s"), all.text("%.2f", "gc_cpu_s"),
		fmt.Sprintf("%.0f", all.median("faults")/1000), all.text("%.0f", "cycles"), one, all.text("%.1f", "p50_ms"), all.text("%.1f", "p99_ms"),
	}
}

// programs returns the figures of whole programs. Ratios are to the program's first way in the same
// round. 95 % of 2000 resamples of the rounds have their median between the two numbers.
func (all runs) programs() string {
	var rows [][]string
	for _, p := range wholes {
		ways := strings.Split(p.ways, ",")
		for _, r := range all {
			if r.client == p.name && !slices.Contains(ways, r.way) {
				ways = append(ways, r.way)
			}
		}
		var base runs
		for _, way := range ways {
			some := all.of(p.name, way)
			if len(some) == 0 {
				continue
			}
			if base == nil {
				base = some
			}
			row := []string{p.name + " " + way, fmt.Sprint(len(some)), some.memory(), some.text("%.2f", "cpu_s"), some.text("%.1f / %.0f", "p50_ms", "p99_ms"), some.text("%.0f (%.0f)", "cycles", "forced"), some[len(some)-1:].text("%+.0f", "rise_mib"), some.sum("errors")}
			if some.median("p999_ms") > 0 {
				row[4] += some.text(" / %.0f", "p999_ms")
			}
			if some.median("device_mib") > 0 {
				row[2] += some.text(", of the GPU %.0f / %.0f", "device_mib", "device_peak_mib")
			}
			for _, c := range []string{"mean_mib", "cpu_s", "p50_ms", "p99_ms"} {
				row = append(row, some.ratio(base, c))
			}
			rows = append(rows, row)
		}
	}
	return markdown([]string{"program, way", "runs", "mean / peak MiB", "processor s", "p50 / p99 / p99.9 ms", "cycles (forced)", "rise MiB", "errors", "memory", "processor", "p50", "p99"}, rows)
}

// ratio compares the runs with those of the same rounds in another way.
func (all runs) ratio(base runs, column string) string {
	var pairs runs
	for _, r := range all {
		for _, b := range base {
			if b.round == r.round && b.Report[column] > 0 {
				pairs = append(pairs, run{Report: frame.Report{"": r.Report[column] / b.Report[column]}})
			}
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	random := rand.New(rand.NewPCG(3, 0))
	medians := make(runs, 2000)
	for i := range medians {
		some := make(runs, len(pairs))
		for k := range some {
			some[k] = pairs[random.IntN(len(pairs))]
		}
		medians[i].Report = frame.Report{"": some.median("")}
	}
	v := medians.values("")
	return fmt.Sprintf("%.2f (%.2f to %.2f)", pairs.median(""), v[50], v[1949])
}

// draw draws the resident memory of each pictured client over time, if there is a timeline.csv.
func draw(dir string) error {
	rows, err := readCSV(filepath.Join(dir, "timeline.csv"))
	if err != nil || len(rows) == 0 {
		return err
	}
	pictures := map[string][]chart.Curve{}
	for line, row := range rows[1:] {
		i := slices.Index(drawn, row[1])
		ms, err1 := strconv.ParseInt(row[2], 10, 64)
		mib, err2 := strconv.ParseInt(row[3], 10, 64)
		if i < 0 || err1 != nil || err2 != nil {
			return fmt.Errorf("timeline.csv:%d: want a way and two numbers, got %q", line+2, row[1:])
		}
		if pictures[row[0]] == nil {
			pictures[row[0]] = make([]chart.Curve, len(drawn))
		}
		c := &pictures[row[0]][i]
		c.Name = wayTitles[row[1]]
		c.Levels = append(c.Levels, sim.Level{At: time.Duration(ms) * time.Millisecond, Live: mib << 20})
	}
	for client, curves := range pictures {
		curves = slices.DeleteFunc(curves, func(c chart.Curve) bool { return c.Levels == nil })
		var picture bytes.Buffer
		if err := chart.Curves("Resident memory of "+cmp.Or(clientTitles[client], client), "two cores; the first round", curves).Write(&picture, "svg"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, client+".svg"), picture.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}
