package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

const published = "../../results/2026-11-22-clients"

// Every table that is published is what the runs say.
func TestTablesAreOfTheRuns(t *testing.T) {
	all, err := readRuns(filepath.Join(published, "runs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range documents {
		text, err := os.ReadFile(filepath.Join(published, name))
		if err != nil {
			t.Fatal(err)
		}
		found += len(table.FindAll(text, -1))
		filled, err := all.fill(text)
		if err != nil {
			t.Fatal(err)
		}
		if string(filled) != string(text) {
			t.Errorf("the tables of %s are not those of runs.csv: results/rebuild.sh clients", name)
		}
	}
	if found < len(tables) {
		t.Errorf("%d tables, want %d at least", found, len(tables))
	}
}

// A client is built and run, and what is written of it is read again. On a machine so busy
// that a client ended before anyone looked at its memory, or before a cycle, it gets more requests.
func TestMeasure(t *testing.T) {
	const held = 700 // MiB
	if m, err := pressure.HostMemory(); err == nil && m.Free < 2*held<<20 {
		t.Skipf("%d MiB of memory are free; the client holds %d", m.Free>>20, held)
	}
	program := filepath.Join(t.TempDir(), "nothing")
	if err := build(program, "nothing", ""); err != nil {
		t.Fatal(err)
	}
	serve := func(way string, requests int) (run, error) {
		return measure(program, way, job{program: "nothing", kind: "held", args: "-requests " + strconv.Itoa(requests)}, nil)
	}
	var all runs
	for _, way := range []string{"plain", "tick:10ms", "close+auto"} {
		ticks := way == "tick:10ms"
		r, err := serve(way, 5)
		for more := 20; more < 2000 && (err == errNoReading || err == nil && ticks && r.Cycle == 0); more *= 4 {
			r, err = serve(way, more)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Mean < held || r.Peak < r.Mean || r.Seconds <= 0 || r.P99 < r.P50 || (r.Cycle > 0) != ticks {
			t.Errorf("%s: %+v", way, r)
		}
		all = append(all, r)
	}
	if _, err := serve("gauge", 5); err != errNoWay {
		t.Errorf("a client without a counter: %v", err)
	}
	if _, err := serve("no such way", 5); err == nil {
		t.Error("a way that is not known runs")
	}
	dir := t.TempDir()
	if err := all.write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := readRuns(filepath.Join(dir, "runs.csv"))
	if err != nil || len(again) != len(all) || again[1].Way != "tick:10ms" || again[1].Peak < held {
		t.Errorf("%+v, %v", again, err)
	}
}

// A difference is certain where three rounds on both sides do not overlap, and not where they do.
func TestLess(t *testing.T) {
	of := func(values ...float64) (some runs) {
		for _, v := range values {
			some = append(some, run{Mean: v})
		}
		return some
	}
	for _, c := range []struct {
		a, b runs
		want bool
	}{
		{of(1, 2, 3), of(4, 5, 6), true},
		{of(1, 2, 4), of(3, 5, 6), false},
		{of(4, 5, 6), of(1, 2, 3), false},
		{of(1, 2), of(3, 4), false}, // too few
		{of(1, 2, 3, 4, 7), of(5, 6, 8, 9, 10), true},
	} {
		if got := less(c.a, c.b, mean); got != c.want {
			t.Errorf("%v below %v: %v", c.a.values(mean), c.b.values(mean), got)
		}
	}
}
