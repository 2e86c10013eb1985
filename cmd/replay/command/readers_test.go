package command

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc"
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

// The views of notebooks/views.sql agree with replay info. DuckDB for node reads no zstd: polars
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

// viewed returns the expected rows of the views for a recording.
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
