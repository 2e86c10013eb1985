package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnchorsAreThere patches the Go that is installed, and the clients of this checkout.
func TestAnchorsAreThere(t *testing.T) {
	root, err := goroot()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := filepath.Abs("../../clients")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		if _, err := patch(root, rule, clients, t.TempDir()); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestMissingAnchor patches a Go whose files have other lines. The error names the file and the
// anchor.
func TestMissingAnchor(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "src/runtime")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		name := filepath.Join(root, "src", e.file)
		if err := os.WriteFile(name, []byte("package runtime\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_, err := patch(root, "low", "", t.TempDir())
	for _, want := range []string{"mgcpacer.go", "heapMarked", "0 times, want once"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestBadArguments gives each command an argument that it refuses.
func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want build":  {},
		"no rule":     {"-rule", "high", "build"},
		"no command":  {"pear"},
		"no runs":     {"tables", "-o", t.TempDir()},
		"want a fold": {"clients"},
	} {
		if err := run(args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestTables makes the table of the results again, from their runs.
func TestTables(t *testing.T) {
	const results = "../../../results/2026-11-26-proposal"
	want, err := os.ReadFile(filepath.Join(results, "clients.md"))
	dir := t.TempDir()
	if err = errors.Join(err, os.CopyFS(dir, os.DirFS(results))); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run([]string{"tables", "-o", dir}, &out)
	if wrote, _ := os.ReadFile(filepath.Join(dir, "clients.md")); err != nil || out.String() != string(want) || string(wrote) != string(want) {
		t.Errorf("%v, now\n%s\nwrote\n%s", err, &out, wrote)
	}
	for text, want := range map[string]string{"client,way\n": "runs.csv:1: want columns", "client,way,mean_mib,cpu_s\na,told,1,2\na,told,x,2\n": "runs.csv:3: ", "a,\"": "runs.csv: parse error"} {
		os.WriteFile(filepath.Join(dir, "runs.csv"), []byte(text), 0o644)
		if err := run([]string{"tables", "-o", dir}, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestPatchedGoBoundsExternalMemory runs a program that maps 600 MiB and reaches 64 of them. Its Go
// heap stays below the heap minimum. With the patch, cycles run and memory stays bounded.
func TestPatchedGoBoundsExternalMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the standard library")
	}
	program := filepath.Join(t.TempDir(), "ring")
	if err := run([]string{"build", "-o", program, "./testdata/ring"}, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	peak := make(map[string]ring)
	for _, tell := range []string{"-tell=false", "-tell"} {
		out, err := exec.Command(program, tell, "-n", "600").Output()
		var r ring
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		peak[tell] = r
	}
	if r := peak["-tell=false"]; r.Marks > 0 || r.Peak != 600 {
		t.Errorf("not reported: %d cycles, peak of %d MiB, want 0 and 600", r.Marks, r.Peak)
	}
	if r := peak["-tell"]; r.Marks < 3 || r.Peak >= 600 {
		t.Errorf("reported: %d cycles, peak of %d MiB", r.Marks, r.Peak)
	}
}

// TestSimulatedRing simulates a program whose finalizers run at once. Each cycle then leaves what
// is reachable, and the next one comes after as much again.
func TestSimulatedRing(t *testing.T) {
	r := ring{Objects: 3000, Took: 3000e6, Cycles: []ringCycle{{Freed: 64, First: 1, Settle: 65, Peak: 128}}}
	cycles, peak, err := simulateRing([]ring{r})
	if err != nil {
		t.Fatal(err)
	}
	if cycles < 45 || cycles > 55 || peak < 126 || peak > 136 {
		t.Errorf("%d cycles, peak of %d MiB, want about 50 and 130", cycles, peak)
	}
}
