package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if err := run([]string{"corpus", "-o", dir, "gp", "mlp", "query"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cards.md": "## query", "cards.csv": "\ngp,PyTorch,", "corpus.svg": "</svg>"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
	for want, args := range map[string][]string{
		"usage":            {"pear", "gp"},
		"no such file":     {"corpus", "nowhere.arrows"},
		"at least three":   {"corpus", "gp"},
		"not defined: -oo": {"corpus", "-oo"},
	} {
		if err := run(args, &out, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
