package pool_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateStatements = flag.Bool("update-statements", false, "write the table of the seeds' statements anew")

const statements = "../results/2026-11-22-seeds"

// A mutation breaks what a test holds: statements by their names, the test, the file, and
// what to replace by what. In the table ⏎ is the end of a line and ⇥ a tab.
type mutation struct {
	statements      []string
	test, file      string
	broken, by, old string // the file with the mistake in it; the lines that differ
}

func mutationsOf(t *testing.T) (list []mutation) {
	text, err := os.ReadFile(statements + "/mutations.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(part) != 5 {
			t.Fatalf("not statements, a test, a file, and what to replace by what: %q", line)
		}
		plain := strings.NewReplacer("⏎", "\n", "⇥", "\t").Replace
		whole, err := os.ReadFile(filepath.Join("..", part[2]))
		if n := strings.Count(string(whole), plain(part[3])); err != nil || n != 1 {
			t.Errorf("%s: %s has %q %d times, %v", part[0], part[2], part[3], n, err)
		}
		list = append(list, mutation{strings.Fields(part[0]), part[1], part[2],
			strings.Replace(string(whole), plain(part[3]), plain(part[4]), 1), part[4], part[3]})
	}
	return list
}

// TestStatementsAreHeld makes the table of what the seeds' documents say out of the
// list of statements and that of mutations: each statement has a test that there is, and a
// mistake that it notices.
func TestStatementsAreHeld(t *testing.T) {
	files, held := testsOf(t, ".."), map[string][]mutation{}
	for _, m := range mutationsOf(t) {
		name, _, _ := strings.Cut(m.test, "/")
		if files[name] == "" {
			t.Errorf("%v: there is no test %s", m.statements, m.test)
		}
		for _, s := range m.statements {
			held[s] = append(held[s], m)
		}
	}
	list, err := os.ReadFile(statements + "/statements.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	source := ""
	for line := range strings.Lines(string(list)) {
		id, text, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || len(held[id]) == 0 {
			t.Fatalf("not a name and a statement that a mutation has: %q", line)
		}
		if id[:1] != source {
			source = id[:1]
			fmt.Fprintf(&table, "\n## %s\n\n| | statement | test | a mistake that it notices |\n|---|---|---|---|\n", titles[source])
		}
		for k, m := range held[id] {
			name, _, _ := strings.Cut(m.test, "/")
			if k > 0 {
				id, text = "", ""
			}
			show := func(code string) string {
				return "`" + strings.NewReplacer("⏎", " ", "⇥", "", "|", "\\|", "\t", "").Replace(code) + "`"
			}
			fmt.Fprintf(&table, "| %s | %s | [%s](../../%s) | %s: %s for %s |\n", id, strings.ReplaceAll(text, "|", "\\|"), m.test, files[name], path.Base(m.file), show(m.by), show(m.old))
		}
		delete(held, strings.Split(line, "\t")[0])
	}
	for id := range held {
		t.Errorf("a mutation for %s, which is no statement", id)
	}
	head, err := os.ReadFile(statements + "/head.md")
	if err != nil {
		t.Fatal(err)
	}
	want := append(head, table.Bytes()...)
	if *updateStatements {
		if err := os.WriteFile(statements+"/README.md", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(statements + "/README.md"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the table is out of date (go test ./pool -run Statements -update-statements): %v", err)
	}
}

var mutate = flag.Bool("mutations", false, "apply each mutation of the table, and want its test to fail")

// TestMutationsAreNoticed breaks one line at a time, and wants the test that holds it to
// fail: a test that cannot fail holds nothing. It takes some seconds for each. Those of one
// document: -run 'Mutations/^J'.
func TestMutationsAreNoticed(t *testing.T) {
	if !*mutate {
		t.Skip("takes half an hour: -mutations")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files := testsOf(t, root)
	for _, m := range mutationsOf(t) {
		t.Run(m.statements[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			broken, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
			replaced, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): broken}})
			if err := errors.Join(os.WriteFile(broken, []byte(m.broken), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
				t.Fatal(err)
			}
			_, test, _ := strings.Cut(m.test, ".")
			name, _, _ := strings.Cut(m.test, "/")
			run := exec.Command("go", "test", "-tags", "cudasim", "-vet=off", "-ldflags=-s -w", "-short", "-timeout", "2m", "-overlay", overlay,
				"-run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$", ".")
			run.Dir = filepath.Join(root, filepath.Dir(files[name]))
			out, err := run.CombinedOutput()
			if noticed := strings.Contains(string(out), "--- FAIL: "+test) || strings.Contains(string(out), "panic: "); err == nil || !noticed {
				t.Errorf("%s does not notice %q in place of %q in %s: %v\n%s", m.test, m.by, m.old, m.file, err, out)
			}
		})
	}
}

var titles = map[string]string{
	"J": "CUDA.jl, memory documentation",
	"F": "CUDA.jl, frequent questions",
	"C": "CuPy, memory management guide",
	"R": "CUDA.jl 5.4, release notes",
	"G": "CUDA memory management for deep learning",
}

// testsOf returns the files of all tests and examples of the rooms that hold statements,
// by folder.Name.
func testsOf(t *testing.T, root string) map[string]string {
	files := map[string]string{}
	for _, room := range []string{"gc", "pool", "pressure", "cmd/research/dense"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(file string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, f := range testFunction.FindAllSubmatch(text, -1) {
				from, _ := filepath.Rel(root, file)
				files[filepath.Base(filepath.Dir(file))+"."+string(f[1])] = filepath.ToSlash(from)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\(`)
