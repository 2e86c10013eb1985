package pool_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

var updateStatements = flag.Bool("update-statements", false, "write the table of the seeds' statements anew")

const statements = "../results/2026-11-22-seeds"

// TestStatementsAreHeld makes the table of what the seeds' documents say out of the
// list of statements and the tests that there are: a test that is renamed or goes
// away fails it.
func TestStatementsAreHeld(t *testing.T) {
	files := testsOf(t, "..")
	list, err := os.ReadFile(statements + "/statements.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	source, n := "", 0
	for line := range strings.Lines(string(list)) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if len(part) != 3 || part[2] == "" {
			t.Fatalf("not a source, a statement and its tests: %q", line)
		}
		if part[0] != source {
			source = part[0]
			fmt.Fprintf(&table, "\n## %s\n\n| | statement | held by |\n|---|---|---|\n", titles[source])
		}
		n++
		var tests []string
		for _, name := range strings.Fields(part[2]) {
			file, ok := files[name]
			if !ok {
				t.Errorf("statement %d, %q: there is no test %s", n, part[1], name)
			}
			tests = append(tests, fmt.Sprintf("[%s](../../%s)", name, file))
		}
		fmt.Fprintf(&table, "| %d | %s | %s |\n", n, part[1], strings.Join(tests, ", "))
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
// fail: a test that cannot fail holds nothing. It takes some seconds for each line.
func TestMutationsAreNoticed(t *testing.T) {
	list, err := os.ReadFile(statements + "/mutations.tsv")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(part) != 4 {
			t.Fatalf("not a test, a file, and what to replace by what: %q", line)
		}
		test, file := part[0], filepath.Join(root, part[1])
		whole, err := os.ReadFile(file)
		if n := strings.Count(string(whole), part[2]); err != nil || n != 1 {
			t.Errorf("%s: %s has %q %d times, %v", test, part[1], part[2], n, err)
			continue
		}
		if !*mutate {
			continue
		}
		dir := t.TempDir()
		broken, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
		replaced, _ := json.Marshal(map[string]any{"Replace": map[string]string{file: broken}})
		if err := errors.Join(os.WriteFile(broken, []byte(strings.Replace(string(whole), part[2], part[3], 1)), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(test, ".")
		run := exec.Command("go", "test", "-overlay", overlay, "-run", "^"+name+"$", ".")
		run.Dir = filepath.Dir(file)
		if out, err := run.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL: "+name) {
			t.Errorf("%s does not notice %q in place of %q in %s: %v\n%s", test, part[3], part[2], part[1], err, out)
		}
	}
}

var titles = map[string]string{
	"release":       "CUDA.jl 5.4, release notes",
	"documentation": "CUDA.jl, memory documentation",
	"cupy":          "CuPy, memory management guide",
	"guide":         "CUDA memory management for deep learning",
}

// testsOf returns the files of all tests, examples and benchmarks below a folder,
// by package.Name.
func testsOf(t *testing.T, root string) map[string]string {
	files := map[string]string{}
	for _, room := range []string{"gc", "pool", "pressure"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(file string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Example") || strings.HasPrefix(f.Name.Name, "Benchmark")) {
					from, _ := filepath.Rel(root, file)
					files[strings.TrimSuffix(parsed.Name.Name, "_test")+"."+f.Name.Name] = path.Clean(filepath.ToSlash(from))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
