package pool_test

import (
	"bytes"
	"encoding/json"
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
	switched        bool   // it is one of many in one build
}

var plain = strings.NewReplacer("⏎", "\n", "⇥", "\t")

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
		whole, err := os.ReadFile(filepath.Join("..", part[2]))
		if n := strings.Count(string(whole), plain.Replace(part[3])); err != nil || n != 1 {
			t.Errorf("%s: %s has %q %d times, %v", part[0], part[2], part[3], n, err)
		}
		list = append(list, mutation{statements: strings.Fields(part[0]), test: part[1], file: part[2],
			broken: strings.Replace(string(whole), plain.Replace(part[3]), plain.Replace(part[4]), 1), by: part[4], old: part[3]})
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

var mutate = flag.Bool("mutations", false, "make each mistake of the table, and want its test to fail")

// TestMutationsAreNoticed makes one mistake at a time, and wants the test that holds the
// line to fail: a test that cannot fail holds nothing. All mistakes in functions are built
// at once, each as a second function that a variable of the environment switches on, so
// that a package is built once; the few outside of functions are built one by one.
func TestMutationsAreNoticed(t *testing.T) {
	if !*mutate {
		t.Skip("takes minutes: -mutations")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files, list := testsOf(t, root), mutationsOf(t)
	dir := t.TempDir()
	all := overlay{root: root, dir: dir, files: map[string]string{}}
	for k, m := range list {
		list[k].switched = all.add(t, k+1, m)
	}
	table := all.write(t)
	built := map[string]string{}
	for k, m := range list {
		name, _, _ := strings.Cut(m.test, "/")
		_, test, _ := strings.Cut(m.test, ".")
		in := filepath.Join(root, filepath.Dir(files[name]))
		t.Run(m.statements[0], func(t *testing.T) {
			binary := built[in]
			if binary == "" || !m.switched {
				with := table
				binary = filepath.Join(dir, fmt.Sprintf("test%d", k))
				if !m.switched {
					one := overlay{root: root, dir: t.TempDir(), files: map[string]string{m.file: m.broken}}
					with = one.write(t)
				}
				tags := ""
				if filepath.Base(in) == "cuda" {
					tags = "cudasim"
				}
				build := exec.Command("go", "test", "-tags="+tags, "-c", "-vet=off", "-ldflags=-s -w", "-overlay", with, "-o", binary, ".")
				build.Dir = in
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("build: %v\n%s", err, out)
				}
				if m.switched {
					built[in] = binary
				}
			}
			run := exec.Command(binary, "-test.short", "-test.timeout=1m", "-test.run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$")
			run.Dir, run.Env = in, append(os.Environ(), fmt.Sprintf("%s=%d", mutantEnv, k+1))
			out, err := run.CombinedOutput()
			if noticed := strings.Contains(string(out), "--- FAIL: "+test) || strings.Contains(string(out), "panic: "); err == nil || !noticed {
				t.Errorf("%s does not notice %q in place of %q in %s: %v\n%s", m.test, m.by, m.old, m.file, err, out)
			}
		})
	}
}

const mutantEnv = "EAGERGC_TEST_MUTANT"

// An overlay is files of the project with mistakes in them, by their names from the root.
type overlay struct {
	root, dir string
	files     map[string]string
}

// add puts a second function with the mistake beside the one that it is in. It reports
// whether it could: not outside of functions, nor where a parameter has no name.
func (o overlay) add(t *testing.T, k int, m mutation) bool {
	whole := o.files[m.file]
	if whole == "" {
		text, err := os.ReadFile(filepath.Join(o.root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		whole = string(text)
	}
	old := plain.Replace(m.old)
	parsed, err := parser.ParseFile(token.NewFileSet(), "", whole, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		text := whole[f.Pos()-1 : f.End()-1]
		if !strings.Contains(text, old) || strings.Contains(f.Name.Name, mutantMark) {
			continue
		}
		call, ok := callOf(whole, f, fmt.Sprintf("%s%s%d", f.Name.Name, mutantMark, k))
		if !ok {
			return false
		}
		broken := strings.Replace(text, old, plain.Replace(m.by), 1)
		at := int(f.Name.Pos() - f.Pos())
		broken = broken[:at] + fmt.Sprintf("%s%s%d", f.Name.Name, mutantMark, k) + broken[at+len(f.Name.Name):]
		open := int(f.Body.Lbrace)
		o.files[m.file] = whole[:open] + fmt.Sprintf("\nif mutant_ == %d {\n%s\n}\n", k, call) + whole[open:] + "\n" + broken + "\n"
		o.files[path.Dir(m.file)+"/mutant_.go"] = "package " + parsed.Name.Name + "\n\nimport (\n\"os\"\n\"strconv\"\n)\n\nvar mutant_, _ = strconv.Atoi(os.Getenv(\"" + mutantEnv + "\"))\n"
		return true
	}
	return false
}

const mutantMark = "_mutant_"

// callOf returns the call of a function by another name with the parameters of f, from
// inside of f.
func callOf(whole string, f *ast.FuncDecl, name string) (call string, ok bool) {
	names := func(fields *ast.FieldList) (list []string) {
		for _, p := range fields.List {
			for _, n := range p.Names {
				list = append(list, n.Name)
			}
			if _, more := p.Type.(*ast.Ellipsis); more && len(p.Names) > 0 {
				list[len(list)-1] += "..."
			}
			if len(p.Names) == 0 {
				list = append(list, "_")
			}
		}
		return list
	}
	if f.Recv != nil {
		name = names(f.Recv)[0] + "." + name
	}
	if f.Type.TypeParams != nil {
		name += "[" + strings.Join(names(f.Type.TypeParams), ", ") + "]"
	}
	call = name + "(" + strings.Join(names(f.Type.Params), ", ") + ")"
	if f.Type.Results != nil {
		return "return " + call, !strings.Contains(call, "_.") && !strings.Contains(call, "(_") && !strings.Contains(call, " _")
	}
	return call + "\nreturn", !strings.Contains(call, "_.") && !strings.Contains(call, "(_") && !strings.Contains(call, " _")
}

// write writes the files and the table of them that go build takes.
func (o overlay) write(t *testing.T) string {
	replace := map[string]string{}
	for name, text := range o.files {
		file := filepath.Join(o.dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(o.root, name)] = file
	}
	table, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(o.dir, "overlay.json"), table, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(o.dir, "overlay.json")
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
