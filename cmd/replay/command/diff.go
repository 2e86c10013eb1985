package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func newDiff() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Say what changed from one recording to another",
		Long: `diff sets two recordings side by side: reachable bytes on one time axis and one
scale, then peaks, rates, sizes, lifetimes, waits and cycles, and what changed.
It compares the memory space in which each allocates most. A and B are what
replay info reads.`,
		Example: `  replay diff before.arrows after.arrows
  replay diff mlp gpt2 --format json`,
		Args: files(2, 2, "two recordings"),
		RunE: func(cmd *cobra.Command, files []string) error {
			var d difference
			for i, path := range files {
				t, err := loadValid(path)
				if err != nil {
					return err
				}
				d[i] = describeSide(t)
			}
			out := printerFor(cmd.OutOrStdout(), format)
			if format == "json" {
				if err := d.writeJSON(out); err != nil {
					return err
				}
			} else {
				d.print(out)
			}
			return out.err
		},
	}
	formatFlag(cmd, &format, ", an object to a line for each figure", "text", "json")
	return cmd
}

// A side is one of the two recordings of a difference.
type side struct {
	name  string
	space pressure.Space
	stats recording.Stats
	curve []sim.Level // reachable bytes after each change; time from the first event
}

type difference [2]side

func describeSide(t *trace.Trace) side {
	s := side{name: t.Name, space: sim.SpaceOf(t)}
	s.stats = recording.StatsOf(t, s.space)
	size := make(map[uint64]int64) // of reachable objects
	sum := int64(0)
	for _, e := range t.Events {
		if e.Space != s.space || e.Kind > trace.Free {
			continue
		}
		if e.Kind == trace.Alloc {
			size[e.ID] = e.Bytes
			sum += e.Bytes
		} else {
			sum -= size[e.ID]
			delete(size, e.ID)
		}
		s.curve = append(s.curve, sim.Level{At: time.Duration(e.Time - t.Events[0].Time), Live: sum})
	}
	return s
}

// A measure is one line of a difference.
type measure struct {
	name, unit string
	of         func(*recording.Stats) float64
}

// measures are what is compared, in order.
var measures = []measure{
	{"time", "ns", func(s *recording.Stats) float64 { return float64(s.Span) }},
	{"peak reachable", "B", func(s *recording.Stats) float64 { return float64(s.PeakReachable) }},
	{"peak held", "B", func(s *recording.Stats) float64 { return float64(s.PeakHeld) }},
	{"peak reserved", "B", func(s *recording.Stats) float64 { return float64(s.PeakReserved) }},
	{"left at the end", "B", func(s *recording.Stats) float64 { return float64(s.LastBytes) }},
	{"allocations", "", func(s *recording.Stats) float64 { return float64(s.Allocs) }},
	{"allocated", "B", func(s *recording.Stats) float64 { return float64(s.AllocatedBytes) }},
	{"allocations/s", "1/s", func(s *recording.Stats) float64 { return s.AllocRate }},
	{"allocated/s", "B/s", func(s *recording.Stats) float64 { return s.ByteRate }},
	{"size p50", "B", func(s *recording.Stats) float64 { return float64(s.Sizes.P50) }},
	{"size p99", "B", func(s *recording.Stats) float64 { return float64(s.Sizes.P99) }},
	{"lifetime p50", "ns", func(s *recording.Stats) float64 { return float64(s.Lifetimes.P50) }},
	{"lifetime p90", "ns", func(s *recording.Stats) float64 { return float64(s.Lifetimes.P90) }},
	{"lifetime p99", "ns", func(s *recording.Stats) float64 { return float64(s.Lifetimes.P99) }},
	{"waits", "", func(s *recording.Stats) float64 { return float64(s.Syncs) }},
	{"waited", "ns", func(s *recording.Stats) float64 { return float64(s.Wait) }},
	{"share waiting", "ratio", func(s *recording.Stats) float64 { return s.WaitShare }},
	{"wait p50", "ns", func(s *recording.Stats) float64 { return float64(s.Waits.P50) }},
	{"wait p99", "ns", func(s *recording.Stats) float64 { return float64(s.Waits.P99) }},
	{"cycles", "", func(s *recording.Stats) float64 { return float64(s.Cycles) }},
	{"time in cycles", "ns", func(s *recording.Stats) float64 { return float64(s.CycleTime) }},
	{"refusals", "", func(s *recording.Stats) float64 { return float64(s.Refusals) }},
}

// print writes the curves, then a line for each figure that either has.
func (d *difference) print(w io.Writer) {
	end := max(d[0].stats.Span, d[1].stats.Span)
	top := max(d[0].stats.PeakReachable, d[1].stats.PeakReachable)
	fmt.Fprintf(w, "  reachable bytes: a full column is %s, the axis is %s long\n", pressure.Bytes(top).String(), pressure.Duration(end))
	curves := table{}
	for _, s := range d {
		curves = append(curves, []string{s.name, left + s.space.String(), left + spark(s.curve, s.stats.Span, end, top)})
	}
	curves.print(w)
	fmt.Fprintln(w)
	g := table{{"", d[0].name, d[1].name, "change"}}
	for _, f := range measures {
		a, b := f.of(&d[0].stats), f.of(&d[1].stats)
		if a != 0 || b != 0 {
			g = append(g, []string{f.name, quantity(a, f.unit), quantity(b, f.unit), changeText(a, b)})
		}
	}
	g.print(w)
}

// changeText says how far b is from a: in percent, as a factor where it is
// more than double, and "~" below half a percent of either.
func changeText(a, b float64) string {
	switch {
	case a == b:
		return "="
	case a == 0:
		return "new"
	case b == 0:
		return "gone"
	case b >= 2*a:
		return "x " + pressure.Number(b/a)
	}
	change := b/a - 1
	if change > -0.005 && change < 0.005 {
		return "~"
	}
	return fmt.Sprintf("%+.1f%%", 100*change)
}

const sparkColumns = 60

// spark draws a curve: for each column the most bytes in it, an eighth of a
// column high at least where there are any. What is after span is blank.
func spark(curve []sim.Level, span, end time.Duration, top int64) string {
	marks := []rune("▁▂▃▄▅▆▇█")
	var out strings.Builder
	i, last := 0, int64(0)
	for k := range sparkColumns {
		from, to := end*time.Duration(k)/sparkColumns, end*time.Duration(k+1)/sparkColumns
		most := last
		for ; i < len(curve) && (curve[i].At < to || k == sparkColumns-1); i++ {
			last = curve[i].Live
			most = max(most, last)
		}
		switch {
		case from > span:
			return out.String()
		case most == 0 || top == 0:
			out.WriteByte(' ')
		default:
			out.WriteRune(marks[min(int(8*float64(most)/float64(top)), 7)])
		}
	}
	return out.String()
}

// writeJSON writes a line for each figure.
func (d *difference) writeJSON(w io.Writer) error {
	for _, f := range measures {
		line, err := json.Marshal(struct {
			Figure string     `json:"figure"`
			Unit   string     `json:"unit,omitempty"`
			Traces [2]string  `json:"traces"`
			Spaces [2]string  `json:"spaces"`
			Values [2]float64 `json:"values"`
		}{
			f.name, f.unit, [2]string{d[0].name, d[1].name}, [2]string{d[0].space.String(), d[1].space.String()},
			[2]float64{f.of(&d[0].stats), f.of(&d[1].stats)},
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(slices.Concat(line, []byte("\n"))); err != nil {
			return err
		}
	}
	return nil
}
