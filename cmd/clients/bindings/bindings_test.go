// Package bindings shows that real bindings take package pressure with a few lines, and what package gctest finds in
// their test suites. It has tests alone: they fetch the bindings from the module proxy, patch copies of them
// and build those, C included, which takes minutes.
package bindings

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A binding is a module of others, with the patches that are put on a copy of it.
type binding struct {
	name, path, version string
	patches             []string
}

var (
	gozstd     = binding{"gozstd", "github.com/valyala/gozstd", "v1.27.0", []string{"gozstd.patch"}}
	treeSitter = binding{"tree-sitter", "github.com/smacker/go-tree-sitter", "v0.0.0-20240827094217-dd81d9e9be82", []string{"tree-sitter.patch"}}
	zstd       = binding{"zstd", "github.com/DataDog/zstd", "v1.5.7", nil}
)

func (b binding) with(patch string) binding {
	b.patches = append(b.patches[:len(b.patches):len(b.patches)], patch)
	return b
}

// run runs a command in a folder, outside the workspace.
func run(t *testing.T, folder string, env []string, command ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath"), env...)
	cmd.Stderr = os.Stderr
	if testing.Verbose() {
		t.Logf("%s $ %s", folder, strings.Join(command, " "))
	}
	return cmd.Output()
}

func must(t *testing.T, folder string, command ...string) []byte {
	t.Helper()
	out, err := run(t, folder, nil, command...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

// fetch returns a folder with a patched copy, or skips the test where the module is not to be had.
func fetch(t *testing.T, b binding) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds C libraries, which takes minutes")
	}
	for _, tool := range []string{"gcc", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	out, err := run(t, t.TempDir(), nil, "go", "mod", "download", "-json", b.path+"@"+b.version)
	if err != nil {
		t.Skipf("%s is not to be had here: %v\n%s", b.path, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), b.name)
	must(t, ".", "cp", "-r", module.Dir, folder)
	must(t, ".", "chmod", "-R", "u+w", folder)
	for _, name := range b.patches {
		patch, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if n := changes(t, patch); n > 10 {
			t.Errorf("%s changes %d lines, want at most 10", name, n)
		}
		must(t, folder, "git", "apply", patch)
	}
	require(t, folder)
	return folder
}

// changes counts the lines that a patch adds or removes, without empty ones.
func changes(t *testing.T, patch string) (n int) {
	t.Helper()
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		added, removed := strings.HasPrefix(line, "+"), strings.HasPrefix(line, "-")
		if (added || removed) && len(strings.TrimSpace(line)) > 1 && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") {
			n++
		}
	}
	return n
}

// require has the module in a folder take eagergc from this checkout.
func require(t *testing.T, folder string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	// A go line of 1.16 or less would load every module that ours require, and theirs.
	must(t, folder, "go", "mod", "edit", "-go=1.26.0", "-require=github.com/eagergc/eagergc@v0.1.0", "-replace=github.com/eagergc/eagergc="+root)
}

// A counted is what an app's collector says of a library.
type counted struct {
	Name          string
	Live, Objects int64
}

type report struct {
	Page             int64
	First, Held, End map[string]int64
	Named            []counted
	Mean, Most       int64
	Cycles           uint32
}

// TestOneApplicationTwoBindings: both count to the byte, by name; the import of gc/auto lists them, and
// holds less than Go alone does.
func TestOneApplicationTwoBindings(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "app")
	must(t, ".", "cp", "-r", "testdata/app", folder)
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module app\n\ngo 1.24\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, b := range []binding{gozstd, treeSitter} {
		must(t, folder, "go", "mod", "edit", "-require="+b.path+"@"+b.version, "-replace="+b.path+"="+fetch(t, b))
	}
	require(t, folder)
	must(t, folder, "go", "build", "-o", "app")
	means := map[string]int64{}
	for way, env := range map[string]string{"plain": "EAGERGC=off", "import": "EAGERGC=", "own": "EAGERGC=off"} {
		out, err := run(t, folder, []string{env, "WAY=" + way}, "./app")
		if err != nil {
			t.Fatalf("%s: %v\n%s", way, err, out)
		}
		var r report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%s: %v\n%s", way, err, out)
		}
		t.Logf("%s: %s", way, out)
		means[way] = r.Mean
		if r.First["tree-sitter"] != 20*r.Page || r.First["gozstd"] < 1<<20 {
			t.Errorf("%s: one request counts %v", way, r.First)
		}
		for name, one := range r.First {
			if r.Held[name] != 51*one || r.End[name] != 0 {
				t.Errorf("%s: %s counts %d, then %d with 51 requests and %d at the end", way, name, one, r.Held[name], r.End[name])
			}
		}
		if way != "import" {
			continue
		}
		if len(r.Named) != 2 {
			t.Errorf("the collector knows %v", r.Named)
		}
		for _, n := range r.Named {
			if n.Live != r.Held[n.Name] || n.Objects != 51 {
				t.Errorf("the collector counts %+v, want %d bytes in 51 objects", n, r.Held[n.Name])
			}
		}
	}
	if means["import"] > means["plain"]/2 {
		t.Errorf("mean bytes: %v", means)
	}
}

// TestSuitesOfOthers runs test suites with cycles beside them (Stress), and looks at what they leave (NoLeak). C's
// allocator fills what is freed, so that who uses it sees.
func TestSuitesOfOthers(t *testing.T) {
	for _, suite := range []struct {
		binding
		tests string
	}{
		{gozstd.with("gozstd-test.patch"), "Dict"},
		{treeSitter.with("tree-sitter-test.patch"), "."},
		{zstd.with("zstd-test.patch"), "TestBulk|TestCtx"},
	} {
		t.Run(suite.name, func(t *testing.T) {
			folder := fetch(t, suite.binding)
			out, err := run(t, folder, []string{"MALLOC_PERTURB_=165"}, "go", "test", "-vet=off", "-run", suite.tests, ".")
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
