package main

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
)

// A picture is a chart and the stem of its file.
type picture struct {
	stem  string
	chart *chart.Chart
}

const limitsTitle = "Exposed pause and collections against the limit"

// pictures draws a comparison that has run: every cost against the limits,
// and for each workload the runs of one limit and one cost in detail.
func (c *comparison) pictures() ([]picture, error) {
	palette := chart.NewPalette(c.names())
	var all []picture
	for j := range c.costs {
		all = append(all, picture{"limits-" + fileStem(c.costName(j)), chart.Limits(limitsTitle,
			c.costName(j)+", ladder "+c.ladder.String(), c.finished(j), palette)})
	}
	for _, w := range c.workloads {
		drawn, err := drawRuns(w, c.contenders, c.typicalLimit(), c.costs[len(c.costs)-1], c.ladder, palette)
		if err != nil {
			return nil, err
		}
		all = append(all, drawn...)
	}
	return all, nil
}

// typicalLimit is the limit drawn in detail: the middle of the list, the
// tighter one of two.
func (c *comparison) typicalLimit() limit { return c.limits[(len(c.limits)-1)/2] }

func (c *comparison) names() []string {
	var names []string
	for _, p := range c.contenders {
		names = append(names, p.String())
	}
	return names
}

// finished returns the results at one cost, without the runs that have none.
func (c *comparison) finished(cost int) []sim.Result {
	var results []sim.Result
	for i := range c.workloads {
		for l := range c.limits {
			for p := range c.contenders {
				if o := c.at(i, l, cost, p); o.Err == nil {
					results = append(results, o.Result)
				}
			}
		}
	}
	return results
}

// logRuns replays one workload under each contender with a log. Contenders
// without a schedule are left out; the table says so.
func logRuns(w *sim.Workload, contenders []sim.Contender, cfg sim.Config, slots int, decisions bool) []chart.Run {
	found := make([]*chart.Run, len(contenders))
	var wg sync.WaitGroup
	for i, p := range contenders {
		wg.Go(func() {
			cfg := cfg
			cfg.Log = &sim.Log{KeepDecisions: decisions}
			if r, err := p.Run(w, cfg); err == nil {
				found[i] = &chart.Run{Result: r, Log: cfg.Log, Levels: w.Series(cfg.Log, r.Elapsed, slots)}
			}
		})
	}
	wg.Wait()
	var runs []chart.Run
	for _, r := range found {
		if r != nil {
			runs = append(runs, *r)
		}
	}
	return runs
}

// drawRuns replays one workload under each contender, and draws memory, pauses
// and utilization.
func drawRuns(w *sim.Workload, contenders []sim.Contender, l limit, cost sim.Cost, ladder sim.Ladder, palette chart.Palette) ([]picture, error) {
	const slots = 400 // of a memory chart, whose panels are 640 points wide
	runs := logRuns(w, contenders, sim.Config{Limit: l.of(w), Cost: cost, Ladder: ladder}, slots, false)
	if len(runs) == 0 {
		return nil, nil
	}
	note := fmt.Sprintf("%s, limit %s (%s), %s, ladder %s", w.Name, l, formatBytes(l.of(w)), costName(cost), ladder)
	stem := fileStem(w.Name)
	return []picture{
		{"memory-" + stem, chart.Memory("Live memory and collections over time", note, runs)},
		{"pauses-" + stem, chart.PauseCDF("How long the program was held", note, runs, palette)},
		{"histogram-" + stem, chart.PauseHistogram("How often the program was held for how long", note, runs, palette)},
		{"mmu-" + stem, chart.MMU("Minimum mutator utilization", note, runs, palette)},
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
