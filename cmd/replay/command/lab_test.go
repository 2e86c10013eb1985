package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// wellBehaved fails if the page has asked for anything but itself, or its own server, or complained.
func wellBehaved(t *testing.T, c *chromium, server string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.requests {
		if server == "" && (i > 0 || !strings.HasPrefix(r, "file://")) || !strings.HasPrefix(r, server) {
			t.Errorf("the page asked for %q", r)
		}
	}
	if len(c.console) > 0 {
		t.Errorf("the console says %q", c.console)
	}
}

// TestLab moves the dials as a reader would.
func TestLab(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&limit=2x&cycle=20ms&policies=never;cudajl;pacer")
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
	c.until(`document.querySelector(".lines").textContent.includes("gc.New(gc.Config{Policy: policy.MustParse(")`)
	c.eval(`document.querySelector("[name=advise]").click()`, nil)
	c.until(`Math.floor(parseFloat(lab.state.limit) * lab.recording.info.peak_reachable_bytes) === lab.advice?.limit_bytes`)
	c.eval(`{ const o = document.querySelector(".dials").elements.others; o.value = "threshold:2"; o.dispatchEvent(new Event("change")); }`, nil)
	c.until(`document.querySelector(".dials > .problem").textContent.includes("threshold")`)
	wellBehaved(t, c, "")
}

// The results in the browser are those of compare, to the last bit, on some recordings under
// every policy. EAGERGC_LAB=all tries all recordings at twelve limits and costs each, which
// takes minutes.
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
		c.eval(fmt.Sprintf(`(async () => { globalThis.one = lab.recordingOf([new File([await lab.part("sample-%[1]s")], %[1]q)]); await lab.begin(); })()`, name), nil)
		for _, cycle := range cycles {
			args, err := json.Marshal(map[string]any{"policies": policies, "limits": limits, "cycle": cycle, "ladder": "2x"})
			if err != nil {
				t.Fatal(err)
			}
			var got []sim.Result
			c.eval(fmt.Sprintf(`lab.ask(one, "sweep", %s)`, args), &got)
			results := replay(t, "compare", name, "--policies", "all", "--limits", strings.Join(limits, ","), "--cycle", cycle, "--json", "-o", "")
			want := parseResults(t, results)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, %s: the browser has\n%+v, want\n%+v", name, cycle, got, want)
			}
			n += len(want)
		}
	}
	t.Logf("%d results are equal", n)
	wellBehaved(t, c, "")
}

// TestLabOpens drops a file of each format on the page, whole and broken ones. The page says the
// same as the command line.
func TestLabOpens(t *testing.T) {
	t.Parallel()
	c := openLab(t, "")
	dir := t.TempDir()
	replay(t, "export", "mlp", "--to", "text", "-o", filepath.Join(dir, "mlp.text"))
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
		w, _, err := loadWorkload(file, false)
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
	wellBehaved(t, c, "")
}

// TestLabJoins drops a recording without waits and one with only waits. It drops them together,
// and one after the other in both orders, and opens the second while the first is read. Each
// time the page has the trace of import --sync.
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
	replay(t, "import", file("memory"), "--sync", file("profile"), "-o", file("memory.arrows"))
	w, _, err := loadWorkload(file("memory.arrows"), false)
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

// TestLabTakenAway takes a table and a link from the page: the table has the rows of compare, and the
// link shows the same again.
func TestLabTakenAway(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&limit=2x&cycle=20ms&price=0.01&policies=never;cudajl;threshold:0.7&pair=cudajl;never&time=0.5,1&why=0,3&chart=front")
	dir := t.TempDir()
	c.must("", "Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": dir}, nil)
	settled(c)
	shown := func() (view string) {
		c.eval(`JSON.stringify([lab.state, lab.seen()])`, &view)
		return view
	}
	want := shown()
	for _, part := range []string{`"zoomed":true`, `"cycle":[0,3]`, `"chart":"front"`, `"pair":["cudajl","never"]`} {
		if !strings.Contains(want, part) {
			t.Errorf("the link asked for %s: %s", part, want)
		}
	}
	c.eval(`document.querySelector("[name=csv]").click(); document.querySelector("[name=link]").click()`, nil)
	var table []byte
	for end := time.Now().Add(untilSeconds * time.Second); len(table) == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		table, _ = os.ReadFile(filepath.Join(dir, "mlp.csv"))
	}
	for line := range strings.Lines(replay(t, "compare", "mlp", "--policies", "never,cudajl", "--limits", "2x", "--cycle", "20ms", "--format", "csv", "-o", "")) {
		if !strings.Contains(string(table), line) {
			t.Errorf("the table is\n%s\nwithout compare's\n%s", table, line)
		}
	}
	c.until(`document.querySelector(".lines").textContent.includes("#")`)
	c.eval(`history.replaceState(null, "", "#" + document.querySelector(".lines").textContent.split("#")[1])`, nil)
	c.reload()
	c.until(`lab.recording`)
	settled(c)
	if got := shown(); got != want {
		t.Errorf("the link shows %s, not %s", got, want)
	}
}

