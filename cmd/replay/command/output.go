package command

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

var writers = map[string]func(io.Writer, *experiment.Grid) error{
	"table": writeTable,
	"json":  writeJSON,
	"csv":   writeCSV,
	"bench": writeBench,
}

// settings is the number of fields of a Result that identify the run; the others are its outcome.
const settings = 6

// fields returns the names and JSON values of a result, in order. The outcome of a run without one
// is null.
func fields(o *experiment.Outcome) (names []string, values [][]byte) {
	v := reflect.ValueOf(o.Result)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		if name == "-" {
			continue
		}
		names = append(names, name)
		text, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			panic(err) // numbers and strings can be marshalled
		}
		if o.Err != nil && i >= settings {
			text = []byte("null")
		}
		values = append(values, text)
	}
	return names, values
}

func writeJSON(w io.Writer, g *experiment.Grid) error { return writeOutcomes(w, g.Outcomes()) }

func writeOutcomes(w io.Writer, outcomes []*experiment.Outcome) error {
	var b bytes.Buffer
	for _, o := range outcomes {
		names, values := fields(o)
		for j := range names {
			fmt.Fprintf(&b, "%c%q:%s", "{,"[min(j, 1)], names[j], values[j])
		}
		b.WriteString("}\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeCSV writes a header and one line for each cell. A null is empty.
func writeCSV(w io.Writer, g *experiment.Grid) error {
	out := csv.NewWriter(w)
	for i, o := range g.Outcomes() {
		names, values := fields(o)
		if i == 0 {
			out.Write(names)
		}
		row := make([]string, len(values))
		for j, text := range values {
			switch {
			case text[0] == '"':
				if err := json.Unmarshal(text, &row[j]); err != nil {
					panic(err)
				}
				row[j] = csvCell(row[j])
			case text[0] != 'n': // null
				row[j] = string(text)
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// benchValues are the values of a line of the benchmark format, in base units.
var benchValues = []struct {
	unit string
	of   func(*sim.Result) float64
}{
	{"elapsed-sec", func(r *sim.Result) float64 { return r.Elapsed.Seconds() }},
	{"pause-sec", func(r *sim.Result) float64 { return r.ExposedPause.Seconds() }},
	{"max-pause-sec", func(r *sim.Result) float64 { return r.MaxPause.Seconds() }},
	{"gc-busy-sec", func(r *sim.Result) float64 { return r.GCBusy.Seconds() }},
	{"collections", func(r *sim.Result) float64 { return float64(r.Collections) }},
	{"refusals", func(r *sim.Result) float64 { return float64(r.RefusalCollections) }},
	{"failures", func(r *sim.Result) float64 { return float64(r.FailedAllocs) }},
	{"peak-B", func(r *sim.Result) float64 { return float64(r.PeakLive) }},
	{"mean-B", func(r *sim.Result) float64 { return r.MeanLive }},
	{"garbage-B", func(r *sim.Result) float64 { return r.MeanGarbage }},
}

// writeBench writes the Go benchmark format, so that benchstat compares two files. A replay is
// exact, so its units say assume=exact. benchstat skips the line of a cell without an outcome.
func writeBench(w io.Writer, g *experiment.Grid) error {
	var b bytes.Buffer
	for _, v := range benchValues {
		fmt.Fprintf(&b, "Unit %s assume=exact\n", v.unit)
	}
	for i, o := range g.Outcomes() {
		name := g.Name(g.Cell(i))
		if o.Err != nil {
			fmt.Fprintf(&b, "%s: %v\n", name, o.Err)
			continue
		}
		fmt.Fprintf(&b, "Benchmark%s 1", name)
		for _, v := range benchValues {
			fmt.Fprintf(&b, " %v %s", v.of(&o.Result), v.unit)
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// csvCell returns text as a cell that no spreadsheet reads as a formula. If it begins with = + -
// @, a tab or the end of a line, it gets an apostrophe.
func csvCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}
