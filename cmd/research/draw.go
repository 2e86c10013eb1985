package main

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawCorpus draws the position of each card on the first two principal components.
func drawCorpus(cards []card, at [][2]float64, share [2]float64) ([]byte, error) {
	p := plot.New()
	p.X.Label.Text = fmt.Sprintf("first principal component (%.0f %% of the variance)", 100*share[0])
	p.Y.Label.Text = fmt.Sprintf("second (%.0f %%)", 100*share[1])
	for i, group := range []string{"PyTorch", "Go", "GoMLX", "C"} {
		var points plotter.XYLabels
		for k, c := range cards {
			if c.Group == group {
				points.XYs, points.Labels = append(points.XYs, plotter.XY{X: at[k][0], Y: at[k][1]}), append(points.Labels, " "+c.Name)
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		dots.Color, dots.Shape, dots.Radius = plotutil.Color(i), draw.CircleGlyph{}, vg.Points(3)
		names, err := plotter.NewLabels(points)
		if err != nil {
			return nil, err
		}
		p.Add(dots, names)
		p.Legend.Add(group+"    ", dots)
	}
	p.Add(plotter.NewGrid())
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = p.X.Min-0.5, p.X.Max+0.8, p.Y.Min-0.3, p.Y.Max+0.5
	w, err := p.WriterTo(820, 480, "svg")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = w.WriteTo(&b)
	return b.Bytes(), err
}
