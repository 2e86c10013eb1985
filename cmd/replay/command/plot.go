package command

import (
	"fmt"
	"io"
	"strings"

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
		s                  setting
	)
	cmd := &cobra.Command{
		Use:   "plot FILE...",
		Short: "Draw a recording under each policy",
		Long: `plot draws live memory and garbage over time with every cycle marked, the distribution
of pauses, and the minimum mutator utilization, under each policy at one limit and cost.

For a paper: --format pdf, the --width of the column, --font, and --bare if the caption
has the title.`,
		Example: `  replay plot my.arrows --policies never,cudajl --limit 1.25x --cycle 5ms -o pictures
  replay plot mlp --policies cudajl,pacer --format pdf --width 3.3in --font 8 --bare`,
		Args: files(1, many, "at least one recording"),
		RunE: func(cmd *cobra.Command, files []string) error {
			kinds := strings.Split(format, ",")
			for _, k := range kinds {
				if err := oneOf("format", k, chart.Formats()); err != nil {
					return err
				}
			}
			if width != "" {
				w, err := vg.ParseLength(width)
				if err != nil || !(w > 0 && w <= 100*vg.Inch) || strings.Trim(width, "0123456789.") == "" {
					return fmt.Errorf("--width %s: want a width up to 100in, such as 3.3in, 84mm or 240pt", width)
				}
				layout.Width = w.Points()
			}
			if layout.Font < 0 || layout.Font > 100 {
				return fmt.Errorf("--font %v: want points, such as 8", layout.Font)
			}
			if err := canWrite(out); err != nil {
				return err
			}
			var all []chart.Picture
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			for i := range g.Workloads {
				all = append(all, chart.OfCell(g, experiment.Cell{Workload: i})...)
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
	f.StringVarP(&out, "output", "o", "replay-out", "`folder` for the pictures")
	return cmd
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
