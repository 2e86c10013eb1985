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
	other := filepath.Join(dir, "other")
	os.WriteFile(other, []byte("eagergc trace 1\nmeta \"source\" \"heaptrack\"\n5 alloc id=1 bytes=9\n6 alloc id=2 bytes=7 space=device0\n7 sync duration=1\n7 alloc id=3 bytes=5\n9 drop id=1 bytes=9\n12 mark\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "bad"), []byte("eagergc trace 1\n0 drop id=1 bytes=1\n"), 0o644)
	var out, log bytes.Buffer
	for _, args := range [][]string{{"-o", dir, "gp", "mlp", "query", "dense", other}, {"array", "query", other}} {
		if err := run(append([]string{"corpus"}, args...), &out, &log); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "printed"), out.Bytes(), 0o644)
	for name, want := range map[string]string{"cards.md": "8ab995d8", "cards.csv": "0dd91263", "corpus.svg": "5dabece4", "printed": "79e666bf"} {
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
		"bad: ":            {"corpus", filepath.Join(dir, "bad"), "gp", "mlp"},
		"not a directory":  {"corpus", "-o", filepath.Join(other, "x"), "gp", "mlp", "query"},
	} {
		if err := run(args, &out, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
