package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// The lab, and the lab as one file, are built once for all tests.
var builtLab = sync.OnceValues(func() (*labBuild, error) { return buildLab(context.Background()) })

var labText = sync.OnceValues(func() (text []byte, err error) {
	b, err := builtLab()
	if err != nil {
		return nil, err
	}
	p, err := labPage(b, true)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = p.write(&page)
	return page.Bytes(), err
})

// openLab opens the lab in a browser, from a file, with a setting in its link.
func openLab(t testing.TB, link string) *chromium {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("no chromium on this machine:", err)
	}
	text, err := labText()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "lab.html")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	c := newChromium(t)
	c.open("file://" + file + "#" + link)
	c.until("globalThis.lab?.open")
	return c
}

// settled waits until the page shows the answer to its dials.
func settled(c *chromium) {
	c.t.Helper()
	c.until(`document.querySelector(".recording").ariaBusy === "false"`)
}

// wellBehaved fails if the page has asked for anything, or complained.
func wellBehaved(t *testing.T, c *chromium) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.requests) != 1 || !strings.HasPrefix(c.requests[0], "file://") {
		t.Errorf("the page asked for %q", c.requests)
	}
	if len(c.console) > 0 {
		t.Errorf("the console says %q", c.console)
	}
}

// TestLab moves the dials as a reader would.
func TestLab(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&limit=2x&cycle=20ms&policies=never;cudajl;threshold:0.7")
	const firstLoad = 1_200_000 // bytes of the program that a page begins with
	if b, err := builtLab(); err != nil || len(b.parts["lab"]) > firstLoad {
		t.Errorf("the first program has %d bytes, at most %d: %v", len(b.parts["lab"]), firstLoad, err)
	}
	verdict := "document.querySelector('.verdict').textContent"
	c.until(verdict)
	var text string
	c.eval(verdict, &text)
	if !strings.Contains(text, "loses least") {
		t.Errorf("the verdict is %q", text)
	}
	beside := "document.querySelector('.beside').textContent"
	c.until(beside + `.includes("limit of 2x") && ` + beside + `.includes("cycle 20ms")`)
	c.until("document.querySelectorAll('.memory canvas').length === 2 && document.querySelectorAll('.panel .uplot').length >= 1")
	c.eval(`{ const dial = document.querySelector(".dials").elements.limit; dial.value = 15; dial.dispatchEvent(new Event("input", { bubbles: true })); }`, nil)
	c.until(beside + `.includes("limit of 1.11x")`)
	c.until(`location.hash.includes("limit=1.11x")`)
	c.eval(`document.querySelector("[name=undo]").click()`, nil)
	c.until(beside + `.includes("limit of 2x")`)
	c.until(`!document.querySelector("[name=redo]").disabled`)
	c.eval(`document.querySelector("[name=go]").click()`, nil)
	c.until(`document.querySelector(".lines").textContent.includes("gc.New(gc.Config{")`)
	c.eval(`{ const o = document.querySelector(".dials").elements.others; o.value = "threshold:2"; o.dispatchEvent(new Event("change")); }`, nil)
	c.until(`document.querySelector(".dials > .problem").textContent.includes("threshold")`)
	wellBehaved(t, c)
}

