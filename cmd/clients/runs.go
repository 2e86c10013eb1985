package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

// A run is one run of a client. Its report also has the mean and the peak of the resident memory.
type run struct {
	client, way string
	round       int
	frame.Report
	timeline []reading
}

type runs []run

// columns are the figures of runs.csv, which follow the columns that identify the run.
var columns = []struct {
	name   string
	digits int
}{
	{"mean_mib", 1}, {"peak_mib", 1}, // resident memory while the client worked
	{"s", 3}, {"cpu_s", 3}, {"gc_cpu_s", 3}, {"faults", 0}, {"cycles", 0}, {"forced", 0}, {"overtaken", 0},
	{"first_cycle_ms", 2}, {"cycle_ms", 2}, {"p50_ms", 2}, {"p99_ms", 2}, {"p999_ms", 1}, {"longest_ms", 1},
	{"device_mib", 1}, {"device_peak_mib", 1}, // memory in use on a GPU
	{"errors", 0}, {"rise_mib", 1}, // requests that failed; mean_mib less that of the first window
}

// pictured are the clients whose memory over time is kept and drawn. drawn are their ways, in the
// order of the legend.
var (
	pictured = []string{"query", "imgproxy", "imgproxyforgets", "rqlite", "victoria", "prometheus"}
	drawn    = []string{"plain", remedy, "auto", "close", idle, "import"}
)

// print prints the figures of a run in one line.
func (r run) print() {
	f := r.Report
	fmt.Fprintf(os.Stderr, "%s %d %-16s %5.0f %5.0f MiB %6.2f s %5.2f s of CPU, %.0f cycles, %.0f of them forced, p50 %.1f p99 %.1f p99.9 %.1f ms, %.0f errors\n",
		r.client, r.round, r.way, f["mean_mib"], f["peak_mib"], f["s"], f["cpu_s"], f["cycles"], f["forced"], f["p50_ms"], f["p99_ms"], f["p999_ms"], f["errors"])
}

// write writes every run to a file. It also writes the resident memory of a pictured client to
// timeline.csv: the highest reading in each hundredth of the run.
func (all runs) write(dir, file string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	rows := [][]string{{"client", "way", "round"}}
	lines := [][]string{{"client", "way", "ms", "resident_mib"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
	}
	for _, r := range all {
		row := []string{r.client, r.way, strconv.Itoa(r.round)}
		for _, c := range columns {
			row = append(row, strconv.FormatFloat(r.Report[c.name], 'f', c.digits, 64))
		}
		rows = append(rows, row)
		if !slices.Contains(pictured, r.client) || !slices.Contains(drawn, r.way) {
			continue
		}
		for _, high := range peaks(r.timeline, 100) {
			lines = append(lines, []string{r.client, r.way, strconv.FormatInt(high.at.Milliseconds(), 10), strconv.FormatFloat(high.mib, 'f', 0, 64)})
		}
	}
	if err := writeCSV(filepath.Join(dir, file), rows); err != nil || len(lines) == 1 {
		return err
	}
	return writeCSV(filepath.Join(dir, "timeline.csv"), lines)
}

// peaks returns the highest reading of each of some parts.
func peaks(timeline []reading, parts int) (highest []reading) {
	for part := range slices.Chunk(timeline, max(1, len(timeline)/parts)) {
		highest = append(highest, slices.MaxFunc(part, func(a, b reading) int { return cmp.Compare(a.mib, b.mib) }))
	}
	return highest
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

// readCSV returns no rows if there is no such file.
func readCSV(name string) ([][]string, error) {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return csv.NewReader(file).ReadAll()
}

// readAll reads the runs of all plans from a folder. A plan without a file has no runs.
func readAll(dir string) (all runs, err error) {
	for _, file := range []string{ours.file, strangers.file, programsFile} {
		some, err := readRuns(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// readRuns reads a runs.csv. A column that the file does not have is 0.
func readRuns(name string) (all runs, err error) {
	rows, err := readCSV(name)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if len(rows[0]) < 3 {
		return nil, fmt.Errorf("%s:1: %d columns, want client, way and round first", name, len(rows[0]))
	}
	for line, row := range rows[1:] {
		r := run{client: row[0], way: row[1], Report: frame.Report{}}
		r.round, err = strconv.Atoi(row[2])
		for i := 3; i < len(row) && err == nil; i++ {
			r.Report[rows[0][i]], err = strconv.ParseFloat(row[i], 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line+2, err)
		}
		all = append(all, r)
	}
	return all, nil
}
