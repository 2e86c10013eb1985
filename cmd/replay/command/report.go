package command

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

//go:embed page
var pageFiles embed.FS

// reportPolicies are few enough for one chart: never, the reference, the best of the others, our
// own, and the optimum.
const reportPolicies = "never,cudajl,sqrt,v8step,pacer,optimum-overlap"

func newReport() *cobra.Command {
	var (
		out string
		s   setting
	)
	cmd := &cobra.Command{
		Use:   "report [FILE...] -o report.html",
		Short: "Write one HTML file that shows which policy to choose, and why",
		Long: `report replays recordings under some policies and writes one complete HTML file. The
file begins with the best policy, the limit and the savings. For each recording it shows
the memory over time under two policies side by side, every collection with its reason,
the pauses, the utilization, the overhead, and the Pareto front. Without a FILE it
replays the built-in recordings of PyTorch and of Go programs with C libraries. Limits
and words are those of replay compare.`,
		Example: `  replay report -o report.html
  replay report my.arrows --policies never,cudajl,threshold:0.9 --limits 1.25x,1.5x,2x -o mine.html`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if kind := filepath.Ext(out); kind != "" && kind != ".html" && kind != ".htm" {
				return fmt.Errorf("-o %s: report writes HTML: name it %s.html", out, strings.TrimSuffix(out, kind))
			}
			if err := canWrite(out); err != nil {
				return err
			}
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			if err := runGrid(cmd, g); err != nil {
				return err
			}
			p, err := s.newPage(cmd, g, files)
			if err != nil {
				return err
			}
			if err := writeFile(out, p.write); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s\n", recording.Plain(out))
			return nil
		},
	}
	s.manyPolicies(cmd, reportPolicies)
	s.manyLimits(cmd, defaultLimits)
	s.manyCosts(cmd, "10ms")
	s.ofDevice(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "report.html", "`file` to write")
	return cmd
}

type page struct {
	Title, Verdict, World, LostBy string
	Cards                         []chart.Card
	Summaries                     []chart.Table
	Recordings                    []pageRecording
	Live                          *simulator // nil: no simulator is in the page
	Provenance                    []entry
	Data                          template.JS
	CSS                           template.CSS
	JS                            template.JS
	ScriptHash                    string // of JS: the browser runs no other script
}

type entry struct{ Name, Value string }

type pageRecording struct {
	Index                      int
	ID, Name, Short, About, At string
	Open                       bool
	Cards                      []chart.Card
	Spark                      string // path of its reachable bytes, 100 wide and 20 high
	Runs                       chart.Table
	Charts                     []chart.Figure
	Reasons                    chart.Table // policy, decision, reason, how often
}

// newPage returns the page of a grid that has run. Its details are at the last cost. They are at
// the advised limit of each recording, or at the typical limit if the user gave limits.
func (s *setting) newPage(cmd *cobra.Command, g *experiment.Grid, files []string) (*page, error) {
	b := &pageBuilder{Builder: chart.NewBuilder(g, len(g.Costs)-1, chart.Typical(g, 0).Limit), asked: cmd.Flags().Changed("limits")}
	for i := range g.Workloads {
		b.questions = append(b.questions, s.question(g, i, b.Cost))
	}
	if !cmd.Flags().Changed("policies") { // the policies of replay advise
		all, err := experiment.ParseContenders(advisePolicies)
		if err != nil {
			return nil, err
		}
		for i := range b.questions {
			b.questions[i].Policies = all
		}
	}
	b.data.Policies = chart.Looks(g, b.Palette)
	p := &page{Title: b.title(), Verdict: chart.Verdict(g, b.Cost), World: b.world(), LostBy: chart.LostBy(g)}
	for j := range g.Costs {
		p.Summaries = append(p.Summaries, chart.Summary(g, j))
	}
	n := len(g.Workloads)
	p.Recordings, b.data.Recordings, b.advice = make([]pageRecording, n), make([]chart.Recording, n), make([]*experiment.Advice, n)
	var cores errgroup.Group
	cores.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		cores.Go(func() (err error) {
			p.Recordings[i], b.data.Recordings[i], err = b.recording(cmd.Context(), i)
			return err
		})
	}
	err := cores.Wait()
	if err != nil {
		return nil, err
	}
	p.Cards = b.cards()
	if p.Provenance, err = provenance(cmd, g, files); err != nil {
		return nil, err
	}
	if p.Data, err = script(&b.data); err != nil {
		return nil, err
	}
	return p, nil
}

