package vet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/eagergc/eagergc/gc/vet"
)

// TestAnalyzer checks a package in testdata that has the form of cgo's output.
func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), vet.Analyzer, "a")
}

// TestVetTool runs the command as users do, on a binding that cgo processes.
func TestVetTool(t *testing.T) {
	out, _ := exec.Command("go", "env", "CGO_ENABLED").Output()
	if _, err := exec.LookPath("cc"); err != nil || string(out) != "1\n" {
		t.Skip("no cgo here")
	}
	tool := filepath.Join(t.TempDir(), "eagergc-vet")
	if out, err := exec.Command("go", "build", "-o", tool, "./cmd/eagergc-vet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module binding\n\ngo 1.24\n", "binding.go": binding} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "vet", "-vettool="+tool, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err == nil || !regexp.MustCompile(`^(#.*\n)*(\./)?binding.go:21:\d+: C.strlen gets memory of t, .*\n$`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

const binding = `package binding

// #include <stdlib.h>
// #include <string.h>
import "C"

import (
	"runtime"
	"unsafe"
)

type Text struct{ native *C.char }

func New(s string) *Text {
	t := &Text{C.CString(s)}
	runtime.SetFinalizer(t, (*Text).free)
	return t
}

func (t *Text) free()    { C.free(unsafe.Pointer(t.native)) }
func (t *Text) Len() int { return int(C.strlen(t.native)) }
func (t *Text) Kept() int {
	defer runtime.KeepAlive(t)
	return int(C.strlen(t.native))
}
`
