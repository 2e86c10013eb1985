package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDemo: the service is killed as it is and ends with the import, and the picture is written. On
// a busy machine the watch may come late, so the test tries three times.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	program := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := regexp.MustCompile(`^as it is: +signal: killed after .*\nwith the import: exit status 0 after .*\nwrote demo.svg\n$`)
	var out []byte
	for range 3 {
		run := exec.Command(program)
		run.Dir = filepath.Dir(program)
		if out, _ = run.CombinedOutput(); want.Match(out) {
			return
		}
	}
	t.Errorf("%s", out)
}
