package experiment_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A replay equals the reference. testdata/golden.tsv describes its columns.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var w *sim.Workload
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		row := strings.Split(line, "\t")
		switch {
		case line[0] == '#':
			continue
		case len(row) == 8:
			w = compile(t, row[0])
			// The reference reads the times of a Kineto file as float64, whose last place is 1 ns at the
			// sizes that occur; ours reads the decimal.
			span, _ := strconv.ParseInt(row[5], 10, 64)
			if d := int64(w.Span) - span; d < -1 || d > 1 {
				t.Errorf("%s takes %d, want %d", row[0], w.Span, span)
			}
			got := fmt.Sprint(w.Allocs, w.Drops, w.Syncs, w.PeakReachable, w.AllocatedBytes, int64(w.Wait))
			if want := strings.Join(append(row[1:5:5], row[6:]...), " "); got != want {
				t.Fatalf("%s has %s, want %s", row[0], got, want)
			}
			continue
		}
		n++
		c, parsed := experiment.ParseContender(row[0])
		factor, _ := strconv.ParseFloat(row[1], 64)
		cycle, _ := strconv.ParseInt(row[3], 10, 64)
		limit := experiment.Limit{Factor: factor}.Of(w)
		r, err := c.Run(w, sim.Config{Limit: limit, Cost: sim.Fixed(time.Duration(cycle)), Ladder: sim.Ladder{Factor: 2}})
		if err := errors.Join(parsed, err); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s\t%s\t%d\t%d\t%d", r.Policy, row[1], r.LimitBytes, r.Cycle, r.ExposedPause)
		if len(row) > 5 {
			got += fmt.Sprintf("\t%d\t%d\t%d\t%d\t%d\t%d", r.Ladder, r.Collections, r.RefusalCollections, r.FailedAllocs, r.MaxPause, r.PeakLive)
		}
		if got != line {
			t.Errorf("%s:\n got %s\nwant %s", w.Name, got, line)
		}
	}
	if n != 33 {
		t.Errorf("%d runs are compared", n)
	}
}
