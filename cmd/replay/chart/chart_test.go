package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

// run is a run of 100 ms with the given pauses, each with a cycle.
func run(name string, pauses ...time.Duration) Run {
	r := Run{Log: new(sim.Log), Result: sim.Result{Trace: "t", Policy: name, LimitFactor: 1.5, LimitBytes: 3 << 20, PeakLive: 2 << 20}}
	at := time.Millisecond
	for i, p := range pauses {
		r.Log.Pauses = append(r.Log.Pauses, sim.Pause{At: at, Trace: at, Length: p})
		trigger := policy.TriggerPolicy
		if i%2 == 1 {
			trigger = policy.TriggerRefusal
		}
		r.Log.Cycles = append(r.Log.Cycles, sim.Collected{Cycle: policy.Cycle{Start: at, Duration: p, Trigger: trigger}})
		r.Levels = append(r.Levels, sim.Level{At: at, Live: 2 << 20, Garbage: 1 << 20})
		r.Result.ExposedPause += p
		r.Result.Collections++
		at += p + time.Millisecond
	}
	r.Result.Elapsed = 100*time.Millisecond + r.Result.ExposedPause
	return r
}

func charts(runs []Run) map[string]*Chart {
	var names []string
	var results, atLimit []sim.Result
	var overheads []overhead
	for _, r := range runs {
		names = append(names, r.Result.Policy)
		for _, f := range []float64{1.25, 2} {
			r.Result.LimitFactor = f
			results = append(results, r.Result)
			if f == 2 {
				atLimit = append(atLimit, r.Result)
			}
		}
		overheads = append(overheads, overhead{Policy: r.Result.Policy, Factor: 1.25, Wall: 1.1, Processor: 1.2}, overhead{Policy: r.Result.Policy, Factor: 2, Wall: 1, Processor: 1})
	}
	p := NewPalette(names)
	return map[string]*Chart{
		"memory": memoryChart("title", "note", runs, p),
		"pauses": lineCharts("title", "note", 600, 300, p, [][]LineChart{pausesFigure(runs).Data}),
		"mmu":    lineCharts("title", "note", 600, 300, p, [][]LineChart{mmuFigure(runs).Data}),
		"limits": limitsChart("note", results, p),
		"front":  columnCharts("title", "note", 230, atLimit, p, frontFigure),
		"lbo":    lineCharts("title", "note", 360, 260, p, [][]LineChart{lboFigure(overheads).Data}),
	}
}

func write(t *testing.T, c *Chart, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A picture with hostile names is well-formed XML. No name adds an element, and none steers a
// terminal.
func TestHostileNames(t *testing.T) {
	hostile := "</text><script>alert(1)</script>\x00\x1b[2J\u009b\u202e\r\n\xff&\"'\u2028"
	r := run(hostile, time.Millisecond, 2*time.Millisecond)
	r.Result.Trace = hostile
	for name, c := range charts([]Run{r, run("never")}) {
		c.title, c.note = hostile, hostile
		svg := write(t, c, "svg")
		if i := bytes.IndexFunc(svg, func(r rune) bool { return r != '\n' && r != '\t' && !strconv.IsPrint(r) || r == utf8.RuneError }); i >= 0 {
			t.Errorf("%s has %q", name, svg[i:min(len(svg), i+10)])
		}
		seen := false
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Errorf("%s is no XML: %v", name, err)
				break
			}
			switch token := token.(type) {
			case xml.StartElement:
				if token.Name.Local == "script" {
					t.Errorf("%s has a script", name)
				}
			case xml.CharData:
				seen = seen || strings.Contains(string(token), `<script>alert(1)</script>\x00\x1b[2J`)
			}
		}
		if !seen {
			t.Errorf("%s does not show the name", name)
		}
		if _, err := png.Decode(bytes.NewReader(write(t, c, "png"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmptyRunsAreDrawn(t *testing.T) {
	r := Run{Log: new(sim.Log), Result: sim.Result{Trace: "t", Policy: "never", LimitFactor: 1}}
	for name, c := range charts([]Run{r}) {
		if svg := string(write(t, c, "svg")); strings.Contains(svg, "NaN") {
			t.Errorf("%s of nothing draws what is no number", name)
		}
	}
	if err := charts([]Run{r})["mmu"].Write(new(bytes.Buffer), "bmp"); err == nil {
		t.Error("an unknown format is written")
	}
}

// Every colour of an SVG has a dark one: those of policies, black and white.
func TestEveryColourTurnsDark(t *testing.T) {
	var runs []Run
	for _, name := range styledNames() {
		runs = append(runs, run(name, time.Millisecond, time.Millisecond))
	}
	style := darkStyle()
	for name, c := range charts(runs) {
		_, body, _ := strings.Cut(string(write(t, c, "svg")), "</style>")
		for _, m := range regexp.MustCompile(`(fill|stroke):#[0-9A-F]{6}`).FindAllString(body, -1) {
			if !strings.Contains(style, `"`+m+`"`) {
				t.Fatalf("%s has %s, which stays as it is on a dark page", name, m)
			}
		}
	}
}

// A front has the results that no other beats in one time without losing in the other. Of equal
// results it has the first.
func TestFront(t *testing.T) {
	rs := []sim.Result{{FailedAllocs: 1}, {Policy: "optimum-overlap"}}
	for _, p := range [][2]time.Duration{{1, 5}, {9, 1}, {3, 3}, {4, 3}, {3, 4}, {9, 1}, {9, 9}} {
		rs = append(rs, sim.Result{GCBusy: p[0], ExposedPause: p[1]})
	}
	if got := frontOf(rs); !slices.Equal(got, []int{2, 4, 3}) {
		t.Errorf("front %v", got)
	}
}

// A policy has its colour in every company; no two lines of a picture have the same look, and no
// two marks have the same colour and shape.
func TestColoursBelongToPolicies(t *testing.T) {
	alone := NewPalette([]string{"pacer"}).of("pacer")
	var names []string
	for _, o := range namedStyles {
		names = append(names, o.name)
	}
	names = append([]string{"threshold:0.8", "pacer:share=0.2"}, names...)
	for i := range 12 {
		names = append(names, fmt.Sprintf("policy-%d", i))
	}
	p := NewPalette(names)
	if got := p.of("pacer"); got.Light != alone.Light || got.Width <= p.of("sqrt").Width {
		t.Errorf("pacer has %+v in company, want %+v", got, alone)
	}
	for i := range 12 {
		if got := p.of(fmt.Sprintf("policy-%d", i)); got.Light == alone.Light {
			t.Errorf("policy-%d has pacer's colour", i)
		}
	}
	seen := make(map[string]string)
	for _, n := range names {
		l := p.of(n)
		for _, look := range []string{fmt.Sprint("line", l.Light, l.Dash), fmt.Sprint("mark", l.Light, l.shapeOf)} {
			if other, ok := seen[look]; ok {
				t.Errorf("%s looks like %s: %s", n, other, look)
			}
			seen[look] = n
		}
	}
}
