package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A seen is the part of the charts that is in view.
type seen struct {
	From, To float64
	Zoomed   bool
	Pair     []string
	Cycle    []int
	Chart    string
}

func inView(c *chromium) (s seen) {
	c.t.Helper()
	c.eval("lab.seen()", &s)
	return s
}

// middle is the middle of an element, which is scrolled into the window.
func middle(c *chromium, selector string) (at point, width float64) {
	c.t.Helper()
	var box struct{ X, Y, Width, Height float64 }
	c.eval(fmt.Sprintf(`{ const e = document.querySelector(%q); e.scrollIntoView({ block: "center" }); e.getBoundingClientRect().toJSON(); }`, selector), &box)
	return point{box.X + box.Width/2, box.Y + box.Height/2}, box.Width
}

// TestLabTouch uses a telephone at night: fingers move dials and charts, and nothing
// is wider than the screen.
func TestLabTouch(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&limit=2x&policies=never;cudajl")
	c.screen(390, true, map[string]string{"color-scheme": "dark", "reduced-motion": "reduce"})
	settled(c)
	limit := `document.querySelector("[name=limit]").value`
	var was, is string
	c.eval(limit, &was)
	at, width := middle(c, "[name=limit]")
	at.X += width * (1.0/3 - 0.5) // 2x is a third of the way from 1x to 8x
	c.fingers([]point{at}, []point{{at.X + width/3, at.Y}})
	c.eval(limit, &is)
	if was == is {
		t.Errorf("a finger has not moved the limit from %s", was)
	}
	settled(c)

	at, width = middle(c, ".memory .u-over")
	apart := func(x, d float64) []point { return []point{{x - d, at.Y}, {x + d, at.Y}} }
	c.fingers(apart(at.X, width/10), apart(at.X, width/3))
	zoomed := inView(c)
	if !zoomed.Zoomed || zoomed.From <= 0 {
		t.Errorf("two fingers have not zoomed: %+v", zoomed)
	}
	c.fingers([]point{at}, []point{{at.X - width/4, at.Y}})
	if moved := inView(c); moved.From <= zoomed.From || math.Abs((moved.To-moved.From)-(zoomed.To-zoomed.From)) > 1e-6 {
		t.Errorf("a finger has moved %+v to %+v", zoomed, moved)
	}

	var found struct {
		Wide         bool
		Moving, Dark int
	}
	c.eval(`({ wide: document.documentElement.scrollWidth > innerWidth,
		moving: [...document.querySelectorAll("*")].filter((e) => { const s = getComputedStyle(e); return s.animationName !== "none" || s.transitionDuration !== "0s"; }).length,
		dark: +/\d+/.exec(getComputedStyle(document.body).backgroundColor)[0] })`, &found)
	if found.Wide || found.Moving > 0 || found.Dark > 60 {
		t.Errorf("wider than the screen, moving, or light: %+v", found)
	}
	wellBehaved(t, c)
}

