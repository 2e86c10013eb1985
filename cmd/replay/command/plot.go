package command

import (
	"errors"
	"fmt"
	"github.com/eagergc/eagergc/pressure"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/view"
	"github.com/eagergc/eagergc/sim"
)

func newPlot() *cobra.Command {
	var (
		format, out string
		s           setting
	)
	cmd := &cobra.Command{
		Use:   "plot FILE...",
		Short: "Draw a recording under each policy, or the results of a comparison",
		Long: `plot draws what it is given. For a recording: live memory and garbage over
time with every cycle marked, the distribution of pauses, and the minimum
mutator utilization, under each policy at one limit and cost. For the
results.json of a comparison: exposed pause and collections against the limit.`,
		Example: `  replay plot replay-out/results.json --format png
  replay plot my.arrows --policies never,cudajl --limit 1.25x --cycle 5ms -o pictures`,
		Args: files(1, many, "at least one recording, or a results.json"),
		RunE: func(cmd *cobra.Command, files []string) error {
			kinds := strings.Split(format, ",")
			for _, k := range kinds {
				if err := oneOf("format", k, chart.Formats()); err != nil {
					return err
				}
			}
			if err := canWrite(out); err != nil {
				return err
			}
			var all []picture
			for _, path := range files {
				drawn, err := drawFile(path, &s)
				if err != nil {
					return err
				}
				all = append(all, drawn...)
			}
			dir, err := openFolder(out)
			if err != nil {
				return err
			}
			if err := dir.savePictures(all, kinds); err != nil {
				return err
			}
			dir.report(cmd.ErrOrStderr())
			return nil
		},
	}
	s.manyPolicies(cmd, defaultPolicies)
	s.oneLimit(cmd)
	s.oneCost(cmd)
	f := cmd.Flags()
	f.StringVar(&format, "format", "svg", "`list` of svg, png")
	f.StringVarP(&out, "output", "o", "replay-out", "`folder` for the pictures")
	return cmd
}

// drawFile draws the results in a file, or the recording in it as set.
func drawFile(path string, s *setting) ([]picture, error) {
	results, err := readResults(path)
	switch {
	case results != nil:
		return drawResults(results), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist): // it may be a built-in workload
		return nil, err
	}
	g, err := s.grid([]string{path})
	if err != nil {
		return nil, err
	}
	return drawRuns(g, experiment.Cell{}, palette(g))
}

// drawResults draws each cost of a comparison against the limits.
func drawResults(results []sim.Result) []picture {
	type cost struct{ cycle, ladder time.Duration }
	var costs []cost
	var names []string
	for _, r := range results {
		if k := (cost{r.Cycle, r.Ladder}); !slices.Contains(costs, k) {
			costs = append(costs, k)
		}
		names = append(names, r.Policy)
	}
	colours := view.NewPalette(names)
	var all []picture
	for _, k := range costs {
		of := slices.DeleteFunc(slices.Clone(results), func(r sim.Result) bool { return r.Cycle != k.cycle || r.Ladder != k.ladder })
		all = append(all, picture{fmt.Sprintf("limits-cycle-%v", k.cycle), chart.Limits(limitsTitle,
			fmt.Sprintf("cycle %v, ladder %v", k.cycle, k.ladder), of, colours)})
	}
	return all
}

// A picture is a chart and the stem of its file.
type picture struct {
	stem  string
	chart *chart.Chart
}

const (
	limitsTitle = "Exposed pause and collections against the limit"
	frontTitle  = "Pareto front of exposed pause and collector time"
)

// drawGrid draws a grid that has run: every cost against the limits,
// with its Pareto front and overheads, and for each workload the runs of one limit
// and one cost in detail.
func drawGrid(g *experiment.Grid) ([]picture, error) {
	colours := palette(g)
	var all []picture
	for j, cost := range g.Costs {
		note, stem := experiment.CostName(cost)+", ladder "+g.Ladder.String(), fileStem(experiment.CostName(cost))
		all = append(all,
			picture{"limits-" + stem, chart.Limits(limitsTitle, note, g.Finished(j), colours)},
			picture{"front-" + stem, chart.Front(frontTitle, fmt.Sprintf("limit %s, %s", g.Limits[typical(g, 0).Limit], note), finishedAt(g, typical(g, 0).Limit, j), colours)},
			picture{"lbo-" + stem, chart.LBO("Lower-bound overhead, "+view.MeanOver(g), note, view.Overheads(g, j, everyWorkload(g)), colours)})
	}
	for i := range g.Workloads {
		drawn, err := drawRuns(g, typical(g, i), colours)
		if err != nil {
			return nil, err
		}
		all = append(all, drawn...)
	}
	return all, nil
}

// finishedAt returns the results at one limit and one cost.
func finishedAt(g *experiment.Grid, limit, cost int) (results []sim.Result) {
	for i, o := range g.Outcomes() {
		if c := g.Cell(i); o.Err == nil && c.Limit == limit && c.Cost == cost {
			results = append(results, o.Result)
		}
	}
	return results
}

func everyWorkload(g *experiment.Grid) []int {
	all := make([]int, len(g.Workloads))
	for i := range all {
		all[i] = i
	}
	return all
}

// typical is the cell of a workload that is drawn in detail: at the middle of the
// limits, the tighter one of two, and the last cost.
func typical(g *experiment.Grid, workload int) experiment.Cell {
	return experiment.Cell{Workload: workload, Limit: (len(g.Limits) - 1) / 2, Cost: len(g.Costs) - 1}
}

// keepTypical makes a grid keep the logs of the cells that are drawn in detail.
func keepTypical(g *experiment.Grid) {
	g.Logs = func(c experiment.Cell) bool {
		at := typical(g, c.Workload)
		return c.Limit == at.Limit && c.Cost == at.Cost
	}
}

func palette(g *experiment.Grid) chart.Palette { return view.NewPalette(view.Names(g)) }

// drawRuns replays a cell under each contender, and draws memory, pauses and
// utilization.
func drawRuns(g *experiment.Grid, at experiment.Cell, colours chart.Palette) ([]picture, error) {
	const slots = 400 // of a memory chart, whose panels are 640 points wide
	runs := view.LogRuns(g, at, slots, false)
	if len(runs) == 0 {
		return nil, nil
	}
	w, l := g.Workloads[at.Workload], g.Limits[at.Limit]
	note := fmt.Sprintf("%s, limit %s (%s), %s, ladder %s", w.Name, l, pressure.Bytes(l.Of(w)).String(), experiment.CostName(g.Costs[at.Cost]), g.Ladder)
	stem := fileStem(w.Name)
	return []picture{
		{"memory-" + stem, chart.Memory("Live memory and collections over time", note, runs, colours)},
		{"pauses-" + stem, chart.Pauses("How long the program was held", note, runs, colours)},
		{"histogram-" + stem, chart.PauseHistogram("How often the program was held for how long", note, runs, colours)},
		{"mmu-" + stem, chart.MMU("Minimum mutator utilization", note, runs, colours)},
	}, nil
}

// fileStem makes a name of any text: letters, digits, dots and dashes.
func fileStem(text string) string {
	stem := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, text)
	return strings.TrimLeft(stem, ".")
}

// savePictures writes each picture in each format, side by side.
func (f *folder) savePictures(pictures []picture, formats []string) error {
	var g errgroup.Group
	g.SetLimit(4)
	for _, p := range pictures {
		for _, format := range formats {
			g.Go(func() error {
				return f.write(p.stem+"."+format, func(w io.Writer) error { return p.chart.Write(w, format) })
			})
		}
	}
	return g.Wait()
}
