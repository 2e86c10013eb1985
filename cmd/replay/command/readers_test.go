package command

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// node runs a program with the modules in $NODE_PATH, or skips the test.
func node(t *testing.T, program string, modules ...string) string {
	t.Helper()
	for _, module := range modules {
		if out, err := exec.Command("node", "-e", fmt.Sprintf("require(%q)", module)).CombinedOutput(); err != nil {
			t.Skipf("no node with %s: %v: %s", module, err, bytes.TrimSpace(out))
		}
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

// The views of notebooks/views.sql say what replay info says. DuckDB for node reads no zstd: polars
// unpacks the file for it, as pyarrow does in Python.
func TestDuckDBViews(t *testing.T) {
	dir := t.TempDir()
	live, builtIn := filepath.Join(dir, "live.arrows"), "../../../trace/formats/samples/conv.arrows"
	var stdout, stderr bytes.Buffer
	args := strings.Fields("live mlp --policy cudajl --limit 1.25x --ballast 1MiB --scale 256 --for 200ms --record")
	if status := run(t.Context(), append(args, live), &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	var want []string
	for i, path := range []string{live, builtIn} {
		recorded, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.WriteFile(filepath.Join(dir, fmt.Sprint(i)), recorded); err != nil { // sorted within a microsecond, too
			t.Fatal(err)
		}
		want = append(want, viewed(recorded))
	}
	got := node(t, fmt.Sprintf(`
const fs = require("fs"), path = require("path"), duckdb = require("@duckdb/duckdb-wasm/blocking");
const bundle = {mainModule: path.join(path.dirname(require.resolve("@duckdb/duckdb-wasm/blocking")), "duckdb-eh.wasm"), mainWorker: ""};
duckdb.createDuckDB({mvp: bundle, eh: bundle}, new duckdb.VoidLogger(), duckdb.NODE_RUNTIME).then(async db => {
	await db.instantiate(() => {});
	for (const file of ["0", "1"]) {
		const c = db.connect();
		c.query("drop table if exists events cascade");
		c.insertArrowFromIPCStream(require("nodejs-polars").readIPCStream(fs.readFileSync(path.join(%q, file))).writeIPCStream({compression: "uncompressed"}), {name: "events"});
		c.query(fs.readFileSync("../../../notebooks/views.sql", "utf8"));
		console.log([
			"max(reachable), max(held), max(reserved) from live", "count(*), coalesce(sum(yield), 0) from cycles", "count(*) from pauses",
			"sum(objects), sum(bytes), sum(objects_at_end), sum(bytes_at_end) from sites", "sum(waits), sum(total_us) from waits",
		].map(q => c.query("select " + q).toArray()[0].toArray().join(" ")).join("; "));
	}
});
`, dir), "nodejs-polars", "@duckdb/duckdb-wasm/blocking")
	if want := strings.Join(want, "\n"); got != want {
		t.Errorf("the views have\n%s, want\n%s", got, want)
	}
}

// viewed is what the views must say of a recording.
func viewed(t *trace.Trace) string {
	s := recording.StatsOf(t)
	var yield, pauses, wait int64
	for _, e := range t.Events {
		switch {
		case e.Kind == trace.Cycle:
			yield += e.Bytes
		case e.Kind == trace.Mark && t.Label(e) == gc.PauseLabel:
			pauses++
		case e.Kind == trace.Sync:
			wait += e.Duration.Microseconds()
		}
	}
	return fmt.Sprintf("%d %d %d; %d %d; %d; %d %d %d %d; %d %d", s.PeakReachable, s.PeakHeld, s.PeakReserved,
		s.Cycles, yield, pauses, s.Allocs, s.AllocatedBytes, s.LastObjects, s.LastBytes, s.Syncs, wait)
}
