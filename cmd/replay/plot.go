package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
)

func newPlot() *cobra.Command {
	var (
		policies, limitText, format, out string
		price                            price
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
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, files []string) error {
			kinds := strings.Split(format, ",")
			for _, k := range kinds {
				if !slices.Contains(chart.Formats(), k) {
					return fmt.Errorf("unknown format %q (want svg, png or both)", k)
				}
			}
			contenders, err := parsePolicies(policies)
			if err != nil {
				return err
			}
			l, err := parseLimit(limitText)
			if err != nil {
				return err
			}
			costs, ladder, err := price.parse()
			if err != nil {
				return err
			}
			var all []picture
			for _, path := range files {
				c := &comparison{ctx: cmd.Context(), contenders: contenders, limits: []limit{l}, costs: costs, ladder: ladder}
				drawn, err := c.drawFile(path)
				if err != nil {
					return err
				}
				all = append(all, drawn...)
			}
			dir, err := openFolder(out)
			if err != nil {
				return err
			}
			defer dir.close()
			if err := dir.savePictures(all, kinds); err != nil {
				return err
			}
			dir.report(cmd.ErrOrStderr())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&policies, "policies", defaultPolicies(), "`list` of policies and optima")
	f.StringVar(&limitText, "limit", "1.5x", "limit: `bytes` (8GiB) or a factor of the peak reachable bytes (1.5x)")
	price.bind(cmd, "10ms", "2x")
	f.StringVar(&format, "format", "svg", "`list` of svg, png")
	f.StringVarP(&out, "output", "o", "replay-out", "`folder` for the pictures")
	_ = cmd.RegisterFlagCompletionFunc("policies", completePolicies)
	return cmd
}

// drawFile draws the results or the recording in a file.
func (c *comparison) drawFile(path string) ([]picture, error) {
	results, err := readResults(path)
	switch {
	case results != nil:
		return drawResults(results), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist): // it may be a built-in workload
		return nil, err
	}
	w, err := loadWorkload(path)
	if err != nil {
		return nil, err
	}
	return drawRuns(w, c.contenders, c.limits[0], c.costs[0], c.ladder, chart.NewPalette(c.names()))
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
	palette := chart.NewPalette(names)
	var all []picture
	for _, k := range costs {
		of := slices.DeleteFunc(slices.Clone(results), func(r sim.Result) bool { return r.Cycle != k.cycle || r.Ladder != k.ladder })
		all = append(all, picture{fmt.Sprintf("limits-cycle-%v", k.cycle), chart.Limits(limitsTitle,
			fmt.Sprintf("cycle %v, ladder %v", k.cycle, k.ladder), of, palette)})
	}
	return all
}