// The page that is served asks its own server only, and that answers to its own name only.
func TestLabServed(t *testing.T) {
	c := newChromium(t)
	b, err := builtLab()
	if err != nil {
		t.Fatal(err)
	}
	p, err := labPage(b, false)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.write(&text); err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer server.Close()
	handler = labHandler(b, text.String(), strings.TrimPrefix(server.URL, "http://"))
	c.open(server.URL + "/#sample=mlp&policies=never;pacer")
	c.until("globalThis.lab?.recording")
	settled(c)
	wellBehaved(t, c, server.URL)
}

// fakeGo is a go command that builds its arguments, but for the file that it writes.
const fakeGo = `#!/bin/sh
here=$(dirname "$0")
case $1 in
env) echo "$here" ;;
build) [ "$GOOS$GOARCH" = jswasm ] && test -f lab/main.go && for last; do [ "$out" = -o ] && file=$last; out=$last; done; echo "$@" | sed 's/-o [^ ]*//' >"$file" ;;
*) echo "no $1" >&2; exit 1 ;;
esac
`

// useFakeGo puts fakeGo before the PATH.
func useFakeGo(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	glue := filepath.Join(bin, "lib/wasm/wasm_exec.js")
	if err := errors.Join(os.MkdirAll(filepath.Dir(glue), 0o755), os.WriteFile(glue, []byte("glue"), 0o644), os.WriteFile(filepath.Join(bin, "go"), []byte(fakeGo), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// The server of the lab answers to its own name only, until its context ends, and gives out parts that there are.
func TestLabServes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the go command of this test is a script")
	}
	useFakeGo(t)
	ctx, cancel := context.WithCancel(t.Context())
	from, to := io.Pipe()
	status := make(chan int)
	go func() { status <- run(ctx, []string{"lab", "--no-browser"}, to, to); to.Close() }()
	said, err := bufio.NewReader(from).ReadString('\n')
	go io.Copy(io.Discard, from)
	url := regexp.MustCompile(`^replay: the lab is at (http://127\.0\.0\.1:\d+/) until Ctrl-C\n$`).FindStringSubmatch(said)
	if url == nil {
		t.Fatal(said, err)
	}
	for _, c := range []struct {
		host, path string
		status     int
		body       string
	}{
		{"", "", 200, `class="lab"`}, {"", "parts/program", 200, "\x1f\x8b"}, {"", "parts/sample-mlp", 200, "\xff\xff\xff\xff"}, {"", "parts/none", 404, "404 page not found"},
		{"", "other", 404, "404 page not found"}, {"evil.example", "", 403, "not this host"}, {"evil.example", "parts/program", 403, "not this host"},
	} {
		r, _ := http.NewRequest("GET", url[1]+c.path, nil)
		r.Host = c.host
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(w.Body)
		w.Body.Close()
		if w.StatusCode != c.status || !strings.Contains(string(body), c.body) || c.status == 200 && w.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s%s: %d %.100s", c.host, c.path, w.StatusCode, body)
		}
	}
	cancel()
	if s := <-status; s != 0 {
		t.Errorf("ended with %d", s)
	}
	program, _ := exec.LookPath("go")
	for _, broken := range []string{"env) echo nowhere", "env) exit 1", "build) echo no >&2; exit 1"} {
		text := "#!/bin/sh\ncase $1 in\n" + broken + " ;;\nenv) dirname $0 ;;\nesac\n"
		var out strings.Builder
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil || run(t.Context(), []string{"lab"}, &out, &out) != 1 || !strings.HasPrefix(out.String(), "replay: lab: ") {
			t.Errorf("%s: %s %v", broken, &out, err)
		}
	}
}
