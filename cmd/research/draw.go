package main

import (
	"bytes"
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A curve is a named line of a picture. Points outside the axes are left out.
type curve struct {
	Name string
	X, Y []float64
}

// drawCurves draws curves on logarithmic axes.
func drawCurves(x, y string, xs, ys []float64, curves []curve) ([]byte, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Scale, p.Y.Scale, p.Legend.Top, p.Legend.YOffs = plot.LogScale{}, plot.LogScale{}, true, -10
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(xs), ticks(ys)
	for i, c := range curves {
		var points plotter.XYs
		for k := range c.X {
			if c.X[k] >= xs[0] && c.X[k] <= xs[len(xs)-1] && c.Y[k] >= ys[0] && c.Y[k] <= ys[len(ys)-1] {
				points = append(points, plotter.XY{X: c.X[k], Y: c.Y[k]})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes, dots.Color, dots.Shape, dots.Radius = plotutil.Color(i), plotutil.Dashes(i/7), plotutil.Color(i), plotutil.Shape(i), 2
		p.Add(line, dots)
		p.Legend.Add(c.Name+"    ", line, dots) // the spaces leave room for fonts that are wider than gonum's
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xs[0], xs[len(xs)-1]*math.Pow(xs[len(xs)-1]/xs[0], 0.25), ys[0], ys[len(ys)-1] // with room for the legend
	return svg(p)
}

func ticks(at []float64) (t plot.ConstantTicks) {
	for _, x := range at {
		t = append(t, plot.Tick{Value: x, Label: fmt.Sprintf("%g", x)})
	}
	return t
}

func svg(p *plot.Plot) ([]byte, error) {
	w, err := p.WriterTo(820, 480, "svg")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = w.WriteTo(&b)
	return b.Bytes(), err
}

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
	return svg(p)
}
