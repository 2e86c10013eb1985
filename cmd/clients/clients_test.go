package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const published = "../../results/2026-11-23-clients"

// Every table that is published is what the runs say.
func TestTablesAreOfTheRuns(t *testing.T) {
	all, err := readAll(published)
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
			t.Errorf("the tables of %s are not those of the runs: results/rebuild.sh clients", name)
		}
	}
	if found < len(tables) {
		t.Errorf("%d tables, want %d at least", found, len(tables))
	}
}

// A client is built and run, and what is written of it is read again. On a machine so busy
// that a client ended before anyone looked at its memory, or before a cycle, it gets more requests.
func TestMeasure(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pack")
	if err := build(program, "pack"); err != nil {
		t.Fatal(err)
	}
	serve := func(way string, requests int) (run, error) {
		return measure(program, way, job{"pack", strconv.Itoa(requests), "2"})
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
		if r.Mean <= 0 || r.Peak < r.Mean || r.Seconds <= 0 || r.P99 < r.P50 || ticks && r.Cycle == 0 {
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
	if err := all.write(dir, ours.file); err != nil {
		t.Fatal(err)
	}
	again, err := readRuns(filepath.Join(dir, ours.file))
	if err != nil || len(again) != len(all) || again[1].Way != "tick:10ms" || again[1].Peak <= 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// Tables of programs that were not run stay as they are.
func TestTablesOfOnePlan(t *testing.T) {
	dir := t.TempDir()
	text := "<!-- clients: memory -->\nold\n<!-- end -->\n<!-- clients: strangers -->\nold\n<!-- end -->\n"
	if err := os.WriteFile(filepath.Join(dir, documents[0]), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := (runs{{Client: "roaring", Way: "plain", Mean: 7}}).write(dir, strangers.file); err != nil {
		t.Fatal(err)
	}
	if err := present(dir); err != nil {
		t.Fatal(err)
	}
	filled, err := os.ReadFile(filepath.Join(dir, documents[0]))
	if s := string(filled); err != nil || strings.Count(s, "\nold\n") != 1 || !strings.Contains(s, "| roaring | 7 / 0;") {
		t.Errorf("%v\n%s", err, s)
	}
}
