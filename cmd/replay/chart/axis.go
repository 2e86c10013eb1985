//go:build !js

package chart

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// A unit scales the numbers of an axis.
type unit struct {
	name string
	size float64
}

// bytesUnit returns the IEC unit in which most bytes is at least 1.
func bytesUnit(most int64) unit {
	u := unit{"B", 1}
	for _, name := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if float64(most) < u.size*1024 {
			break
		}
		u = unit{name, u.size * 1024}
	}
	return u
}

// timeUnit returns the unit in which most is at least 1.
func timeUnit(most time.Duration) unit {
	for _, u := range []unit{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
		if float64(most) >= u.size {
			return u
		}
	}
	return unit{"ns", 1}
}

// Logarithmic axes hold the logarithms of their values. With plot.LogScale, gonum misjudges the
// middle of the axis, and leaves room for the label at the wrong end.

// logTime returns the place of a duration on an axis of logTimeAxis.
func logTime(d time.Duration) float64 { return math.Log10(d.Seconds()) }

// logTimeAxis makes a an axis of durations from least to most. Its ticks show their unit.
func logTimeAxis(a *plot.Axis, least, most time.Duration) {
	a.Min, a.Max = logTime(least), logTime(most)
	ticks := logTicks(least.Seconds(), most.Seconds())
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = time.Duration(math.Round(math.Pow(10, ticks[i].Value) * 1e9)).String()
		}
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
}

// logTicksAt marks the given values on a logarithmic axis.
func logTicksAt(values []float64, suffix string) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: math.Log10(v), Label: strconv.FormatFloat(v, 'g', 4, 64) + suffix})
	}
	return ticks
}

// linearTicks marks about n multiples of 1, 2 or 5 times a power of ten.
func linearTicks(n int) plot.TickerFunc {
	return func(low, high float64) []plot.Tick {
		step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(n))))
		for _, f := range []float64{2, 2.5, 2} {
			if (high-low)/step > float64(n)*1.5 {
				step *= f
			}
		}
		var ticks []plot.Tick
		for k := math.Ceil(low / step); k*step <= high*(1+1e-9); k++ {
			ticks = append(ticks, plot.Tick{Value: k * step, Label: strconv.FormatFloat(k*step, 'g', 6, 64)})
		}
		return ticks
	}
}

// logTicks marks the logarithms of 1 to 9 times the powers of ten from low to high. It labels 1,
// 2 and 5, or only the powers if there are many.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	wide := high/low > 60
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for k := 1.0; k < 10; k++ {
			v := k * math.Pow(10, e)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: math.Log10(v)}
			if k == 1 || !wide && (k == 2 || k == 5) {
				t.Label = strconv.FormatFloat(v, 'g', 6, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}
