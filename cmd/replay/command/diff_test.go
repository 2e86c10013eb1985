package command

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// recordings writes n recordings of a program into a folder: objects of some 1 MiB x scale, no two runs alike.
func recordings(t *testing.T, n int, scale float64, seed uint64) string {
	t.Helper()
	dir := t.TempDir()
	draw := rand.New(rand.NewPCG(seed, 1))
	for r := range n {
		run, now := &trace.Trace{Name: "program"}, int64(0)
		for i := range 400 {
			now += 1e6 + draw.Int64N(1e6)
			bytes := int64(scale * float64(1<<20+draw.IntN(1<<16)))
			run.Record(trace.Event{Time: now, ID: uint64(i), Kind: trace.Alloc, Bytes: bytes, Space: pressure.Host})
			run.Record(trace.Event{Time: now + 1000, ID: uint64(i), Kind: trace.Drop, Bytes: bytes, Space: pressure.Host})
		}
		if err := trace.WriteFile(filepath.Join(dir, strconv.Itoa(r)+".arrows"), run); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func diffOf(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), append([]string{"diff"}, args...), &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	return regexp.MustCompile(` +`).ReplaceAllString(stdout.String(), " ")
}

// Runs of one program do not differ; what takes a twentieth more is found, and nothing else is.
func TestDiffOfSeveralRuns(t *testing.T) {
	before, again, larger := recordings(t, 8, 1, 1), recordings(t, 8, 1, 2), recordings(t, 8, 1.05, 3)
	same := diffOf(t, before, again)
	for _, name := range []string{"time", "allocated", "allocated/s", "size p50"} {
		if !regexp.MustCompile(` ` + name + ` .* no difference seen \(`).MatchString(same) {
			t.Errorf("%s:\n%s", name, same)
		}
	}
	changed := diffOf(t, before, larger)
	if !regexp.MustCompile(`allocated \S+ MiB \S+ MiB \+[45]\.\d% \(\+4\.\d% to \+5\.\d%\)`).MatchString(changed) || !regexp.MustCompile(` allocations/s .* no difference seen`).MatchString(changed) {
		t.Error(changed)
	}
	few := diffOf(t, recordings(t, 4, 1, 4), before)
	if strings.Contains(few, " to ") {
		t.Errorf("four runs say how sure they are:\n%s", few)
	}
	one := diffOf(t, filepath.Join(before, "0.arrows"), filepath.Join(larger, "0.arrows"))
	if !strings.Contains(one, "allocations/s") || strings.Count(one, "(") != 2 {
		t.Errorf("windows say more than rates:\n%s", one)
	}
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"diff", t.TempDir(), before}, &stdout, &stderr); status == 0 || !strings.Contains(stderr.String(), "no recording is there") {
		t.Errorf("an empty folder: %s", &stderr)
	}
}
