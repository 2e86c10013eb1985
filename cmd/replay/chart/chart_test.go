package chart

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

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

func TestChartsNameTheirPoliciesAndRepeat(t *testing.T) {
	runs := []Run{
		run("never"), // no pause at all
		run("cudajl", 10*time.Millisecond, 20*time.Millisecond),
		run("optimum-blocking", 1, time.Hour), // the ends of what a pause can be
	}
	again := charts(runs)
	for name, c := range charts(runs) {
		svg := write(t, c, "svg")
		for _, r := range runs {
			if !strings.Contains(string(svg), r.Result.Policy) {
				t.Errorf("%s does not name %s", name, r.Result.Policy)
			}
		}
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%s draws what is no number", name)
		}
		if !bytes.Equal(svg, write(t, again[name], "svg")) {
			t.Errorf("%s differs when drawn again", name)
		}
		if pdf := write(t, c, "pdf"); !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) {
			t.Errorf("%s is no PDF", name)
		}
		c.Lay(Layout{Title: "another <title>", Width: 240, Font: 7})
		if narrow := string(write(t, c, "svg")); !strings.Contains(narrow, `width="240pt"`) || !strings.Contains(narrow, "another &lt;title&gt;") {
			t.Errorf("%s is not 240 points wide: %.300s", name, narrow)
		}
		c.Lay(Layout{Width: 640})
		img, err := png.Decode(bytes.NewReader(write(t, c, "png")))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() < 500 || b.Dy() < 300 {
			t.Errorf("%s is %v", name, b)
		}
	}
}

// Memory in columns keeps each level within the bounds of the column in which it begins, and the sum over time.
func TestColumnsKeepAllLevels(t *testing.T) {
	const end = 3 * time.Second // a column is 10 ms wide
	var levels []sim.Level
	sum, sumReachable := 0.0, 0.0
	r := rand.New(rand.NewPCG(1, 2))
	for at := time.Duration(0); at < end; {
		l, length := sim.Level{At: at, Live: 1000 + r.Int64N(1000), Garbage: r.Int64N(1000)}, time.Duration(1+r.Int64N(int64(end)/500))
		levels = append(levels, l)
		if at += length; at < end {
			sum, sumReachable = sum+float64(l.Live)*float64(length), sumReachable+float64(l.Live-l.Garbage)*float64(length)
		}
	}
	for _, c := range columnsOf(levels, end) {
		for _, l := range levels {
			if from := c.at - 5e6; float64(l.At) >= from && float64(l.At) < from+10e6 && (float64(l.Live) < c.low || float64(l.Live) > c.high) {
				t.Errorf("%+v begins in the column from %v to %v bytes", l, c.low, c.high)
			}
		}
		if mean := c.live / c.span; mean < c.low || mean > c.high {
			t.Errorf("a mean of %v in a column from %v to %v bytes", mean, c.low, c.high)
		}
		sum, sumReachable = sum-c.live, sumReachable-c.reachable
	}
	if most := 1e-6 * 2000 * float64(end); math.Abs(sum) > most || math.Abs(sumReachable) > most {
		t.Errorf("the columns lack %v of live and %v of reachable bytes, in byte-ns", sum, sumReachable)
	}
}

// An axis holds its values in any order, and marks 0 where values of 0 are.
func TestAxesHoldTheirValues(t *testing.T) {
	for _, x := range []axis{{}, {Log: true}, {Log: true, Unit: "s"}, {Zero: 0.01}} {
		values := []float64{5, 0.02, 80, 3}
		a := plot.New().Y
		place := x.on(&a, values)
		for _, v := range values {
			if at := place(v); at < a.Min || at > a.Max {
				t.Errorf("%+v: %v is at %v, beside %v to %v", x, v, at, a.Min, a.Max)
			}
		}
		for _, tick := range a.Tick.Marker.Ticks(a.Min, a.Max) {
			if tick.Label == "0" && tick.Value != place(0) {
				t.Errorf("%+v: 0 is marked at %v, and its place is %v", x, tick.Value, place(0))
			}
		}
	}
}

// Names beside lines that end close together do not overlap, and none is above the panel.
func TestNamesOfLinesDoNotOverlap(t *testing.T) {
	for _, end := range []float64{0, 0.5, 1} {
		var to recorder.Canvas
		var names labels
		for i := range 5 {
			names = append(names, labelled{&plotter.Line{XYs: plotter.XYs{{X: 1, Y: end - float64(i)/1000}}}, fmt.Sprint(i)})
		}
		p := plot.New()
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
		names.Plot(draw.NewCanvas(&to, 100, 100), p)
		var ys []vg.Length
		for _, a := range to.Actions {
			if text, ok := a.(*recorder.FillString); ok {
				ys = append(ys, text.Point.Y)
			}
		}
		slices.Sort(ys)
		for i := range ys {
			if len(ys) != len(names) || ys[i] > 100 || i > 0 && ys[i]-ys[i-1] < labelLeading-0.01 {
				t.Fatalf("names at %v", ys)
			}
		}
	}
}

