package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
)

//go:embed page
var pageFiles embed.FS

func newReport() *cobra.Command {
	var (
		policies, limits, out string
		price                 price
	)
	cmd := &cobra.Command{
		Use:   "report [FILE...] -o report.html",
		Short: "Write one HTML file that shows which policy to choose, and why",
		Long: `report replays the workloads under some policies and writes one HTML file that
needs nothing else: the verdict first, then for each workload its memory over time
with every collection, the pauses, the front of pause against collector time, and
the reasons that the policies gave. The charts zoom and hide policies; without
JavaScript they are pictures. Without a FILE it takes the workloads built in.`,
		Example: `  replay report -o report.html
  replay report my.arrows --policies never,cudajl,threshold:0.9 --limits 1.25x,1.5x,2x -o mine.html`,
		RunE: func(cmd *cobra.Command, files []string) error {
			c, err := newComparison(cmd.Context(), files, policies, limits, &price)
			if err != nil {
				return err
			}
			if err := c.run(cmd.ErrOrStderr()); err != nil {
				return err
			}
			page, err := c.page()
			if err != nil {
				return err
			}
			dir, err := openFolder(filepath.Dir(out))
			if err != nil {
				return err
			}
			defer dir.close()
			if err := dir.write(filepath.Base(out), page.write); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s\n", out)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&policies, "policies", reportPolicies(), "`list` of policies and optima")
	f.StringVar(&limits, "limits", "1.25x,1.5x,2x,3x,4x", "`list` of limits: bytes (8GiB) or factors of the peak reachable bytes (1.5x)")
	price.bind(cmd, "10ms", "2x")
	f.StringVarP(&out, "output", "o", "report.html", "`file` to write")
	_ = cmd.RegisterFlagCompletionFunc("policies", completePolicies)
	return cmd
}

// reportPolicies are few enough to tell apart in one chart: the control, the
// reference, the best of the others, our own, and the optimum.
func reportPolicies() string {
	names := []string{"never", "cudajl", "sqrt", "v8step"}
	if slices.ContainsFunc(gc.Policies(), func(p gc.PolicyInfo) bool { return p.Name == "pacer" }) {
		names = append(names, "pacer")
	}
	return strings.Join(append(names, "optimum-overlap"), ",")
}

// A page is what the template shows.
type page struct {
	Title           string
	Verdicts        []string
	Settings        string
	Summaries       []grid
	Sections        []section
	Data            template.JS
	CSS, LibraryCSS template.CSS
	JS, Library     template.JS
	index           map[string]int // of a workload in the data
}

// A section is one workload.
type section struct {
	Name, Note string
	Charts     []figure
	Reasons    grid // policy, reason, how often
	Decisions  grid
}

// A figure is a chart and the picture that stands for it.
type figure struct {
	Trace, Kind, Caption string
	Static               template.URL
}

// Index is the place of a workload in the data.
func (p *page) Index(trace string) int { return p.index[trace] }

func (p *page) write(w io.Writer) error {
	t, err := template.ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// page builds the page of a comparison that has run: details are at its
// typical limit and last cost.
func (c *comparison) page() (*page, error) {
	cost := len(c.costs) - 1
	l := c.typicalLimit()
	p := &page{
		Title:    "Collection policies on " + c.loadNames(),
		Settings: fmt.Sprintf("a limit of %s, %s, ladder %s", l, costName(c.costs[cost]), c.ladder),
		index:    map[string]int{},
	}
	for j := range c.costs {
		p.Verdicts = append(p.Verdicts, c.verdict(j))
		p.Summaries = append(p.Summaries, c.summary(j).plain())
	}
	palette := chart.NewPalette(c.names())
	data := pageData{Policies: c.looks(cost, palette)}
	for i, w := range c.workloads {
		runs := logRuns(w, c.contenders, c.config(w, l, c.costs[cost]), 200, true)
		p.index[w.Name] = i
		s, err := c.section(i, cost, l, runs, palette)
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
		data.Traces = append(data.Traces, c.traceData(i, cost, l, runs))
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	p.Data = template.JS(text) // JSON escapes < as \u003c, so that it cannot end its script element
	return p, p.assets()
}

// assets reads the parts of the page that do not change.
func (p *page) assets() error {
	for name, to := range map[string]func(string){
		"page.css":          func(s string) { p.CSS = template.CSS(s) },
		"uPlot.min.css":     func(s string) { p.LibraryCSS = template.CSS(s) },
		"page.js":           func(s string) { p.JS = template.JS(s) },
		"uPlot.iife.min.js": func(s string) { p.Library = template.JS(s) },
	} {
		text, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return err
		}
		to(string(text))
	}
	return nil
}

func (c *comparison) loadNames() string {
	var names []string
	for _, w := range c.workloads {
		names = append(names, w.Name)
	}
	if n := len(names); n > 5 {
		return fmt.Sprintf("%d workloads", n)
	}
	return strings.Join(names, ", ")
}

func (c *comparison) section(workload, cost int, l limit, runs []chart.Run, palette chart.Palette) (section, error) {
	w := c.workloads[workload]
	s := section{Name: w.Name, Note: fmt.Sprintf("%s allocations, %s in all, %s waits of %s together, %s long; peak reachable %s, limit %s.",
		formatCount(w.Allocs), formatBytes(w.AllocatedBytes), formatCount(w.Syncs), formatDuration(w.Wait), formatDuration(w.Span),
		formatBytes(w.PeakReachable), formatBytes(l.of(w)))}
	var own []sim.Result
	for _, r := range c.finished(cost) {
		if r.Trace == w.Name {
			own = append(own, r)
		}
	}
	limits := chart.Limits("Exposed pause and collections against the limit", "", own, palette)
	for _, f := range []struct {
		kind, caption string
		picture       *chart.Chart
	}{
		{"memory", "Live memory over time. Marks along the top are collections; click a name to show or hide a policy.", chart.Memory("Memory", "", runs)},
		{"pauses", "How long the program was held: the share of pauses that are at most so long.", chart.PauseCDF("Pauses", "", runs, palette)},
		{"front", "Exposed pause against collector time: down and to the left is better.", nil},
		{"limits", "Exposed pause against the limit.", limits},
	} {
		static, err := dataURL(f.picture)
		if err != nil {
			return s, err
		}
		s.Charts = append(s.Charts, figure{w.Name, f.kind, f.caption, static})
	}
	s.Reasons, s.Decisions = reasons(runs)
	return s, nil
}

// dataURL is a chart as an SVG within the page; the empty picture for nil.
func dataURL(c *chart.Chart) (template.URL, error) {
	if c == nil {
		return "data:,", nil
	}
	var b bytes.Buffer
	if err := c.Write(&b, "svg"); err != nil {
		return "", err
	}
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), nil
}
