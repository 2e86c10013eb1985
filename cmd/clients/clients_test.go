package main

import (
	"os"
	"path/filepath"
	"testing"
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

// A client is built and run, and what is written of it is read again.
func TestMeasure(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nothing")
	if err := build(program, "nothing", ""); err != nil {
		t.Fatal(err)
	}
	held := job{program: "nothing", kind: "held", args: "-requests 5"}
	var all runs
	for _, way := range []string{"plain", "tick:10ms", "close+auto"} {
		r, err := measure(program, way, held, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Mean < 700 || r.Peak < r.Mean || r.Seconds <= 0 || r.P99 < r.P50 || (r.Cycle > 0) != (way == "tick:10ms") {
			t.Errorf("%s: %+v", way, r)
		}
		all = append(all, r)
	}
	if _, err := measure(program, "gauge", held, nil); err != errNoWay {
		t.Errorf("a client without a counter: %v", err)
	}
	if _, err := measure(program, "no such way", held, nil); err == nil {
		t.Error("a way that is not known runs")
	}
	dir := t.TempDir()
	if err := all.write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := readRuns(filepath.Join(dir, "runs.csv"))
	if err != nil || len(again) != len(all) || again[1].Way != "tick:10ms" || again[1].Peak < 700 {
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
