package auto_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// importer makes a module that imports this package, from this checkout, and returns a
// function that runs the go command in it.
func importer(t *testing.T, requires ...string) (dir string, command func(...string) (string, error)) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const own = "github.com/eagergc/eagergc"
	mod := fmt.Sprintf("module example.com/app\n\ngo 1.24\n\nrequire %s v0.1.0\n\nreplace %s => %s\n", own, own, root)
	for _, r := range requires {
		mod += "\nrequire " + r + "\n"
	}
	dir = t.TempDir()
	for name, text := range map[string]string{"go.mod": mod, "main.go": "package main\n\nimport _ \"" + own + "/gc/auto\"\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(args ...string) (string, error) {
		c := exec.Command("go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// TestAnImporterSeesTwoModules: the program and this module. Its go
// line stays as it is.
func TestAnImporterSeesTwoModules(t *testing.T) {
	dir, command := importer(t)
	if out, err := command("build", "-o", filepath.Join(dir, "app"), "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := command("list", "-m", "all")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if all := strings.Split(strings.TrimSpace(out), "\n"); len(all) > 3 {
		t.Errorf("%d modules:\n%s", len(all), out)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\ngo 1.24\n") || strings.Contains(string(mod), "toolchain") {
		t.Errorf("the go line has changed:\n%s", mod)
	}
}

// TestAnImporterKeepsItsVersions: what a program requires is not moved.
func TestAnImporterKeepsItsVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("asks the module proxy")
	}
	pinned := []string{"google.golang.org/grpc v1.70.0", "github.com/prometheus/client_golang v1.20.0"}
	_, command := importer(t, pinned...)
	out, err := command("list", "-m", "google.golang.org/grpc", "github.com/prometheus/client_golang")
	if err != nil {
		t.Skipf("the module proxy has no answer: %v\n%s", err, out)
	}
	for _, want := range pinned {
		if !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
}