// The panels of many recordings stay under the legend, in rows that do not overlap.
func TestPanelsKeepToTheirPlace(t *testing.T) {
	var results []sim.Result
	for i := range 16 {
		for _, f := range []float64{1.25, 1.5, 2, 4} {
			results = append(results, sim.Result{
				Trace: fmt.Sprint("recording", i), Policy: "never", LimitFactor: f, Span: time.Second,
				ExposedPause: time.Duration(max(0, 4-f) * math.Pow(10, float64(i%9))), Collections: 1 + i*i*i,
			})
		}
	}
	c := limitsChart("note", results, NewPalette([]string{"never"}))
	tiles := draw.Tiles{Rows: len(c.panels), Cols: len(c.panels[0])}
	body := draw.NewCanvas(new(recorder.Canvas), c.width*vg.Length(tiles.Cols), c.height*vg.Length(tiles.Rows))
	const gap = 6 // points: between two rows, and under the legend
	for i, row := range c.cells(body) {
		for j, cell := range row {
			if tile := tiles.At(body, j, i); cell.Max.Y > tile.Max.Y+gap || cell.Min.Y < tile.Min.Y-gap {
				t.Errorf("panel %d of row %d lies from %.0f to %.0f, its tile from %.0f to %.0f", j, i, cell.Min.Y, cell.Max.Y, tile.Min.Y, tile.Max.Y)
			}
		}
	}
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

// What figures and tables show of three runs, and of their results at two limits, is in testdata/figures.txt.
func TestFiguresShowTheRuns(t *testing.T) {
	const ms = time.Millisecond
	runs := []Run{run("never"), run("cudajl", 10*ms, 20*ms, 20*ms), run("pacer", 5*ms, 300*ms)}
	var results []sim.Result
	var overheads []overhead
	for i := range runs {
		r, l := &runs[i].Result, runs[i].Log
		r.Span, r.GCBusy, r.MaxPause, r.RefusalCollections, r.FailedAllocs = 100*ms, time.Duration(i+1)*7*ms, slices.Max(append(l.Lengths(), 0)), i, 2*i
		r.MeanLive, r.MeanGarbage = 1<<20, 1<<19
		for k := range l.Cycles {
			l.Decisions = append(l.Decisions, sim.Decided{Decision: policy.Decision{Reason: "waits"}}, sim.Decided{Decision: policy.Decision{Action: policy.Action(1 + k%2), Reason: "full"}})
		}
		other := *r
		other.LimitFactor, other.LimitBytes, other.ExposedPause = 2, 4<<20, r.ExposedPause/2
		results = append(results, *r, other)
		overheads = append(overheads, overhead{r.Policy, 1.5, 1.1 + float64(i), 1.2}, overhead{r.Policy, 2, 1, 1.05})
	}
	var b strings.Builder
	rows := func(t Table) {
		for _, row := range t {
			b.WriteString(strings.Join(row, " | ") + "\n")
		}
	}
	rows(RunTable(runs))
	rows(Reasons(runs))
	atLimit := []sim.Result{results[0], results[2], results[4]}
	for i := range atLimit {
		atLimit[i].FailedAllocs = 0
	}
	for _, f := range []Figure{pausesFigure(runs), mmuFigure(runs), lboFigure(overheads), frontFigure(atLimit), limitsFigure(results, 3<<20)} {
		fmt.Fprintf(&b, "\n== %s, %s\n", f.Kind, f.Name)
		rows(f.Table)
		for _, c := range f.Data {
			fmt.Fprintf(&b, "-- %s\nx %+v\ny %+v\n", c.Label, c.X, c.Y)
			if len(c.Front) > 0 {
				fmt.Fprintln(&b, "front", c.Front)
			}
			for _, l := range c.Lines {
				fmt.Fprintf(&b, "%s (%s):", l.policy, l.Rest)
				for i := 0; i < len(l.X); i += 1 + len(l.X)/8 {
					y := math.NaN()
					if l.Y[i] != nil {
						y = *l.Y[i]
					}
					fmt.Fprintf(&b, " %v,%v", l.X[i], y)
				}
				b.WriteString("\n")
			}
		}
	}
	const path = "testdata/figures.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != b.String() {
		t.Errorf("%v; after a change that is meant, -update writes %s. It is now\n%s", err, path, &b)
	}
}

var update = flag.Bool("update", false, "rewrite testdata/figures.txt")

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
	var two []sim.Result
	for _, name := range []string{"a", "b"} {
		two = append(two, sim.Result{Trace: name, Policy: "never", GCBusy: 2, ExposedPause: 1}, sim.Result{Trace: name, Policy: "pacer", GCBusy: 1, ExposedPause: 2})
	}
	svg := write(t, columnCharts("", "", 230, two, NewPalette([]string{"never", "pacer"}), frontFigure), "svg")
	if n := strings.Count(string(svg), ">front<"); n != 1 {
		t.Errorf("the key names the front of two panels %d times", n)
	}
}
