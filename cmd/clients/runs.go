package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

// A run is one run of a client.
type run struct {
	Client, Way string
	Round       int
	Mean, Peak  float64 // resident MiB while it worked
	frame.Report
	timeline []reading // a look each 5 ms
}

type runs []run

// columns of runs.csv after those that name the run.
var columns = []struct {
	name   string
	digits int
	of     func(*run) *float64
}{
	{"mean_mib", 1, func(r *run) *float64 { return &r.Mean }},
	{"peak_mib", 1, func(r *run) *float64 { return &r.Peak }},
	{"s", 3, func(r *run) *float64 { return &r.Seconds }},
	{"cpu_s", 3, func(r *run) *float64 { return &r.CPU }},
	{"gc_cpu_s", 3, func(r *run) *float64 { return &r.GCCPU }},
	{"faults", 0, func(r *run) *float64 { return &r.Faults }},
	{"cycles", 0, func(r *run) *float64 { return &r.Cycles }},
	{"forced", 0, func(r *run) *float64 { return &r.Forced }},
	{"overtaken", 0, func(r *run) *float64 { return &r.Overtaken }},
	{"first_cycle_ms", 2, func(r *run) *float64 { return &r.FirstCycle }},
	{"cycle_ms", 2, func(r *run) *float64 { return &r.Cycle }},
	{"p50_ms", 2, func(r *run) *float64 { return &r.P50 }},
	{"p99_ms", 2, func(r *run) *float64 { return &r.P99 }},
	{"longest_ms", 1, func(r *run) *float64 { return &r.Longest }},
}

// pictured are the clients whose memory over time is kept, and drawn the ways in the order of the picture's key.
var (
	pictured = []string{"query"}
	drawn    = []string{"plain", "auto", "close"}
)

// write leaves every run in a file and, of clients that are pictured, in timeline.csv the resident memory of the first round
// over time: the highest of each hundredth part.
func (all runs) write(dir, file string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	rows := [][]string{{"client", "way", "round"}}
	lines := [][]string{{"client", "way", "ms", "resident_mib"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
	}
	for i := range all {
		r := &all[i]
		row := []string{r.Client, r.Way, strconv.Itoa(r.Round)}
		for _, c := range columns {
			row = append(row, strconv.FormatFloat(*c.of(r), 'f', c.digits, 64))
		}
		rows = append(rows, row)
		if r.Round > 0 || !slices.Contains(pictured, r.Client) || !slices.Contains(drawn, r.Way) {
			continue
		}
		for part := range slices.Chunk(r.timeline, max(1, len(r.timeline)/100)) {
			high := slices.MaxFunc(part, func(a, b reading) int { return int(a.resident - b.resident) })
			lines = append(lines, []string{r.Client, r.Way, strconv.FormatInt(high.at.Milliseconds(), 10), strconv.FormatFloat(high.resident, 'f', 0, 64)})
		}
	}
	if err := writeCSV(filepath.Join(dir, file), rows); err != nil || len(lines) == 1 {
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

func readCSV(name string) ([][]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: no header", name)
	}
	return rows, err
}

// readAll reads the runs of both plans, as far as they were made.
func readAll(dir string) (all runs, err error) {
	for _, p := range []plan{ours, strangers} {
		some, err := readRuns(filepath.Join(dir, p.file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// readRuns reads a runs.csv. A column that an older one does not have is 0.
func readRuns(name string) (all runs, err error) {
	rows, err := readCSV(name)
	if err != nil {
		return nil, err
	}
	if len(rows[0]) < 3 {
		return nil, fmt.Errorf("%s:1: %d columns, want client, way and round first", name, len(rows[0]))
	}
	for line, row := range rows[1:] {
		r := run{Client: row[0], Way: row[1]}
		r.Round, err = strconv.Atoi(row[2])
		for _, c := range columns {
			if i := slices.Index(rows[0], c.name); i >= 0 && err == nil {
				*c.of(&r), err = strconv.ParseFloat(row[i], 64)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line+2, err)
		}
		all = append(all, r)
	}
	return all, nil
}
