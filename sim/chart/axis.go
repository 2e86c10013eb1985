package chart

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// A unit scales an axis to numbers that can be read.
type unit struct {
	name string
	size float64
}

// bytesUnit is the IEC unit in which most bytes is at least 1.
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

// timeUnit is the unit in which most is at least 1.
func timeUnit(most time.Duration) unit {
	for _, u := range []unit{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
		if float64(most) >= u.size {
			return u
		}
	}
	return unit{"ns", 1}
}

// logTime makes a an axis of durations in seconds, from least to most: whole
// decades apart, with ticks that carry their unit.
func logTime(a *plot.Axis, least, most time.Duration) {
	a.Scale = plot.LogScale{}
	a.Min, a.Max = least.Seconds(), most.Seconds()
	a.Tick.Marker = plot.TickerFunc(logTimeTicks)
}

func logTimeTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	first := int(math.Floor(math.Log10(low)))
	last := int(math.Ceil(math.Log10(high)))
	for e := first; e <= last; e++ {
		decade := math.Pow(10, float64(e))
		for k := 1.0; k < 10; k++ {
			v := k * decade
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if k == 1 || (last-first <= 2 && (k == 2 || k == 5)) {
				t.Label = time.Duration(math.Round(v * 1e9)).String()
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// ticksAt marks the given values, which are few.
func ticksAt(values []float64, suffix string) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 4, 64) + suffix})
	}
	return ticks
}

// linearTicks marks multiples of 1, 2 or 5 times a power of ten: about n of them.
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

// logFromZero makes a an axis of the values, none negative, on which factors
// are distances. Zeros, which have no logarithm, are placed by the returned
// function at the foot of the axis, where a tick says 0.
func logFromZero(a *plot.Axis, values []float64) (place func(float64) float64) {
	least, most, zero := math.Inf(1), 0.0, false
	for _, v := range values {
		most = max(most, v)
		if v > 0 {
			least = min(least, v)
		} else {
			zero = true
		}
	}
	if most == 0 {
		least, most = 1, 1
	}
	foot := least / 1.2
	if zero {
		foot = least / 3
	}
	a.Scale = plot.LogScale{}
	a.Min, a.Max = foot, max(most*1.2, 3*least)
	a.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := logTicks(least/1.2, high)
		if zero {
			ticks = append(ticks, plot.Tick{Value: foot, Label: "0"})
		}
		return ticks
	})
	return func(v float64) float64 { return max(v, foot) }
}

// logTicks labels 1, 2 and 5 times powers of ten, or powers alone if there are many.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	wide := high/low > 200
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for k := 1.0; k < 10; k++ {
			t := plot.Tick{Value: k * math.Pow(10, e)}
			if t.Value < low || t.Value > high {
				continue
			}
			if k == 1 || !wide && (k == 2 || k == 5) {
				t.Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}
