package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot/vg"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
)

func newPlot() *cobra.Command {
	var (
		format, out, width string
		layout             chart.Layout
		from, to           time.Duration
		s                  setting
	)
	cmd := &cobra.Command{
		Use:   "plot FILE...",
		Short: "Draw a recording under each policy, or the results of a comparison",
		Long: `plot draws a recording or the results of a comparison. Of a recording it draws live
memory and garbage over time with every cycle marked, the distribution of pauses, and
the minimum mutator utilization, under each policy at one limit and cost. Of the
results.json of a comparison it draws exposed pause and collections against the limit.

For a paper: --format pdf, the --width of the column, --font, and --bare if the caption
has the title. With --from and --to it draws only memory, in that window of each run.`,
		Example: `  replay plot replay-out/results.json --format png
  replay plot my.arrows --policies never,cudajl --limit 1.25x --cycle 5ms -o pictures
  replay plot mlp --policies cudajl,pacer --format pdf --width 3.3in --font 8 --bare --from 0.4s --to 0.6s`,
		Args: files(1, many, "at least one recording, or a results.json"),
		RunE: func(cmd *cobra.Command, files []string) error {
			kinds := strings.Split(format, ",")
			for _, k := range kinds {
				if err := oneOf("format", k, chart.Formats()); err != nil {
					return err
				}
			}
			if width != "" {
				w, err := vg.ParseLength(width)
				if err != nil || !(w > 0) || strings.Trim(width, "0123456789.") == "" {
					return fmt.Errorf("--width %s: want a width such as 3.3in, 84mm or 240pt", width)
				}
				layout.Width = w.Points()
			}
			if layout.Font < 0 || layout.Font > 100 {
				return fmt.Errorf("--font %v: want points, such as 8", layout.Font)
			}
			if from < 0 || to < 0 || to > 0 && to <= from {
				return fmt.Errorf("--from %v --to %v: want a window of the run, such as --from 0.4s --to 0.6s", from, to)
			}
			if err := canWrite(out); err != nil {
				return err
			}
			var all []chart.Picture
			for _, path := range files {
				drawn, err := drawFile(path, &s, from, to)
				if err != nil {
					return err
				}
				all = append(all, drawn...)
			}
			for _, p := range all {
				p.Chart.Lay(layout)
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
	f.StringVar(&format, "format", "svg", "`list` of svg, png, pdf")
	f.StringVar(&width, "width", "", "`width` of a picture: 3.3in, 84mm, 240pt")
	f.Float64Var(&layout.Font, "font", 0, "`points` of labels (default: 9)")
	f.StringVar(&layout.Title, "title", "", "`text` of the title")
	f.BoolVar(&layout.Bare, "bare", false, "draw no title")
	f.DurationVar(&from, "from", 0, "`time` of a run at which the window begins")
	f.DurationVar(&to, "to", 0, "`time` of a run at which the window ends (default: the end)")
	f.StringVarP(&out, "output", "o", "replay-out", "`folder` for the pictures")
	return cmd
}

// drawFile draws the results or the recording in a file: a window of it if from or to is not 0.
func drawFile(path string, s *setting, from, to time.Duration) ([]chart.Picture, error) {
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
	if length := g.Workloads[0].Span; from >= length {
		return nil, fmt.Errorf("--from %v: %s runs from 0 to %v", from, g.Workloads[0].Name, length)
	}
	if from > 0 || to > 0 {
		return chart.OfWindow(g, experiment.Cell{}, from, cmp.Or(to, math.MaxInt64)), nil
	}
	return chart.OfCell(g, experiment.Cell{}), nil
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
