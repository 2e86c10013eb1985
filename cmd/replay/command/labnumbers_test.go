package command

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// numbers returns the file of results/ that a test writes, or skips the test where
// EAGERGC_LAB_NUMBERS names no folder.
func numbers(t *testing.T, name string) *os.File {
	dir := os.Getenv("EAGERGC_LAB_NUMBERS")
	if dir == "" {
		t.Skip("EAGERGC_LAB_NUMBERS names no folder")
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestLabSizes writes how large the programs are, and the page as one file.
func TestLabSizes(t *testing.T) {
	out := numbers(t, "sizes.txt")
	b, err := buildLab(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(out, "bytes: program, as it is, packed with zstd as the page carries it, with gzip -9, with brotli -q 11")
	for _, name := range []string{"lab", "all"} {
		wasm, err := unpack.DecodeAll(b.parts[name], nil)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if _, err := zip.Write(wasm); err != nil || zip.Close() != nil {
			t.Fatal("gzip")
		}
		fmt.Fprintf(out, "%-4s %9d %9d %9d %9s\n", name, len(wasm), len(b.parts[name]), packed.Len(), brotli(name, wasm))
	}
	for name, whole := range map[string]bool{"page, served": false, "page, one file": true} {
		p, err := labPage(b, whole)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.write(&text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "%-14s %9d\n", name, text.Len())
	}
}

// brotli returns the size of a program as the tool of that name packs it.
func brotli(name string, data []byte) string {
	if name == "all" { // it takes minutes
		return "-"
	}
	cmd := exec.Command("brotli", "-q", "11", "-w", "24", "-c")
	cmd.Stdin = bytes.NewReader(data)
	packed, err := cmd.Output()
	if err != nil {
		return "no brotli here"
	}
	return strconv.Itoa(len(packed))
}

// manyEvents is a recording of 317,000 events: serve, and after it what vit begins with.
func manyEvents(t *testing.T) []byte {
	all, err := samples.Open("serve")
	if err != nil {
		t.Fatal(err)
	}
	more, err := samples.Open("vit")
	if err != nil {
		t.Fatal(err)
	}
	const n, others = 317_000, 1 << 40
	later := all.Events[len(all.Events)-1].Time - more.Events[0].Time
	for _, e := range more.Events[:n-len(all.Events)] {
		e.Time += later
		if e.ID != 0 {
			e.ID |= others
		}
		if e.Kind.Labelled() {
			e.Aux = 0
		}
		all.Events = append(all.Events, e)
	}
	var file bytes.Buffer
	if err := trace.Write(&file, all); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// hold puts a file into the page, under a name.
func (c *chromium) hold(name string, data []byte) {
	path := filepath.Join(c.t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.choose(path)
	c.eval(`globalThis.one = lab.recordingOf([globalThis.chosen])`, nil)
}

// choose gives the page a file, as its dialogue does, and keeps it from being opened.
func (c *chromium) choose(path string) {
	c.eval(`{ globalThis.input = document.createElement("input"); input.type = "file"; input.id = "given"; document.body.append(input); }`, nil)
	var node struct{ Result struct{ ObjectID string } }
	c.must(c.session, "Runtime.evaluate", map[string]any{"expression": "globalThis.input"}, &node)
	c.do("DOM.setFileInputFiles", map[string]any{"files": []string{path}, "objectId": node.Result.ObjectID})
	c.eval(`globalThis.chosen = input.files[0]; input.remove()`, nil)
}

// TestLabTimes writes how long the page's questions take, on 317,000 events: the
// median, the least and the most of ten.
func TestLabTimes(t *testing.T) {
	out := numbers(t, "times.txt")
	c := openLab(t, "")
	c.hold("many.arrows", manyEvents(t))
	all := contenderNames()
	slices.SortStableFunc(all, func(a, b string) int { return bool2int(experiment.Foresees(b)) - bool2int(experiment.Foresees(a)) }) // as dials.js asks
	everything, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var workers int
	c.eval(`lab.begin().then(() => Math.min(4, navigator.hardwareConcurrency))`, &workers)
	fmt.Fprintf(out, "ms: median, least and most of ten; 317,000 events, limit 1.5x, cycle 10ms, %d workers\n", workers)
	sweep := `((all) => Promise.all(all.map((p) => lab.ask(one, "sweep", { policies: [p], limits: ["1.5x"], cycle: "10ms", ladder: "2x" }))))`
	for _, q := range []struct{ name, script string }{
		{"load", `lab.ask({ ...one }, "load", {})`},
		{"all policies", sweep + "(" + string(everything) + ")"},
		{"pacer", sweep + `(["pacer"])`},
		{"cudajl", sweep + `(["cudajl"])`},
		{"never", sweep + `(["never"])`},
		{"as a dial moves: never and pacer with memory over time", `lab.ask(one, "run", { policies: ["never", "pacer"], limits: ["1.5x"], limit: 0, cycle: "10ms", ladder: "2x", slots: 400 })`},
	} {
		c.eval(`Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => lab.ask(one, "info", {}))).then(() => 0)`, nil) // every worker has it
		var took []float64
		c.eval(fmt.Sprintf(`(async () => { const took = []; for (let i = 0; i < 11; i++) { const t = performance.now(); await %s; took.push(performance.now() - t); } return took.slice(1); })()`, q.script), &took)
		slices.Sort(took)
		fmt.Fprintf(out, "%-60s %7.1f %7.1f %7.1f\n", q.name, (took[4]+took[5])/2, took[0], took[9])
	}
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestLabMemory writes what the page holds after each of 50 recordings was opened, one
// after the other, and what a snapshot of EAGERGC_LAB_SNAPSHOT takes.
func TestLabMemory(t *testing.T) {
	out := numbers(t, "memory.txt")
	c := openLab(t, "")
	names := samples.All()
	fmt.Fprintln(out, "MiB: recordings opened so far, WebAssembly memory of all workers, resident memory of the browser's processes that no file backs")
	for i := range 50 {
		name := names[i%len(names)]
		c.eval(fmt.Sprintf(`lab.part("sample-%[1]s").then((b) => lab.open(lab.recordingOf([new File([b], "%[1]s")]), {}))`, name), nil)
		c.until(fmt.Sprintf(`lab.recording?.info.name === %q && document.querySelector(".verdict").textContent`, name))
		if i%len(names) == len(names)-1 || i == 0 || i == 49 {
			fmt.Fprintf(out, "%3d %s %6d\n", i+1, c.held(), resident(c.pid)>>20)
		}
	}
	if file := os.Getenv("EAGERGC_LAB_SNAPSHOT"); file != "" {
		openLarge(t, file, out)
	}
}

func (c *chromium) held() string {
	var mib float64
	c.eval(`lab.crew.reduce((sum, m) => sum + (m?.held ?? 0), 0) / 2 ** 20`, &mib)
	return fmt.Sprintf("%6.0f", mib)
}

// openLarge opens a large file in a new browser and notes the memory that is held meanwhile.
func openLarge(t *testing.T, file string, out *os.File) {
	c := openLab(t, "")
	c.eval(`lab.begin().then(() => 0)`, nil)
	before, most := resident(c.pid), int64(0)
	c.choose(file)
	began := time.Now()
	c.eval(`lab.open(lab.recordingOf([chosen]), { policies: ["never", "pacer"] }).then(() => { globalThis.opened = 1; }); 0`, nil)
	for opened := false; !opened && time.Since(began) < time.Hour; time.Sleep(time.Second) {
		most = max(most, resident(c.pid))
		c.eval(`Boolean(globalThis.opened)`, &opened)
	}
	var said string
	c.eval(`document.getElementById("loading").textContent + JSON.stringify(lab.recording?.info ?? null)`, &said)
	size, _ := os.Stat(file)
	fmt.Fprintf(out, "a snapshot of %d bytes, in %.0f s: %s\nWebAssembly memory %s MiB, resident %d MiB at most, %d before\n", size.Size(), time.Since(began).Seconds(), said, c.held(), most>>20, before>>20)
}

// resident is the resident memory, in bytes, of a process and its children that no
// file backs.
func resident(pid int) (total int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			total = kib << 10
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				total += resident(n)
			}
		}
	}
	return total
}
