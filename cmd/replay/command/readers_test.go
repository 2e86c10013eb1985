package command

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// node runs a program with the modules in $NODE_PATH, or skips the test.
func node(t *testing.T, program, module string) string {
	t.Helper()
	if out, err := exec.Command("node", "-e", fmt.Sprintf("require(%q)", module)).CombinedOutput(); err != nil {
		t.Skipf("no node with %s: %v: %s", module, err, bytes.TrimSpace(out))
	}
	out, err := exec.Command("node", "-e", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, program, out)
	}
	return strings.TrimSpace(string(out))
}

// odd writes a recording whose later events are of a memory that few programs have,
// so that the words of the file's spaces change. It returns what a sum over the
// allocations must come to.
func odd(t *testing.T, path string) (want string) {
	t.Helper()
	tr := trace.Trace{Labels: []string{"", "step"}}
	for i := range 5000 {
		space := pressure.Device(i % 8)
		if i > 4000 {
			space = pressure.Device(100 + i%8)
		}
		tr.Record(trace.Event{Time: int64(i) * 1_000_000, Kind: trace.Alloc, Space: space, ID: uint64(i + 1), Bytes: int64(i)})
	}
	tr.Record(trace.Event{Time: 5e9, Kind: trace.Sync, Duration: 3 * time.Millisecond, Aux: 1})
	if err := trace.WriteFile(path, &tr); err != nil {
		t.Fatal(err)
	}
	var all, far int64
	for _, e := range tr.Events {
		if all += e.Bytes; e.Space == pressure.Device(103) {
			far += e.Bytes
		}
	}
	return fmt.Sprint(all, " ", far, " 3")
}

// Polars reads words and durations, without a line of ours.
func TestPolarsReadsATrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.arrows")
	want := odd(t, path)
	got := node(t, fmt.Sprintf(`
const pl = require("nodejs-polars");
const all = pl.readIPCStream(require("fs").readFileSync(%q));
const kind = pl.col("kind").cast(pl.Utf8), space = pl.col("space").cast(pl.Utf8);
const allocs = all.filter(kind.eq(pl.lit("alloc")));
const waits = all.filter(kind.eq(pl.lit("sync")));
console.log(allocs.getColumn("bytes").sum(), allocs.filter(space.eq(pl.lit("device103"))).getColumn("bytes").sum(), Number(waits.getColumn("duration").cast(pl.Int64).sum()) / 1e6);
`, path), "nodejs-polars")
	if got != want {
		t.Errorf("polars has %s, want %s", got, want)
	}
}