// assets reads the fixed parts of the page.
func (p *page) assets() error {
	style, err := readAssets("uPlot.min.css", "page.css")
	if err != nil {
		return err
	}
	p.CSS = template.CSS(style)
	scripts := []string{"uPlot.iife.min.js", "charts.js", "memory.js", "page.js"}
	if p.Live != nil {
		scripts = append(scripts, "live.js", "save.js", "dials.js", "open.js")
	}
	script, err := readAssets(scripts...)
	p.JS = template.JS(script)
	return err
}

func readAssets(names ...string) (string, error) {
	var all strings.Builder
	for _, name := range names {
		text, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return "", err
		}
		all.Write(text)
		all.WriteString("\n")
	}
	return all.String(), nil
}

func (p *page) write(w io.Writer) error {
	if err := p.assets(); err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{"about": samples.About}).ParseFS(pageFiles, "page/page.html", "page/live.html")
	if err != nil {
		return err
	}
	// The template rewrites the script, so the hash is computed from its output.
	var made bytes.Buffer
	if err := t.Execute(&made, p); err != nil {
		return err
	}
	_, script, _ := bytes.Cut(made.Bytes(), []byte(`<script type="module">`))
	script, _, _ = bytes.Cut(script, []byte("</script>"))
	sum := sha256.Sum256(script)
	p.ScriptHash = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return t.Execute(w, p)
}

type pageBuilder struct {
	*chart.Builder
	data      chart.Data
	asked     bool                  // the user gave the limits of the grid
	questions []experiment.Question // of each recording
	advice    []*experiment.Advice  // the answers; nil without advice
}

// recording returns the part of one workload, and its data. It is safe for concurrent use with
// different workloads.
func (b *pageBuilder) recording(ctx context.Context, i int) (r pageRecording, data chart.Recording, err error) {
	g, w := b.Grid, b.Grid.Workloads[i]
	advice, err := b.questions[i].Advise(ctx)
	if err != nil && !errors.Is(err, experiment.ErrNoAdvice) {
		return r, data, err
	}
	b.advice[i] = advice
	shown := *b.Builder
	if advice != nil && !b.asked {
		alone := *g
		alone.Limits = []experiment.Limit{{Bytes: advice.Limit}}
		shown.Grid, shown.Limit = &alone, 0
	}
	// Columns of all runs, and of one run. A column has up to four levels.
	const all, most, least = 120_000, 40_000, 300
	slots := min(most, max(least, all/max(1, len(g.Workloads)*len(g.Contenders))))
	runs := chart.LogRuns(shown.Grid, shown.Cell(i), slots, true)
	r = pageRecording{
		Index: i, ID: "recording-" + chart.Stem(w.Name), Name: w.Name, Short: b.short(i, advice), About: chart.About(w),
		At: shown.At(i), Open: len(g.Workloads) == 1, Runs: chart.RunTable(runs), Reasons: chart.Reasons(runs), Spark: chart.Spark(runs),
	}
	if len(g.Workloads) > 1 {
		r.Cards = b.AdviceCards(advice, b.questions[i].Most)
	}
	data = shown.Recording(i, runs)
	r.Charts = b.Figures(i, runs)
	data.Charts = make(map[string][]chart.LineChart)
	for _, f := range r.Charts {
		data.Charts[f.Kind] = f.Data
	}
	return r, data, nil
}

// script returns the data of the page: JSON, compressed with gzip, in base64.
func script(d *chart.Data) (template.JS, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	if err := json.NewEncoder(zip).Encode(d); err != nil {
		return "", err
	}
	err = zip.Close()
	return template.JS(`"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"`), err
}
