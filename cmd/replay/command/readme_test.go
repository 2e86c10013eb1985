package command

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	readme    = "../../../README.md"
	embedding = "../../../gc/EMBEDDING.md"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prose returns what stands in a file outside of ``` lines.
func prose(t *testing.T, file string) string {
	t.Helper()
	return regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, file), "")
}

// blocks returns what stands in a file between ``` lines of a language.
func blocks(t *testing.T, file, language string) []string {
	t.Helper()
	var all []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```\n").FindAllStringSubmatch(read(t, file), -1) {
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
	if status := run(t.Context(), []string{"compare", "--policies", "never,cudajl:poll=50us,sqrt,pacer,optimum-overlap", "--cycle", "10ms", "-o", ""}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	want := stdout.String()
	want, _, _ = strings.Cut(want[strings.Index(want, "Time lost"):], "\n\n")
	want += "\n"
	got := blocks(t, readme, "text")[0]
	switch {
	case got == want:
	case *update:
		text := strings.Replace(read(t, readme), "```text\n"+got, "```text\n"+want, 1)
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README.md has\n%s\ncompare prints\n%s\n(go test ./cmd/replay/command -run Readme -update writes it)", got, want)
	}
}

// Every command in the README and the guide exists and takes the flags that it is given.
func TestReadmeCommands(t *testing.T) {
	n := 0
	for _, block := range slices.Concat(blocks(t, readme, "sh"), blocks(t, embedding, "sh")) {
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
	if n < 4 {
		t.Errorf("found %d commands", n)
	}
}

// What the README and the guide show of Go is part of an Example, which compiles
// and mostly runs. The README's are the import, five lines, and ten for a GPU.
func TestReadmeSnippets(t *testing.T) {
	var examples strings.Builder
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), "example") && strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			examples.WriteString(unindent(string(text)))
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	short := blocks(t, readme, "go")
	if len(short) != 3 || strings.Count(short[0], "\n") > 1 || strings.Count(short[1], "\n") > 5 || strings.Count(short[2], "\n") > 10 {
		t.Errorf("README.md shows %q; want a line, a piece of five lines and one of ten", short)
	}
	for _, code := range slices.Concat(short, blocks(t, embedding, "go")) {
		if strings.HasPrefix(code, "import _ ") {
			code = strings.TrimPrefix(strings.TrimSpace(code), "import _ ") // a line of an Example's imports
		}
		if !strings.Contains(examples.String(), unindent(code)) {
			t.Errorf("no Example has\n%s", code)
		}
	}
}

func unindent(code string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "") }

// Links of the README and the guide lead somewhere.
func TestReadmeLinks(t *testing.T) {
	for _, file := range []string{readme, embedding} {
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(prose(t, file), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
}

// The command that checks a clone is what CI runs.
func TestReadmeTestsAsCIDoes(t *testing.T) {
	const command = "go test work"
	if !strings.Contains(read(t, readme), command) || !strings.Contains(read(t, "../../../.ci/run"), "\n"+command+"\n") {
		t.Errorf("README.md and .ci/run do not both have %q", command)
	}
}
