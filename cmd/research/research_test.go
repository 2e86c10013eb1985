package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

func compiled(t *testing.T, programs ...*trace.Trace) []*sim.Workload {
	t.Helper()
	loads, err := compile(programs)
	if err != nil {
		t.Fatal(err)
	}
	return loads
}

func twoLoads(t *testing.T) *experiment.Grid {
	return &experiment.Grid{
		Workloads: compiled(t, program("a", 300), program("b", 500)), Limits: []experiment.Limit{{Factor: 1.5}, {Factor: 2}},
		Costs: []sim.Cost{sim.Fixed(time.Millisecond)}, Ladder: sim.Ladder{Factor: 2},
	}
}

func TestHeldOutChoosesOnTheOthers(t *testing.T) {
	all, err := leaveOneOut(t.Context(), *twoLoads(t))
	if err != nil || len(all) != 2*len(families) {
		t.Fatalf("%d choices, %v", len(all), err)
	}
	for _, c := range all {
		if c.Hindsight > c.Ratio || c.Hindsight > c.Default || c.Chosen == "" {
			t.Errorf("%+v", c)
		}
	}
	one := twoLoads(t)
	one.Workloads = one.Workloads[:1]
	if all, err := leaveOneOut(t.Context(), *one); all != nil || err != nil {
		t.Errorf("one workload: %v, %v", all, err)
	}
}

func TestStudy(t *testing.T) {
	who, err := experiment.ParseContenders("cudajl,optimum-overlap")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStudy(t.Context(), compiled(t, program("only", 300)), who)
	if err != nil {
		t.Fatal(err)
	}
	judged := s.Grid.Select(0, s.judged)
	if len(judged) != 6 || experiment.MeanRatio(judged, judged, experiment.Exposed) != 1 {
		t.Errorf("%d judged cells", len(judged))
	}
	if len(s.Bounds) != 18 {
		t.Errorf("%d bounds", len(s.Bounds))
	}
	for _, b := range s.Bounds {
		if b.Known < b.AtLeast {
			t.Errorf("%+v: below what none can beat", b)
		}
	}
	if s.Noisy.Len() != 12 || s.Heaps.Len() != 30 || s.Heaps.At(experiment.Cell{Cost: 4}).Result.Cycle < 100*time.Millisecond {
		t.Error("the other grids are not what they say")
	}
}

// TestRun judges a program as the command does: a report, the cells behind it, and errors that say what is wrong.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-trials", "plain,limit-5%", "-o", dir, "gp"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"report.md": "| limit-5% |", "cells.csv": "limit-5%,gp,1.25x,"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
	for want, args := range map[string][]string{
		"no trial":         {"-trials", "pear", "gp"},
		"want a seed":      {"synthetic:x"},
		"no such file":     {"nowhere.arrows"},
		"unknown policy":   {"-trials", "plain", "-policy", "pear", "gp"},
		"not defined: -oo": {"-oo"},
	} {
		if err := run(t.Context(), args, &out, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
