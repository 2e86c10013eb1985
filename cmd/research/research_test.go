package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

func compiled(t *testing.T, programs ...*trace.Trace) []*sim.Workload {
	t.Helper()
	loads, err := compile(programs)
	if err != nil {
		t.Fatal(err)
	}
	return loads
}

// TestRun judges a program as the command does: a report, the cells behind it, and errors that say what is wrong.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-trials", "plain,limit-5%", "-o", dir, "gp"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"report.md": "| limit-5% |", "cells.csv": "limit-5%,gp,1.25x,"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
	for want, args := range map[string][]string{
		"no trial":         {"-trials", "pear", "gp"},
		"want corpus":      {"gp"},
		"want a seed":      {"corpus", "synthetic:x"},
		"no such file":     {"baselines", "nowhere.arrows"},
		"want three":       {"corpus", "gp"},
		"unknown policy":   {"-trials", "plain", "-policy", "pear", "gp"},
		"not defined: -oo": {"-oo"},
	} {
		if err := run(t.Context(), args, &out, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
