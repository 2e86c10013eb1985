// Package bindings tests real bindings that use package pressure. The tests download the bindings,
// patch copies of them and build their C code, which takes minutes.
package bindings

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A binding is a third-party module. Its patch in testdata makes it count its memory.
type binding struct{ name, path, version string }

var bindings = []binding{
	{"gozstd", "github.com/valyala/gozstd", "v1.27.0"},
	{"tree-sitter", "github.com/smacker/go-tree-sitter", "v0.0.0-20240827094217-dd81d9e9be82"},
}

// run runs a command in a folder, outside the workspace.
func run(folder, env string, command ...string) ([]byte, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", env)
	return cmd.Output()
}

func must(t *testing.T, folder string, command ...string) {
	t.Helper()
	if out, err := run(folder, "", command...); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// fetch returns a folder with a patched copy. It skips the test if the module or a tool is missing.
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
	var module struct{ Dir string }
	out, err := run(t.TempDir(), "", "go", "mod", "download", "-json", b.path+"@"+b.version)
	if err != nil || json.Unmarshal(out, &module) != nil {
		t.Skipf("%s cannot be downloaded: %v\n%s", b.path, err, out)
	}
	folder := filepath.Join(t.TempDir(), b.name)
	must(t, ".", "cp", "-r", module.Dir, folder)
	must(t, ".", "chmod", "-R", "u+w", folder)
	patch, err := filepath.Abs(filepath.Join("testdata", b.name+".patch"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(patch)
	if n := len(regexp.MustCompile(`(?m)^([+][^+\n]|-[^-\n])`).FindAll(text, -1)); err != nil || n > 10 {
		t.Errorf("%s changes %d lines, want at most 10: %v", b.name, n, err)
	}
	must(t, folder, "git", "apply", patch)
	require(t, folder)
	return folder
}

// require makes the module in a folder take eagergc from this checkout.
func require(t *testing.T, folder string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	// With a go line of 1.16 or less, Go would load every module that ours require, and theirs.
	must(t, folder, "go", "mod", "edit", "-go=1.26.0", "-require=github.com/eagergc/eagergc@v0.1.0", "-replace=github.com/eagergc/eagergc="+root)
}

type report struct {
	Page, Mean       int64
	First, Held, End map[string]int64
	Named            []struct {
		Name          string
		Live, Objects int64
	}
}

// TestOneApplicationTwoBindings: both bindings count to the byte, by name. The import of gc/auto
// lists them, and at least halves the memory.
func TestOneApplicationTwoBindings(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "app")
	must(t, ".", "cp", "-r", "testdata/app", folder)
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module app\n\ngo 1.24\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings {
		must(t, folder, "go", "mod", "edit", "-require="+b.path+"@"+b.version, "-replace="+b.path+"="+fetch(t, b))
	}
	require(t, folder)
	must(t, folder, "go", "build", "-o", "app")
	means := map[string]int64{}
	for _, env := range []string{"EAGERGC=off", "EAGERGC="} {
		out, err := run(folder, env, "./app")
		var r report
		if err != nil || json.Unmarshal(out, &r) != nil {
			t.Fatalf("%s: %v\n%s", env, err, out)
		}
		means[env] = r.Mean
		if r.First["tree-sitter"] != 20*r.Page || r.First["gozstd"] < 1<<20 {
			t.Errorf("%s: one request counts %v", env, r.First)
		}
		for name, one := range r.First {
			if r.Held[name] != 51*one || r.End[name] != 0 {
				t.Errorf("%s: %s counts %d, then %d with 51 requests and %d at the end", env, name, one, r.Held[name], r.End[name])
			}
		}
		for _, n := range r.Named {
			if n.Live != r.Held[n.Name] || n.Objects != 51 {
				t.Errorf("the collector counts %+v, want %d bytes in 51 objects", n, r.Held[n.Name])
			}
		}
		if want := map[string]int{"EAGERGC=off": 0, "EAGERGC=": 2}[env]; len(r.Named) != want {
			t.Errorf("%s: the collector lists %v", env, r.Named)
		}
	}
	if means["EAGERGC="] > means["EAGERGC=off"]/2 {
		t.Errorf("mean bytes: %v", means)
	}
}
