package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// TestRun writes a page as the command does, whose files have not changed since a digest of each was written here. It checks the errors, too.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run([]string{"corpus", "-o", dir, "gp", "mlp", "query"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cards.md": "dd48efd8", "cards.csv": "cf566b19", "corpus.svg": "10070824"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if got := fmt.Sprintf("%.4x", sha256.Sum256(text)); err != nil || got != want && runtime.GOARCH == "amd64" { // others round otherwise
			t.Errorf("%s is now %s, want %s, %v:\n%s", name, got, want, err, text)
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