// TestLabIsEqual holds the results in the browser to native ones, to the last bit: of
// some recordings under every policy. EAGERGC_LAB=all has it try all of them at twelve
// limits and costs each, which takes minutes.
func TestLabIsEqual(t *testing.T) {
	t.Parallel()
	c := openLab(t, "")
	names, policies := samples.All(), contenderNames()
	limits, cycles := []string{"1.1x", "1.5x", "2x", "4x"}, []string{"1ms", "10ms", "100ms"}
	if os.Getenv("EAGERGC_LAB") != "all" {
		names, limits, cycles = []string{"mlp", "gnn", "thumb"}, limits[1:2], cycles[1:2]
	}
	n := 0
	for _, name := range names {
		w, err := loadWorkload(name)
		if err != nil {
			t.Fatal(err)
		}
		c.eval(fmt.Sprintf(`(async () => { globalThis.one = lab.recordingOf([new File([await lab.part("sample-%[1]s")], %[1]q)]); await lab.begin(); })()`, name), nil)
		for _, cycle := range cycles {
			args, err := json.Marshal(map[string]any{"policies": policies, "limits": limits, "cycle": cycle, "ladder": "2x"})
			if err != nil {
				t.Fatal(err)
			}
			var got []sim.Result
			c.eval(fmt.Sprintf(`lab.ask(one, "sweep", %s)`, args), &got)
			g := &experiment.Grid{Workloads: []*sim.Workload{w}}
			s := setting{policies: listed{strings.Join(policies, ","), true}, limits: listed{strings.Join(limits, ","), true}, cycles: listed{text: cycle}, ladder: "2x"}
			for _, err := range []error{s.readPolicies(g), s.readLimits(g), s.readCosts(g), g.Run(t.Context(), nil)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			want := g.Finished(0)
			if !reflect.DeepEqual(got, want) {
				for i := range want {
					if i >= len(got) || got[i] != want[i] {
						t.Fatalf("%s, %s: the browser has %+v, want %+v", name, cycle, got[min(i, len(got)-1)], want[i])
					}
				}
			}
			n += len(want)
		}
	}
	t.Logf("%d results are equal", n)
	wellBehaved(t, c)
}

// TestLabOpens drops a file of each format on the page, whole ones and broken ones:
// what the page says is what the command line says.
func TestLabOpens(t *testing.T) {
	t.Parallel()
	c := openLab(t, "")
	dir := t.TempDir()
	for _, format := range []string{"text"} {
		if status := run(t.Context(), []string{"export", "mlp", "--to", format, "-o", filepath.Join(dir, "mlp."+format)}, io.Discard, os.Stderr); status != 0 {
			t.Fatal("replay export")
		}
	}
	native, err := samples.File("thumb")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"cut.arrows": native[:len(native)-100], "empty.pickle": nil, "other.bin": []byte("ELF or so"), "cut.json": []byte(`{"traceEvents":[{"ph"`), "thumb.arrows": native,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{"cut.arrows", "empty.pickle", "other.bin", "cut.json", "thumb.arrows", "mlp.text"}
	for i := range files {
		files[i] = filepath.Join(dir, files[i])
	}
	for _, pattern := range []string{"torchsnap/testdata/*.pickle*", "kineto/testdata/*.json*", "logs/testdata/*.*"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", "trace", "formats", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		if testing.Short() {
			found = found[:min(1, len(found))]
		}
		files = append(files, found...)
	}
	for _, file := range files {
		w, err := loadWorkload(file)
		c.drop(file)
		var said struct{ Name, Error string }
		c.until(`document.getElementById("loading").dataset.state === "error" || lab.recording?.name === ` + fmt.Sprintf("%q", filepath.Base(file)))
		c.eval(`({ name: lab.recording?.info.name ?? "", error: document.getElementById("loading").textContent })`, &said)
		switch {
		case err == nil && (said.Name != w.Name || said.Error != ""):
			t.Errorf("%s: the page has %q and says %q, want %q", file, said.Name, said.Error, w.Name)
		case err != nil:
			want, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), file, filepath.Base(file)), " (replay import")
			if !strings.HasPrefix(said.Error, want) {
				t.Errorf("%s: the page says\n%q, the command line\n%q", file, said.Error, want)
			}
		}
		c.eval(`document.getElementById("loading").dataset.state = ""; lab.forget?.()`, nil)
	}
	wellBehaved(t, c)
}