// TestLabKeys uses the page without a mouse.
func TestLabKeys(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&limit=2x&policies=never;cudajl")
	c.screen(768, false, nil)
	settled(c)
	var names []string
	for range 60 {
		c.key("Tab", 0)
		var at struct {
			Name string
			Seen bool
		}
		c.eval(`(() => { const e = document.activeElement, s = getComputedStyle(e.closest(".button") ?? e), box = e.getBoundingClientRect(), bar = document.querySelector(".sliders");
			const below = bar.contains(e) || bar.getBoundingClientRect().top > 0 || box.bottom > bar.getBoundingClientRect().bottom || e.closest("header");
			return { name: e.name || e.id || e.className || e.textContent.trim(), seen: s.outlineStyle !== "none" && !!below && box.bottom > 0 && box.top < innerHeight }; })()`, &at)
		if names = append(names, at.Name); !at.Seen {
			t.Errorf("it is not seen that %s has the focus", at.Name)
		}
		if at.Name == "Pauses" {
			break
		}
	}
	want := []string{"file", "mlp", "query", "limit", "cycle", "price", "advise", "link", "u-over", "Pauses"}
	for _, name := range names {
		if len(want) > 0 && (name == want[0] || want[0] == "u-over" && strings.Contains(name, "uplot")) {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Errorf("the Tab key goes to %q, without or in another order: %q", names, want)
	}
	c.key("ArrowRight", 0) // of the tabs
	if s := inView(c); s.Chart != "utilization" && s.Chart == "pauses" {
		t.Errorf("the arrow has not gone to the next chart: %+v", s)
	}
	c.eval(`document.querySelector("[name=limit]").focus()`, nil)
	c.key("ArrowRight", 0)
	c.until(`lab.state.limit !== "2x"`)
	c.key("z", 2) // with Ctrl
	c.until(`lab.state.limit === "2x"`)
	c.key("y", 2)
	c.until(`lab.state.limit !== "2x"`)
	settled(c)
	c.eval(`document.querySelector(".memory .uplot").focus()`, nil)
	c.key("+", 0)
	if s := inView(c); !s.Zoomed {
		t.Errorf("the plus key has not zoomed: %+v", s)
	}
	wellBehaved(t, c)
}

// TestLabTakenAway takes a table, a picture and a link from the page: the table is that
// of the command line, and the link shows the same again.
func TestLabTakenAway(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&limit=2x&cycle=20ms&price=0.01&policies=never;cudajl;threshold:0.7&pair=cudajl;never&time=0.5,1&why=0,3&chart=front&rule=live+%3E+0.9*limit&on=1")
	dir := c.downloads()
	settled(c)
	want, wantState := inView(c), json.RawMessage(nil)
	c.eval("lab.state", &wantState)
	if !want.Zoomed || !slices.Equal(want.Cycle, []int{0, 3}) || want.Chart != "front" || !slices.Equal(want.Pair, []string{"cudajl", "never"}) {
		t.Errorf("the link asked for another view: %+v", want)
	}
	c.eval(`document.querySelector("[name=csv]").click(); document.querySelector("[name=picture]").click(); document.querySelector("[name=link]").click()`, nil)
	table := taken(t, filepath.Join(dir, "mlp.csv"))
	var out, errs bytes.Buffer
	if run(t.Context(), []string{"compare", "mlp", "--policies", "never", "--limits", "2x", "--cycle", "20ms", "--format", "csv", "-o", t.TempDir()}, &out, &errs) != 0 {
		t.Fatal(errs.String())
	}
	head, rest, _ := strings.Cut(out.String(), "\n")
	row, _, _ := strings.Cut(rest, "\n")
	if !strings.HasPrefix(string(table), head+"\n") || !strings.Contains(string(table), "\n"+row+"\n") || !strings.Contains(string(table), ",mine,") {
		t.Errorf("the table is\n%s\nof the command line\n%s", table, out.String())
	}
	picture, err := png.Decode(bytes.NewReader(taken(t, filepath.Join(dir, "mlp.png"))))
	if err != nil {
		t.Fatal(err)
	}
	shades := map[any]bool{}
	for x := range picture.Bounds().Dx() {
		for y := 0; y < picture.Bounds().Dy(); y += 5 {
			shades[picture.At(x, y)] = true
		}
	}
	if size := picture.Bounds().Size(); size.X < 300 || size.Y < 500 || len(shades) < 20 {
		t.Errorf("the picture of %v has %d shades", size, len(shades))
	}
	var link string
	c.until(`document.querySelector(".lines").textContent.includes("#")`)
	c.eval(`"#" + document.querySelector(".lines").textContent.split("#")[1]`, &link)
	c.eval(fmt.Sprintf(`history.replaceState(null, "", %q)`, link), nil)
	c.reload()
	c.until(`lab.recording`)
	settled(c)
	got, gotState := inView(c), json.RawMessage(nil)
	c.eval("lab.state", &gotState)
	if !reflect.DeepEqual(got, want) || !bytes.Equal(gotState, wantState) {
		t.Errorf("the link shows %+v %s, not %+v %s", got, gotState, want, wantState)
	}
	if len(c.console) > 0 {
		t.Errorf("the console says %q", c.console)
	}
}

// taken waits for a file that the browser writes.
func taken(t *testing.T, file string) []byte {
	t.Helper()
	for end := time.Now().Add(untilSeconds * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s has not come", filepath.Base(file))
		}
	}
}

// TestLabRule writes a policy in the page: an error is shown at its place, and the
// program that is copied says the same.
func TestLabRule(t *testing.T) {
	t.Parallel()
	c := openLab(t, "sample=mlp&policies=never;pacer")
	settled(c)
	write := func(text string) {
		t.Helper()
		c.eval(fmt.Sprintf(`{ const e = document.querySelector("[name=rule]"); e.value = %q; e.dispatchEvent(new Event("input")); }`, text), nil)
	}
	c.eval(`document.querySelector(".rule").open = true`, nil)
	write("live > 0.5*limt")
	c.until(`document.querySelector(".rule .problem button")?.textContent.includes("column 12: \"limt\" is none of live")`)
	var selected string
	c.eval(`document.querySelector(".rule .problem button").click(); var e = document.activeElement; e.name + ": " + e.value.slice(e.selectionStart, e.selectionEnd)`, &selected)
	if selected != "rule: limt" {
		t.Errorf("marked is %q", selected)
	}
	write("live > 0.5*limit")
	c.until(`!document.querySelector(".rule .problem").textContent && lab.state.rule?.on`)
	settled(c)
	c.until(`[...document.querySelectorAll(".ranks td:first-child")].some((e) => e.textContent.trim() === "mine")`)
	c.eval(`document.querySelector("[name=copy]").click()`, nil)
	c.until(`document.querySelector(".lines").textContent.includes("return live > 0.5*limit\n")`)
	wellBehaved(t, c)
}

// TestLabServed: the page that is served asks its own server only, and draws frames
// while the workers compute.
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
	c.open(server.URL + "/#sample=gpt2&policies=" + strings.Join(contenderNames()[:4], ";"))
	c.until("globalThis.lab?.recording")
	settled(c)
	for frames, try := 0, 0; frames < 5; try++ { // a busy machine may draw few
		c.eval(fmt.Sprintf(`new Promise((done) => {
			let n = 0;
			const frame = () => { n++; document.querySelector(".recording").ariaBusy === "true" ? requestAnimationFrame(frame) : done(n); };
			document.querySelector("[name=cycle]").value = %d;
			document.querySelector("[name=cycle]").dispatchEvent(new Event("input"));
			requestAnimationFrame(frame);
		})`, 210+try), &frames)
		if frames < 5 && try == 20 {
			t.Fatalf("%d frames while it computed", frames)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if !strings.HasPrefix(r, server.URL+"/") {
			t.Errorf("the page asked for %q", r)
		}
	}
	if len(c.console) > 0 {
		t.Errorf("the console says %q", c.console)
	}
}
