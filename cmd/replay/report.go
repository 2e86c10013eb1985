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
	"strings"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
	"github.com/eagergc/eagergc/sim/experiment"
)

//go:embed page
var pageFiles embed.FS

func newReport() *cobra.Command {
	var (
		out string
		s   setting
	)
	cmd := &cobra.Command{
		Use:   "report [FILE...] -o report.html",
		Short: "Write one HTML file that shows which policy to choose, and why",
		Long: `report replays the workloads under some policies and writes one HTML file that
needs nothing else: the verdict first, then for each workload its memory over time
with every collection, the pauses, the front of pause against collector time, and
the reasons that the policies gave. The charts zoom and hide policies; without
JavaScript they are pictures. Without a FILE it takes the built-in workloads.`,
		Example: `  replay report -o report.html
  replay report my.arrows --policies never,cudajl,threshold:0.9 --limits 1.25x,1.5x,2x -o mine.html`,
		RunE: func(cmd *cobra.Command, files []string) error {
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			if err := runGrid(cmd, g); err != nil {
				return err
			}
			page, err := newPage(g)
			if err != nil {
				return err
			}
			dir, err := openFolder(filepath.Dir(out))
			if err != nil {
				return err
			}
			if err := dir.write(filepath.Base(out), page.write); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s\n", out)
			return nil
		},
	}
	s.manyPolicies(cmd, reportPolicies)
	s.manyLimits(cmd, "1.25x,1.5x,2x,3x,4x")
	s.manyCosts(cmd, "10ms")
	cmd.Flags().StringVarP(&out, "output", "o", "report.html", "`file` to write")
	return cmd
}

// reportPolicies are few enough to tell apart in one chart: the control, the
// reference, the best of the others, our own, and the optimum.
const reportPolicies = "never,cudajl,sqrt,v8step,pacer,optimum-overlap"

// A page is what the template shows.
type page struct {
	Title           string
	Verdicts        []string
	Settings        string
	Summaries       []table
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
	Reasons    table // policy, reason, how often
	Decisions  table
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

// newPage builds the page of a grid that has run: details are of its typical cells.
func newPage(g *experiment.Grid) (*page, error) {
	at := typical(g, 0)
	p := &page{
		Title:    "Collection policies on " + loadNames(g),
		Settings: fmt.Sprintf("a limit of %s, %s, ladder %s", g.Limits[at.Limit], costName(g.Costs[at.Cost]), g.Ladder),
		index:    map[string]int{},
	}
	for j := range g.Costs {
		p.Verdicts = append(p.Verdicts, verdict(g, j))
		p.Summaries = append(p.Summaries, summary(g, j).plain())
	}
	colours := palette(g)
	data := pageData{Policies: looks(g, at.Cost, colours)}
	for i, w := range g.Workloads {
		at := typical(g, i)
		runs := logRuns(g, at, 200, true)
		p.index[w.Name] = i
		s, err := newSection(g, at, runs, colours)
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
		data.Traces = append(data.Traces, newTraceData(g, at, runs))
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

func loadNames(g *experiment.Grid) string {
	var names []string
	for _, w := range g.Workloads {
		names = append(names, w.Name)
	}
	if n := len(names); n > 5 {
		return fmt.Sprintf("%d workloads", n)
	}
	return strings.Join(names, ", ")
}

func newSection(g *experiment.Grid, at experiment.Cell, runs []chart.Run, colours chart.Palette) (section, error) {
	w := g.Workloads[at.Workload]
	s := section{Name: w.Name, Note: fmt.Sprintf("%s allocations, %s in all, %s waits of %s together, %s long; peak reachable %s, limit %s.",
		formatCount(w.Allocs), formatBytes(w.AllocatedBytes), formatCount(w.Syncs), formatDuration(w.Wait), formatDuration(w.Span),
		formatBytes(w.PeakReachable), formatBytes(g.Limits[at.Limit].Of(w)))}
	var own []sim.Result
	for _, r := range g.Finished(at.Cost) {
		if r.Trace == w.Name {
			own = append(own, r)
		}
	}
	limits := chart.Limits("Exposed pause and collections against the limit", "", own, colours)
	for _, f := range []struct {
		kind, caption string
		picture       *chart.Chart
	}{
		{"memory", "Live memory over time. Marks along the top are collections; click a name to show or hide a policy.", chart.Memory("Memory", "", runs)},
		{"pauses", "How long the program was held: the share of pauses that are at most so long.", chart.PauseCDF("Pauses", "", runs, colours)},
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
