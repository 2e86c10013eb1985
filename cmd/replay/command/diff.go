package command

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/montanaflynn/stats"
	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
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
replay info reads, or folders with several recordings of a program each.

Of several recordings each figure is the median. From five on each side, the brackets
have 95 of 100 changes that come out if recordings are drawn anew from those that there
are. Of one on each side, 20 windows of time are drawn, which say something of rates
only, and less: another run of the program may differ by more. Where the brackets hold 0, no
difference is seen.`,
		Example: `  replay diff before.arrows after.arrows
  replay diff before/ after/
  replay diff mlp gpt2 --format json`,
		Args: files(2, 2, "two recordings"),
		RunE: func(cmd *cobra.Command, files []string) (err error) {
			var d difference
			for i, path := range files {
				if d[i], err = describeSide(path); err != nil {
					return err
				}
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

// A side is one of the two of a difference.
type side struct {
	name    string
	space   pressure.Space
	runs    []recording.Stats // of each recording
	windows []recording.Stats // of the parts of the recording, if it is one
	curve   []sim.Level       // of the first: reachable bytes after each change; time from the first event
}

type difference [2]side

// describeSide reads a recording, or those of a folder.
func describeSide(path string) (s side, err error) {
	paths := []string{path}
	if files, err := os.ReadDir(path); err == nil {
		paths = nil
		for _, f := range files {
			paths = append(paths, filepath.Join(path, f.Name()))
		}
		if len(paths) == 0 {
			return s, fmt.Errorf("%s: no recording is there", path)
		}
	}
	for i, path := range paths {
		t, err := loadValid(path)
		if err != nil {
			return s, err
		}
		if i == 0 {
			s.name, s.space = t.Name, sim.SpaceOf(t)
			s.follow(t)
			if len(paths) == 1 {
				s.cut(t)
			}
		}
		s.runs = append(s.runs, recording.StatsOf(t, s.space))
	}
	if len(paths) > 1 {
		s.name = fmt.Sprintf("%s (%d)", filepath.Base(path), len(paths))
	}
	return s, nil
}

const (
	sampleWindows = 20 // into how many windows one recording is cut
	leastSample   = 5  // of how many values at least something is said of their change
)

func (s *side) follow(t *trace.Trace) {
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
}

// cut makes the windows, with their rates.
func (s *side) cut(t *trace.Trace) {
	if len(t.Events) == 0 {
		return
	}
	var parts [sampleWindows]trace.Trace
	end := float64(t.Events[len(t.Events)-1].Time - t.Events[0].Time + 1)
	for _, e := range t.Events {
		parts[int(sampleWindows*float64(e.Time-t.Events[0].Time)/end)].Record(e)
	}
	for i := range parts {
		w, long := recording.StatsOf(&parts[i], s.space), end/1e9/sampleWindows
		w.AllocRate, w.ByteRate, w.WaitShare = float64(w.Allocs)/long, float64(w.AllocatedBytes)/long, w.Wait.Seconds()/long
		s.windows = append(s.windows, w)
	}
}

func (f *measure) all(from []recording.Stats) (values stats.Float64Data) {
	for i := range from {
		values = append(values, f.of(&from[i]))
	}
	return values
}

// value is a measure's median over the recordings.
func (s *side) value(f *measure) float64 {
	m, _ := f.all(s.runs).Median() // there is one at least
	return m
}

// interval is where 95 of 100 changes lie, as shares, if the values of both sides are drawn anew; nil where there
// are too few. A change is that of the median of recordings, or of the mean of windows.
func (d *difference) interval(f *measure) []float64 {
	a, b, middle := f.all(d[0].runs), f.all(d[1].runs), stats.Float64Data.Median
	if d[0].windows != nil && d[1].windows != nil && f.rate {
		a, b, middle = f.all(d[0].windows), f.all(d[1].windows), stats.Float64Data.Mean
	}
	if len(a) < leastSample || len(b) < leastSample {
		return nil
	}
	source := rand.New(rand.NewPCG(1, 1))
	draw := func(values stats.Float64Data) float64 {
		some := make(stats.Float64Data, len(values))
		for i := range some {
			some[i] = values[source.IntN(len(values))]
		}
		m, _ := middle(some)
		return m
	}
	var changes stats.Float64Data
	for range 1000 {
		was := draw(a)
		if was == 0 {
			return nil
		}
		changes = append(changes, draw(b)/was-1)
	}
	low, _ := changes.PercentileNearestRank(2.5)
	high, _ := changes.PercentileNearestRank(97.5)
	return []float64{low, high}
}

// A measure is one line of a difference.
type measure struct {
	name, unit string
	of         func(*recording.Stats) float64
	rate       bool // the mean of its windows is that of a recording
}

var measures = []measure{
	{"time", "ns", func(s *recording.Stats) float64 { return float64(s.Span) }, false},
	{"peak reachable", "B", func(s *recording.Stats) float64 { return float64(s.PeakReachable) }, false},
	{"peak held", "B", func(s *recording.Stats) float64 { return float64(s.PeakHeld) }, false},
	{"peak reserved", "B", func(s *recording.Stats) float64 { return float64(s.PeakReserved) }, false},
	{"left at the end", "B", func(s *recording.Stats) float64 { return float64(s.LastBytes) }, false},
	{"allocations", "", func(s *recording.Stats) float64 { return float64(s.Allocs) }, false},
	{"allocated", "B", func(s *recording.Stats) float64 { return float64(s.AllocatedBytes) }, false},
	{"allocations/s", "1/s", func(s *recording.Stats) float64 { return s.AllocRate }, true},
	{"allocated/s", "B/s", func(s *recording.Stats) float64 { return s.ByteRate }, true},
	{"size p50", "B", func(s *recording.Stats) float64 { return float64(s.Sizes.P50) }, false},
	{"size p99", "B", func(s *recording.Stats) float64 { return float64(s.Sizes.P99) }, false},
	{"lifetime p50", "ns", func(s *recording.Stats) float64 { return float64(s.Lifetimes.P50) }, false},
	{"lifetime p90", "ns", func(s *recording.Stats) float64 { return float64(s.Lifetimes.P90) }, false},
	{"lifetime p99", "ns", func(s *recording.Stats) float64 { return float64(s.Lifetimes.P99) }, false},
	{"waits", "", func(s *recording.Stats) float64 { return float64(s.Syncs) }, false},
	{"waited", "ns", func(s *recording.Stats) float64 { return float64(s.Wait) }, false},
	{"share waiting", "ratio", func(s *recording.Stats) float64 { return s.WaitShare }, true},
	{"wait p50", "ns", func(s *recording.Stats) float64 { return float64(s.Waits.P50) }, false},
	{"wait p99", "ns", func(s *recording.Stats) float64 { return float64(s.Waits.P99) }, false},
	{"cycles", "", func(s *recording.Stats) float64 { return float64(s.Cycles) }, false},
	{"time in cycles", "ns", func(s *recording.Stats) float64 { return float64(s.CycleTime) }, false},
	{"refusals", "", func(s *recording.Stats) float64 { return float64(s.Refusals) }, false},
}

// print writes the curves, then a line for each figure that either has.
func (d *difference) print(w io.Writer) {
	end := max(d[0].runs[0].Span, d[1].runs[0].Span)
	top := max(d[0].runs[0].PeakReachable, d[1].runs[0].PeakReachable)
	fmt.Fprintf(w, "  reachable bytes: a full column is %s, the axis is %s long\n", pressure.Bytes(top).String(), chart.Duration(end))
	curves := table{}
	for _, s := range d {
		curves = append(curves, []string{s.name, left + s.space.String(), left + spark(s.curve, s.runs[0].Span, end, top)})
	}
	curves.print(w)
	fmt.Fprintln(w)
	g := table{{"", d[0].name, d[1].name, "change"}}
	for _, f := range measures {
		if a, b := d[0].value(&f), d[1].value(&f); a != 0 || b != 0 {
			g = append(g, []string{f.name, quantity(a, f.unit), quantity(b, f.unit), d.change(&f, a, b)})
		}
	}
	g.print(w)
}

// change says how far b is from a, and how sure that is.
func (d *difference) change(f *measure, a, b float64) string {
	text := changeText(a, b)
	if in := d.interval(f); in != nil && in[0] != in[1] {
		if in[0] <= 0 && in[1] >= 0 {
			text = "no difference seen"
		}
		text += fmt.Sprintf(" (%+.1f%% to %+.1f%%)", 100*in[0], 100*in[1])
	}
	return text
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
		return "x " + chart.Number(b/a)
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

func (d *difference) writeJSON(w io.Writer) error {
	for _, f := range measures {
		line, err := json.Marshal(struct {
			Figure string     `json:"figure"`
			Unit   string     `json:"unit,omitempty"`
			Traces [2]string  `json:"traces"`
			Spaces [2]string  `json:"spaces"`
			Values [2]float64 `json:"values"`
			Change []float64  `json:"change_interval,omitempty"` // shares
		}{
			f.name, f.unit, [2]string{d[0].name, d[1].name}, [2]string{d[0].space.String(), d[1].space.String()},
			[2]float64{d[0].value(&f), d[1].value(&f)}, d.interval(&f),
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
