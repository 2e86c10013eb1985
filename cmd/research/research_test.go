package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

func compiled(t *testing.T, programs ...*trace.Trace) []*sim.Workload {
	t.Helper()
	loads, err := compile(programs)
	if err != nil {
		t.Fatal(err)
	}
	return loads
}

// TestAllIsEveryBuiltInRecording loads them between two others.
func TestAllIsEveryBuiltInRecording(t *testing.T) {
	all, err := load([]string{"gp", "all", "mlp"})
	if n := len(samples.All()); err != nil || len(all) != n+2 || all[0].Name != "gp" || all[1].Name != samples.All()[0] || all[n+1].Name != "mlp" {
		t.Errorf("%d recordings, %v", len(all), err)
	}
}

// TestRun writes a page as the command does. It checks the page, and the errors.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"corpus", "-o", dir, "gp", "mlp", "query"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cards.md": "## query", "cards.csv": "\ngp,PyTorch,"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
	for want, args := range map[string][]string{
		"want corpus":      {"pear", "gp"},
		"no such file":     {"baselines", "nowhere.arrows"},
		"at least three":   {"corpus", "gp"},
		"not defined: -oo": {"-oo"},
	} {
		if err := run(t.Context(), args, &out, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// program returns a recording of n objects of 1 MiB, one every ms, each dropped 5 ms later. A wait
// follows every tenth object.
func program(name string, n int) *trace.Trace {
	t := &trace.Trace{Name: name}
	for i := range n {
		now := int64(i) * 1e6
		if i >= 5 {
			t.Record(trace.Event{Time: now, ID: uint64(i - 5), Kind: trace.Drop, Space: pressure.Device(1)})
		}
		t.Record(trace.Event{Time: now, ID: uint64(i), Kind: trace.Alloc, Bytes: 1 << 20, Space: pressure.Device(1)})
		if i%10 == 9 {
			t.Record(trace.Event{Time: now + 1, Kind: trace.Sync, Duration: 5e5})
		}
	}
	return t
}