// TestLabJoins drops a recording without waits and one of the waits alone, together and one
// after the other in both orders, and opens the second while the first is read: each time
// the page has what import --sync writes.
func TestLabJoins(t *testing.T) {
	t.Parallel()
	c := openLab(t, "")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	const memory = "start 2026-01-02T03:04:05Z\n0 alloc id=1 bytes=1048576 space=device0\n2000000 drop id=1 bytes=1048576 space=device0\n3000000 alloc id=2 bytes=1000 space=device0\n"
	const profile = "start 2026-01-02T03:04:05Z\n1000000 sync duration=500000\n2500000 sync duration=100000\n"
	for name, text := range map[string]string{"memory": memory, "profile": profile, "other": strings.Replace(profile, "2026", "2025", 1)} {
		if err := os.WriteFile(file(name), []byte(recording.TextHeader+"\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if status := run(t.Context(), []string{"import", file("memory"), "--sync", file("profile"), "-o", file("memory.arrows")}, io.Discard, os.Stderr); status != 0 {
		t.Fatal("replay import")
	}
	w, err := loadWorkload(file("memory.arrows"))
	if err != nil || w.Syncs == 0 {
		t.Fatal(w, err)
	}
	type opened struct{ Name, Syncs, Peak any }
	want := opened{"memory", float64(w.Syncs), float64(w.PeakReachable)}
	say := `document.getElementById("loading").textContent`
	joined := func(drops any) {
		t.Helper()
		c.until(`lab.recording?.files.length === 2`)
		var got opened
		c.eval(`({ Name: lab.recording.info.name, Syncs: lab.recording.info.syncs, Peak: lab.recording.info.peak_reachable_bytes })`, &got)
		if got != want {
			t.Errorf("%v: the page has %v, import writes %v", drops, got, want)
		}
	}
	for _, drops := range [][][]string{{{"profile", "memory"}}, {{"memory"}, {"profile"}}, {{"profile"}, {"memory"}}, {{"memory"}, {"other"}}} {
		c.eval(`history.replaceState(null, "", "#")`, nil)
		c.reload()
		for i, names := range drops {
			paths := make([]string, len(names))
			for k, name := range names {
				paths[k] = file(name)
			}
			c.drop(paths...)
			if i < len(drops)-1 {
				c.until(`lab.recording || ` + say + `.includes("drop that snapshot here")`)
			}
		}
		if drops[len(drops)-1][0] == "other" {
			c.until(say + `.includes("not of the same time")`)
			continue
		}
		joined(drops)
	}
	c.reload()
	c.eval(fmt.Sprintf(`for (const [name, text] of [["memory", %q], ["profile", %q]]) lab.open(lab.recordingOf([new File([text], name)]), {}); 0`, recording.TextHeader+"\n"+memory, recording.TextHeader+"\n"+profile), nil)
	joined("one while the other is read")
	if len(c.console) > 0 {
		t.Errorf("the console says %q", c.console)
	}
}

// TestLabDrops drops a file on what the page takes away or covers between two steps of the
// drag, as a chart that is drawn anew: the file is read all the same.
func TestLabDrops(t *testing.T) {
	t.Parallel()
	c := openLab(t, "")
	dir := t.TempDir()
	const there = `document.body.append(globalThis.thing = Object.assign(document.createElement("div"), { style: "position: fixed; inset: 0; z-index: 9" }))`
	for i, does := range [][2]string{ // before the drag, and before its drop
		{"", there},
		{there, "thing.remove()"},
		{there, `thing.addEventListener("dragover", () => thing.remove())`},
	} {
		file := filepath.Join(dir, fmt.Sprint("memory", i))
		if err := os.WriteFile(file, []byte(recording.TextHeader+"\n0 alloc id=1 bytes=1048576 space=device0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c.eval(does[0]+"; 0", nil)
		c.drag("dragEnter", file)
		c.drag("dragOver", file)
		c.eval(does[1]+"; 0", nil)
		c.drag("drop", file)
		c.until(fmt.Sprintf("lab.recording?.name === %q", filepath.Base(file)))
		c.eval("thing.remove()", nil)
	}
	wellBehaved(t, c)
}

// BenchmarkLab times what the page asks, in the worker, on the recording with the most
// events: all policies at one limit, one policy, and reading it.
func BenchmarkLab(b *testing.B) {
	c := openLab(b, "")
	c.eval(`(async () => { globalThis.one = lab.recordingOf([new File([await lab.part("sample-serve")], "serve")]); await lab.begin(); await lab.ask(one, "load", {}); })()`, nil)
	all, err := json.Marshal(contenderNames())
	if err != nil {
		b.Fatal(err)
	}
	for name, policies := range map[string]string{"policies=all": string(all), "policies=pacer": `["pacer"]`, "policies=cudajl": `["cudajl"]`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.eval(fmt.Sprintf(`Promise.all(%s.map((p) => lab.ask(one, "sweep", { policies: [p], limits: ["1.5x"], cycle: "10ms", ladder: "2x" }))).then(() => 0)`, policies), nil)
			}
		})
	}
	b.Run("op=load", func(b *testing.B) {
		for b.Loop() {
			c.eval(`lab.ask({ ...one }, "load", {})`, nil)
		}
	})
}
