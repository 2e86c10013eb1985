package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestServer is the program of TestServe. It logs its requests, and fails at one path.
func TestServer(t *testing.T) {
	if os.Getenv("SERVE") == "" {
		t.Skip("no address to serve")
	}
	t.Fatal(http.ListenAndServe(os.Getenv("SERVE"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(os.Stderr, r.Method, r.URL)
		if r.URL.Path == "/"+os.Getenv("FAIL") {
			w.WriteHeader(http.StatusNotFound)
		}
	})))
}

// TestServe: all ways of a round get the same requests. The variables of a way reach the program. Each
// window has a row, and failed requests are counted.
func TestServe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := bed{bundle: t.TempDir(), out: t.TempDir(), warm: 50 * time.Millisecond, measure: 200 * time.Millisecond, windows: 2, wrap: "env WRAPPED=1"}
	loader := `mkdir $0/lib $0/bin $1/logs && ln -s $2 $0/bin/self-plain && printf '#!/bin/sh\nshift 2\nexec "$@"' >$0/lib/ld-linux-x86-64.so.2 && chmod +x $0/lib/*`
	if text, err := exec.Command("sh", "-c", loader, b.bundle, b.out, self).CombinedOutput(); err != nil {
		t.Fatal(err, string(text))
	}
	p := program{name: "self", args: "-test.run=^TestServer$", env: "SERVE=127.0.0.1:{port}", ready: "/ready", rate: 200}
	p.next = func(r *rand.Rand) request {
		return request{fmt.Sprintf("/%d", r.IntN(1000)), []string{"", "x"}[r.IntN(2)]}
	}
	serve := func(way string) (rows runs, err error) {
		err = b.serve(run{client: "self", way: way}, p, "0", func(r run) { rows = append(rows, r) })
		return rows, err
	}
	var asked []string
	for _, way := range []string{"plain", "plain+SOME=1"} {
		rows, err := serve(way)
		if err != nil && err.Error() != "signal: terminated" { // a server of tests has no other end
			t.Fatal(err)
		}
		for i, r := range rows {
			if f := r.Report; len(rows) != 2 || r.round != i || f["p50_ms"] <= 0 || f["p99_ms"] < f["p50_ms"] || f["longest_ms"] < f["p99_ms"] || f["peak_mib"] < f["mean_mib"] || f["errors"] > 0 {
				t.Errorf("%s: %v", way, rows)
			}
		}
		log, err := os.ReadFile(b.out + "/logs/self-" + way + "-0.log")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for line := range strings.Lines(string(log)) {
			seen[line]++
		}
		delete(seen, "GET /ready\n")
		asked = append(asked, fmt.Sprint(seen))
	}
	if asked[0] != asked[1] || strings.Count(asked[0], "POST") < 5 || strings.Count(asked[0], "GET") < 5 {
		t.Errorf("the ways got other requests:\n%s\n%s", asked[0], asked[1])
	}
	p.next = func(*rand.Rand) request { return request{path: "/1"} }
	if rows, _ := serve("plain+FAIL=1"); len(rows) != 2 || rows[0].Report["errors"] == 0 || rows[1].Report["errors"] == 0 {
		t.Errorf("a run with failed requests: %v", rows)
	}
}

// TestWaysOfOneProgram: a way with a name after @ is for that program, and the others are for all.
func TestWaysOfOneProgram(t *testing.T) {
	const ways = "plain,plain+TICK=1s@pear,import@apple"
	if pear, apple := (program{name: "pear"}).choose(ways), (program{name: "apple"}).choose(ways); pear != "plain,plain+TICK=1s" || apple != "plain,import" {
		t.Errorf("ways %q and %q", pear, apple)
	}
}

// TestRatiosCompareRunsOfTheSameRound: a machine that is slower in one round changes no ratio.
func TestRatiosCompareRunsOfTheSameRound(t *testing.T) {
	var all runs
	for round, speed := range []float64{1, 5, 2} {
		for i, way := range []string{"plain", "import"} {
			all = append(all, run{client: "victoria", way: way, round: round, Report: map[string]float64{"cpu_s": speed * float64(1+i), "mean_mib": 4}})
		}
	}
	if s := all.programs(); !strings.Contains(s, "| victoria import | 3 | 4 / 0 | 4.00 |") || !strings.Contains(s, "| 1.00 (1.00 to 1.00) | 2.00 (2.00 to 2.00) |") {
		t.Error(s)
	}
}
