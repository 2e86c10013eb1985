package pool_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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
