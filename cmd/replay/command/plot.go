package command

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
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
			var all []chart.Picture
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
func drawFile(path string, s *setting) ([]chart.Picture, error) {
	results, err := readResults(path)
	switch {
	case results != nil:
		return chart.OfResults(results), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist): // it may be a built-in workload
		return nil, err
	}
	g, err := s.grid([]string{path})
	if err != nil {
		return nil, err
	}
	return chart.OfCell(g, experiment.Cell{}), nil
}

// keepTypical makes a grid keep the logs of the cells that are drawn in detail.
func keepTypical(g *experiment.Grid) {
	g.Logs = func(c experiment.Cell) bool {
		at := chart.Typical(g, c.Workload)
		return c.Limit == at.Limit && c.Cost == at.Cost
	}
}

// savePictures writes each picture in each format, side by side.
func (f *folder) savePictures(pictures []chart.Picture, formats []string) error {
	var g errgroup.Group
	g.SetLimit(4)
	for _, p := range pictures {
		for _, format := range formats {
			g.Go(func() error {
				return f.write(p.Stem+"."+format, func(w io.Writer) error { return p.Chart.Write(w, format) })
			})
		}
	}
	return g.Wait()
}
