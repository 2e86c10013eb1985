package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const readme = "../../README.md"

// blocks returns what stands in the README between ``` lines of a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}

// The table in the README is what compare prints. -update writes it anew.
func TestReadmeTable(t *testing.T) {
	if testing.Short() {
		t.Skip("replays the default comparison")
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"compare", "-o", ""}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	want := stdout.String()
	want = want[strings.Index(want, "Time lost"):]
	got := blocks(t, "text")[0]
	switch {
	case got == want:
	case *update:
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("```text\n"+got), []byte("```text\n"+want), 1)
		if err := os.WriteFile(readme, text, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README.md has\n%s\ncompare prints\n%s\n(go test ./cmd/replay -run Readme -update writes it)", got, want)
	}
}

// The table in the README is in results/, where its raw data lie.
func TestReadmeTableIsInResults(t *testing.T) {
	result, err := os.ReadFile("../../results/2026-11-21-compare/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(blocks(t, "text")[0]) {
		if !strings.Contains(string(result), line) {
			t.Errorf("results/2026-11-21-compare/table.txt lacks %q (results/rebuild.sh makes it)", line)
		}
	}
}

// Every command in the README exists and takes the flags that it is given.
func TestReadmeCommands(t *testing.T) {
	n := 0
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/replay ")
			if !ok {
				continue
			}
			n++
			cmd, rest, err := newRoot().Find(strings.Fields(args))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s%v", line, err)
			}
		}
	}
	if n < 5 {
		t.Errorf("found %d commands", n)
	}
}

// The programs in the README compile, and its links lead somewhere.
func TestReadmeProgramsAndLinks(t *testing.T) {
	for _, code := range blocks(t, "go") {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("README.md links to %s: %v", m[1], err)
		}
	}
	for _, command := range []string{"go test ./..."} {
		ci, err := os.ReadFile("../../.ci/run")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), command) || !strings.Contains(string(ci), "\n"+command+"\n") {
			t.Errorf("README.md and .ci/run do not both have %q", command)
		}
	}
}
