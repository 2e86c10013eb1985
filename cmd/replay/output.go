package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"golang.org/x/perf/benchfmt"

	"github.com/eagergc/eagergc/sim"
)

// writers are the values of --format.
var writers = map[string]func(io.Writer, *comparison) error{
	"table": writeTable,
	"json":  writeJSON,
	"csv":   writeCSV,
	"bench": writeBench,
}

// settings is how many fields of a Result say what was run; the others say
// what came of it.
const settings = 6

// fields returns the names and JSON values of a result, in order. What came of
// a run that has no outcome is null.
func fields(o *sim.Outcome) (names []string, values [][]byte) {
	v := reflect.ValueOf(o.Result)
	for i := range v.NumField() {
		names = append(names, v.Type().Field(i).Tag.Get("json"))
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

// writeJSON writes one object to a line.
func writeJSON(w io.Writer, c *comparison) error {
	var b bytes.Buffer
	for i := range c.outcomes {
		names, values := fields(&c.outcomes[i])
		for j := range names {
			fmt.Fprintf(&b, "%c%q:%s", "{,"[min(j, 1)], names[j], values[j])
		}
		b.WriteString("}\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeCSV writes a header and one line for each cell. What has no value is
// empty.
func writeCSV(w io.Writer, c *comparison) error {
	out := csv.NewWriter(w)
	for i := range c.outcomes {
		names, values := fields(&c.outcomes[i])
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
			case text[0] != 'n': // null
				row[j] = string(text)
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// writeBench writes the Go benchmark format with base units, so that benchstat
// compares two files. A replay is exact, so its units say assume=exact. A cell
// without an outcome becomes a line that benchstat skips.
func writeBench(w io.Writer, c *comparison) error {
	out := benchfmt.NewWriter(w)
	for _, unit := range []string{"elapsed-sec", "pause-sec", "max-pause-sec", "gc-busy-sec", "collections", "refusals", "failures", "peak-B", "mean-B", "garbage-B"} {
		m := benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "assume"}, OrigUnit: unit, Value: "exact"}
		if err := out.Write(&m); err != nil {
			return err
		}
	}
	for i := range c.outcomes {
		o := &c.outcomes[i]
		name := c.benchName(i)
		if o.Err != nil {
			if _, err := fmt.Fprintf(w, "%s: %v\n", name, o.Err); err != nil {
				return err
			}
			continue
		}
		r := benchfmt.Result{Name: benchfmt.Name(name), Iters: 1, Values: benchValues(&o.Result)}
		if err := out.Write(&r); err != nil {
			return err
		}
	}
	return nil
}

// benchName is the name of cell i, without the word Benchmark.
func (c *comparison) benchName(i int) string {
	policy := i % len(c.contenders)
	cost := i / len(c.contenders) % len(c.costs)
	limit := i / len(c.contenders) / len(c.costs) % len(c.limits)
	name := fmt.Sprintf("Replay/trace=%s/policy=%s/limit=%s", c.outcomes[i].Trace, c.contenders[policy], c.limits[limit])
	if g := c.costs[cost].Of(0, 0); c.costs[cost] == sim.Fixed(g) {
		return name + "/cycle=" + g.String() + "/ladder=" + c.ladder.String()
	}
	return name + "/cycle=model/ladder=" + c.ladder.String()
}

func benchValues(r *sim.Result) []benchfmt.Value {
	return []benchfmt.Value{
		{Value: r.Elapsed.Seconds(), Unit: "elapsed-sec"},
		{Value: r.ExposedPause.Seconds(), Unit: "pause-sec"},
		{Value: r.MaxPause.Seconds(), Unit: "max-pause-sec"},
		{Value: r.GCBusy.Seconds(), Unit: "gc-busy-sec"},
		{Value: float64(r.Collections), Unit: "collections"},
		{Value: float64(r.RefusalCollections), Unit: "refusals"},
		{Value: float64(r.FailedAllocs), Unit: "failures"},
		{Value: float64(r.PeakLive), Unit: "peak-B"},
		{Value: r.MeanLive, Unit: "mean-B"},
		{Value: r.MeanGarbage, Unit: "garbage-B"},
	}
}
