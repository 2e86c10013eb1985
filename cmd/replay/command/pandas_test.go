package command

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

const snapshot = "../../../trace/formats/torchsnap/testdata/devices.p4.pickle"

// python runs a program with a Python that has the modules, or skips the test.
func python(t *testing.T, program string, modules ...string) string {
	t.Helper()
	var why []string
	for _, name := range []string{"python3", "/usr/bin/python3"} { // the second has Debian's modules
		if out, err := exec.Command(name, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput(); err != nil {
			why = append(why, fmt.Sprintf("%s: %v: %s", name, err, bytes.TrimSpace(out)))
			continue
		}
		out, err := exec.Command(name, "-c", program).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, program, out)
		}
		return strings.TrimSpace(string(out))
	}
	t.Skip("no Python with what it takes: ", strings.Join(why, "; "))
	return ""
}

// A PyTorch snapshot can be opened in pandas: by way of the Arrow file, with the
// three lines of package trace's documentation.
func TestPandasReadsASnapshot(t *testing.T) {
	arrows := filepath.Join(t.TempDir(), "run.arrows")
	replay(t, "import", snapshot, "-o", arrows)
	recorded, err := trace.ReadFile(arrows)
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for _, e := range recorded.Events {
		if e.Kind == trace.Alloc && e.Space == sim.SpaceOf(recorded) {
			bytes += e.Bytes
		}
	}
	if bytes == 0 {
		t.Fatal("the snapshot has no allocations")
	}
	text := read(t, "../../../trace/doc.go")
	m := regexp.MustCompile(`(?m)^//\timport pyarrow.*\n(//\t.*\n)+`).FindString(text)
	if lines := strings.Count(m, "\n"); lines != 3 {
		t.Fatalf("trace/doc.go has %d lines of Python, want 3:\n%s", lines, m)
	}
	program := strings.NewReplacer("//\t", "", "run.arrows", arrows).Replace(m) +
		fmt.Sprintf("\nprint(len(events), events[(events.kind == 'alloc') & (events.space == '%v')].bytes.sum())", sim.SpaceOf(recorded))
	if got, want := python(t, program, "pandas", "pyarrow"), fmt.Sprint(len(recorded.Events), " ", bytes); got != want {
		t.Errorf("pandas has %s, want %s", got, want)
	}
}
