package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var published = []string{"2026-11-23-clients", "2026-11-26-programs", "2026-11-27-cost/equal"} // below results

// TestPublishedTablesFollowFromTheRuns makes the tables and pictures of copies again. They stay the
// same.
func TestPublishedTablesFollowFromTheRuns(t *testing.T) {
	found := 0
	for _, folder := range published {
		found += follows(t, filepath.Join("../../results", folder))
	}
	if found < len(tables) {
		t.Errorf("%d tables, want at least %d", found, len(tables))
	}
}

// follows returns the number of tables of a folder.
func follows(t *testing.T, published string) (found int) {
	root := t.TempDir()
	dir := filepath.Join(root, "results", "clients")
	if err := os.CopyFS(dir, os.DirFS(published)); err != nil {
		t.Fatal(err)
	}
	if err := present(dir); err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(published, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(documents)
	for _, p := range pictures {
		names = append(names, filepath.Base(p))
	}
	for _, name := range names {
		want, err1 := os.ReadFile(filepath.Join(published, name))
		got, err2 := os.ReadFile(filepath.Join(dir, name))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		found += len(table.FindAll(want, -1))
		if string(got) != string(want) {
			t.Errorf("%s does not follow from the runs: go run . -tables", name)
		}
	}
	return found
}

// TestMeasure builds and runs a client, and reads its written runs again. On a busy machine the
// client may end before the first reading of its memory, or before a cycle. Then it gets more
// requests.
func TestMeasure(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pack")
	if err := build(program, "pack"); err != nil {
		t.Fatal(err)
	}
	serve := func(way string, requests int) (run, error) {
		return measure(program, way, job{"pack", strconv.Itoa(requests), "2"})
	}
	var all runs
	for _, way := range []string{"plain", "tick:10ms", "own", "close+auto"} {
		ticks := way == "tick:10ms"
		r, err := serve(way, 5)
		for more := 20; more < 2000 && (err == errNoReading || err == nil && ticks && r.Report["cycle_ms"] == 0); more *= 4 {
			r, err = serve(way, more)
		}
		if err != nil {
			t.Fatal(err)
		}
		f := r.Report
		if f["mean_mib"] <= 0 || f["peak_mib"] < f["mean_mib"] || f["s"] <= 0 || f["cpu_s"] <= 0 || f["p50_ms"] <= 0 || f["p99_ms"] < f["p50_ms"] || f["longest_ms"] < f["p99_ms"] ||
			ticks != (f["cycle_ms"] > 0) || f["forced"] > f["cycles"] {
			t.Errorf("%s: %v", way, r)
		}
		all = append(all, r)
	}
	if _, err := serve("gauge", 5); err != errNoWay {
		t.Errorf("a client without a counter: %v", err)
	}
	if _, err := serve("tick:soon", 5); err == nil || errors.Is(err, errNoWay) || !strings.Contains(err.Error(), "soon") {
		t.Errorf("a way with a bad parameter: %v", err)
	}
	dir := t.TempDir()
	if err := all.write(dir, ours.file); err != nil {
		t.Fatal(err)
	}
	again, err := readAll(dir)
	if err != nil || len(again) != len(all) {
		t.Fatalf("%v, %v", again, err)
	}
	for i, r := range again {
		for _, c := range columns {
			if was := all[i].Report[c.name]; r.way != all[i].way || r.client != "pack" || r.Report[c.name] < was-1 || r.Report[c.name] > was+1 {
				t.Errorf("%s %s: %v was written, %v is read", r.way, c.name, was, r.Report[c.name])
			}
		}
	}
}

// TestTablesWithoutRunsStay: tables of programs that were not run stay as they are.
func TestTablesWithoutRunsStay(t *testing.T) {
	all := runs{{client: "roaring", way: "plain", Report: map[string]float64{"mean_mib": 7}}}
	filled, err := all.fill([]byte("<!-- clients: memory -->\nold\n<!-- end -->\n<!-- clients: strangers -->\nold\n<!-- end -->\n"))
	if s := string(filled); err != nil || strings.Count(s, "\nold\n") != 1 || !strings.Contains(s, "| roaring | 7 / 0;") {
		t.Errorf("%v\n%s", err, s)
	}
	if _, err := all.fill([]byte("<!-- clients: pear -->\n<!-- end -->")); err == nil {
		t.Error("a table without a name that is known")
	}
}

// TestTimelineKeepsPeaks: timeline.csv has the highest reading of each hundredth of a run.
func TestTimelineKeepsPeaks(t *testing.T) {
	dir, readings := t.TempDir(), make([]reading, 1000)
	readings[17].mib = 42
	err1 := runs{{client: "query", way: "plain", timeline: readings}}.write(dir, ours.file)
	rows, err2 := readCSV(filepath.Join(dir, "timeline.csv"))
	if err1 != nil || err2 != nil || len(rows) != 101 || rows[2][3] != "42" {
		t.Errorf("%d rows: %v, %v, %v", len(rows), rows, err1, err2)
	}
}
