package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func newInfo() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "info FILE...",
		Short: "Say what is in a recording",
		Long: `info checks a recording and describes it. For each memory space it prints how much
was allocated, the peaks, and the sizes and lifetimes of objects. It also prints the
waits, their share of the time, and the source of the recording. FILE is a native
trace, a file that replay import reads, or the name of a built-in recording.`,
		Example: `  replay info gpt2
  replay info snapshot.pickle.gz my.arrows
  replay info my.arrows --format json | jq .allocated_bytes`,
		Args: files(1, many, "at least one recording"),
		RunE: func(cmd *cobra.Command, files []string) error {
			out := bufio.NewWriter(cmd.OutOrStdout())
			for i, path := range files {
				t, err := loadValid(path)
				if err != nil {
					return err
				}
				switch {
				case format == "json":
					if err := writeStats(out, t); err != nil {
						return err
					}
				default:
					if i > 0 {
						fmt.Fprintln(out)
					}
					describe(out, t)
				}
			}
			return out.Flush()
		},
	}
	formatFlag(cmd, &format, ", an object to a line for each space", "text", "json")
	return cmd
}

// spacesOf returns the spaces of a trace's allocations, in order.
func spacesOf(t *trace.Trace) []pressure.Space {
	var spaces []pressure.Space
	for _, e := range t.Events {
		if e.Kind == trace.Alloc && !slices.Contains(spaces, e.Space) {
			spaces = append(spaces, e.Space)
		}
	}
	slices.Sort(spaces)
	return spaces
}

func writeStats(w io.Writer, t *trace.Trace) error {
	for _, s := range spacesOf(t) {
		line, err := json.Marshal(struct {
			Trace string `json:"trace"`
			Space string `json:"space"`
			recording.Stats
		}{t.Name, s.String(), recording.StatsOf(t, s)})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", line)
	}
	return nil
}

func describe(w io.Writer, t *trace.Trace) {
	all := recording.StatsOf(t)
	rows := table{
		{t.Name, ""},
		{"events", left + kindCounts(t)},
		{"time", left + chart.Duration(all.Span)},
	}
	if !t.Start.IsZero() {
		rows = append(rows, []string{"start", left + t.Start.UTC().Format(time.RFC3339)})
	}
	rows = append(rows, []string{"waits", left + fmt.Sprintf("%s in all, %s of the time; %s", chart.Duration(all.Wait), chart.Percent(all.WaitShare), durations(all.Waits))})
	early, late := recording.Earliest(t)
	if len(late) > 0 {
		rows = append(rows, []string{"deaths", left + fmt.Sprintf("%s known only from the cycle that found them, which is up to %s late (p50 %s)",
			pressure.Count(len(late)), chart.Duration(late[len(late)-1]), chart.Duration(recording.Percentile(late, 50)))})
	}
	for _, space := range spacesOf(t) {
		s := recording.StatsOf(t, space)
		least := ""
		if len(late) > 0 {
			least = ", in truth at least " + pressure.Bytes(recording.StatsOf(early, space).PeakReachable).String()
		}
		rows = append(rows, table{
			{space.String(), left + fmt.Sprintf("%s allocated in %s objects, %s at the end", pressure.Bytes(s.AllocatedBytes).String(), pressure.Count(s.Allocs), pressure.Count(s.LastObjects))},
			{"  peak", left + peaks(&s) + least},
			{"  sizes", left + fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s", pressure.Bytes(s.Sizes.P50).String(), pressure.Bytes(s.Sizes.P90).String(), pressure.Bytes(s.Sizes.P99).String(), pressure.Bytes(s.Sizes.Max).String())},
			{"  lifetimes", left + durations(s.Lifetimes)},
		}...)
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		rows = append(rows, []string{strings.ReplaceAll(key, "_", " "), left + t.Meta[key]})
	}
	rows.print(w)
}

func peaks(s *recording.Stats) string {
	text := pressure.Bytes(s.PeakReachable).String() + " reachable"
	if s.PeakHeld != s.PeakReachable {
		text += ", " + pressure.Bytes(s.PeakHeld).String() + " with garbage"
	}
	if s.PeakReserved > 0 {
		text += ", " + pressure.Bytes(s.PeakReserved).String() + " reserved"
	}
	return text
}

func durations(q recording.Quantiles) string {
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s", chart.Duration(time.Duration(q.P50)), chart.Duration(time.Duration(q.P90)), chart.Duration(time.Duration(q.P99)), chart.Duration(time.Duration(q.Max)))
}

// kindCounts returns the number of events of each kind.
func kindCounts(t *trace.Trace) string {
	var count [256]int
	for _, e := range t.Events {
		count[e.Kind]++
	}
	var parts []string
	for k, n := range count {
		if n > 0 {
			parts = append(parts, pressure.Count(n)+" "+trace.Kind(k).String())
		}
	}
	return strings.Join(parts, ", ")
}
