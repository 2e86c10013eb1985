package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/montanaflynn/stats"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A ring is the report of a run of testdata/ring. Memory is in objects of 1 MiB.
type ring struct {
	Objects     int
	Took        time.Duration
	Peak, Marks int
	Cycles      []ringCycle

	mark time.Duration // median, of Go's own log
}

// A ringCycle is the time from one mark to the next.
type ringCycle struct {
	Freed  int
	First  time.Duration // from the end of the mark to the first object that was freed
	Settle time.Duration // from the end of the mark to the lowest level
	Peak   int
}

var ringLengths = []int{500, 1000, 2000, 3000, 6000}

// ringReach is the number of objects that the program reaches.
const ringReach = 64

// ringWays are the ways in which the program runs, and the rule of each.
var ringWays = []struct{ name, rule, flag string }{
	{"not reported", "low", "-tell=false"},
	{"level at the mark", "marked", "-tell"},
	{"goal alone", "goal", "-tell"},
	{"lowest level", "low", "-tell"},
	{"freed by hand", "low", "-close"},
}

// measureRing runs the program in each way, and simulates the way with the lowest level.
func measureRing(out string, rounds int, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "ring")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := checkout()
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if err := build(rule, "-o", filepath.Join(dir, rule), filepath.Join(root, "cmd/research/extmem/testdata/ring")); err != nil {
			return err
		}
	}
	text := "way,objects,round,marks,peak_mib,ns_per_object,mark_ns\n"
	table := "| way | objects | cycles | highest MiB | cycles, simulated | middle peak of a cycle, MiB | peak, simulated |\n|---|--:|--:|--:|--:|--:|--:|\n"
	for _, way := range ringWays {
		for _, n := range ringLengths {
			if way.name == "not reported" && n > 3000 {
				continue // takes as many MiB as it has objects
			}
			var runs []ring
			for round := range rounds {
				r, err := runRing(filepath.Join(dir, way.rule), way.flag, n)
				if err != nil {
					return fmt.Errorf("%s, %d objects: %w", way.name, n, err)
				}
				runs = append(runs, r)
				text += fmt.Sprintf("%s,%d,%d,%d,%d,%d,%d\n", way.name, n, round, r.Marks, r.Peak, int(r.Took)/n, r.mark)
			}
			marks, peak := medianOf(runs, func(r ring) float64 { return float64(r.Marks) }), medianOf(runs, func(r ring) float64 { return float64(r.Peak) })
			table += fmt.Sprintf("| %s | %d | %.0f | %.0f |", way.name, n, marks, peak)
			if way.name != "lowest level" {
				table += " | | |\n"
				continue
			}
			cycles, highest, err := simulateRing(runs)
			if err != nil {
				return err
			}
			// A few cycles have far higher peaks, because their finalizers get no processor.
			middle, _ := stats.Median(fullCycles(runs, func(c ringCycle) float64 { return float64(c.Peak) }))
			table += fmt.Sprintf(" %d (%+.0f %%) | %.0f | %d (%+.0f %%) |\n", cycles, 100*(float64(cycles)/marks-1), middle, highest, 100*(float64(highest)/middle-1))
		}
	}
	if out != "" {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		for name, text := range map[string]string{"ring.csv": text, "ring.md": table} {
			if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	_, err = io.WriteString(stdout, table)
	return err
}

func runRing(program, flag string, n int) (r ring, err error) {
	cmd := exec.Command(program, flag, "-n", strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	var marks []float64
	for _, m := range clocks.FindAllStringSubmatch(log.String(), -1) {
		sum := 0.0
		for _, text := range m[1:] {
			x, _ := strconv.ParseFloat(text, 64) // the expression matches numbers alone
			sum += x
		}
		marks = append(marks, sum)
	}
	if len(marks) > 0 {
		m, _ := stats.Median(marks) // cannot fail: there is at least one
		r.mark = time.Duration(m * 1e6)
	}
	return r, json.Unmarshal(out, &r)
}

// clocks finds the three phases of a cycle, in ms.
var clocks = regexp.MustCompile(`: ([0-9.]+)\+([0-9.]+)\+([0-9.]+) ms clock`)

func medianOf(runs []ring, of func(ring) float64) float64 {
	var x []float64
	for _, r := range runs {
		x = append(x, of(r))
	}
	m, _ := stats.Median(x) // cannot fail: there is at least one run
	return m
}

// fullCycles returns a number of each cycle that freed many objects.
func fullCycles(runs []ring, of func(ringCycle) float64) (x []float64) {
	for _, r := range runs {
		for _, c := range r.Cycles {
			if c.Freed > ringReach/2 && c.Settle > 0 {
				x = append(x, of(c))
			}
		}
	}
	return x
}

// simulateRing runs the program under growth:1 in virtual time. The speed of the program, the length
// of a mark, the time until the first finalizer has run and the time for each of the others are
// medians of the runs. Finalizers run one after the other beside the program. The simulator of
// package sim frees all objects of a cycle at once.
func simulateRing(runs []ring) (cycles, peak int, err error) {
	pace := time.Duration(medianOf(runs, func(r ring) float64 { return float64(r.Took) / float64(r.Objects) }))
	mark := time.Duration(medianOf(runs, func(r ring) float64 { return float64(r.mark) }))
	first, err := stats.Median(fullCycles(runs, func(c ringCycle) float64 { return float64(c.First) }))
	if err != nil {
		return 0, 0, fmt.Errorf("no cycle freed enough to be measured: %w", err)
	}
	settle, _ := stats.Median(fullCycles(runs, func(c ringCycle) float64 { return float64(c.Settle-c.First) / float64(c.Freed) }))
	spec, err := policy.Parse("growth:1")
	if err != nil {
		return 0, 0, err
	}
	p := spec.New()
	live, garbage, found, dead := 0, 0, 0, 0 // found by the cycle that runs; dead: with a finalizer to run
	marked := time.Duration(math.MaxInt64)   // when the cycle that runs ends
	next := time.Duration(0)                 // when the next finalizer has run
	for i := range runs[0].Objects {
		now := time.Duration(i) * pace
		for ; dead > 0 && next <= now; next += time.Duration(settle) {
			dead--
			live--
		}
		if now >= marked {
			if dead == 0 {
				next = marked + time.Duration(first)
			}
			dead, found, marked = dead+found, 0, math.MaxInt64
			p.Observe(policy.Cycle{LiveAfter: int64(live) << 20})
		}
		at := policy.Point{Now: now, Request: 1 << 20, Sample: pressure.Sample{Live: int64(live) << 20}, Running: marked != math.MaxInt64, Cycles: uint64(cycles)}
		if p.Decide(at).Action != policy.Skip {
			found, garbage, marked = garbage, 0, now+mark
			cycles++
		}
		live++
		peak = max(peak, live)
		if i >= ringReach {
			garbage++
		}
	}
	return cycles, peak, nil
}
