package debug

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A picture is the last minutes of one source. Places along the time axis are in
// percent of the width, so that text keeps its size at any width; paths are 1000 wide
// and stretched. Heights are in pixels.
type picture struct {
	Name                  string
	Live, Reserved, Limit int64
	Line, Band, Held      string // paths: of live, of the least and the most of each step, and of reserved
	LimitAt               float64
	LimitSeen             bool // else it is above the picture
	Levels, Times         []tick
	Marks                 []mark
	About                 string // for those who do not see it
	Height, Top, End      int
}

// A tick is a place on an axis.
type tick struct {
	At   float64
	Text string
}

// place is a place along the time axis.
func place(percent float64) string { return fmt.Sprintf("%.2f%%", percent) }

func sum(all []int) (n float64) {
	for _, x := range all {
		n += float64(x)
	}
	return n
}

// symbols are drawn for cycles, by their trigger.
var symbols = map[string]string{"policy": "┃", "refusal": "▼", "explicit": "◆", "natural": "○"}

// A mark is a step in which cycles ended.
type mark struct {
	At      float64
	Trigger string // of the most telling one
	Text    string
}

const (
	pictureHeight = 200 // pixels of the plot
	marksHeight   = 18  // above it
	tooHigh       = 3   // a limit of more than so many times what was live is cut off
)

// draw draws one source of a timeline.
func draw(line *gc.Timeline, source int) picture {
	past := line.Sources[source]
	p := picture{Name: past.Space.String(), Height: pictureHeight, Top: marksHeight, End: marksHeight + pictureHeight}
	first, now := past.Levels[0].Start, line.Now // a look is taken first, so there is one
	if n := len(line.Work); n > 0 {
		first = min(first, line.Work[0].Start)
	}
	span := max(now-first, time.Second)
	x := func(at time.Duration) float64 { return max(0, 100*(1-float64(now-at)/float64(span))) }
	last := past.Levels[len(past.Levels)-1]
	p.Live, p.Reserved, p.Limit = last.Last, last.Reserved, last.Limit
	least, most, highest := int64(math.MaxInt64), int64(0), int64(0)
	for _, l := range past.Levels {
		least, most = min(least, l.Least), max(most, l.Most)
		highest = max(highest, l.Reserved, l.Most)
	}
	p.LimitSeen = p.Limit > 0 && p.Limit <= tooHigh*highest
	if p.LimitSeen {
		highest = max(highest, p.Limit)
	}
	top := 1.05 * float64(max(highest, 1))
	y := func(bytes int64) float64 { return pictureHeight * (1 - float64(bytes)/top) }
	p.LimitAt = y(p.Limit)
	p.paths(past.Levels, line.Step, now, x, y)
	p.Levels, p.Times = byteTicks(top, y), timeTicks(span, func(ago time.Duration) float64 { return x(now - ago) })
	cycles := 0
	for _, w := range line.Work {
		if m, n := markOf(w, x(min(now, w.Start+line.Step/2))); n > 0 {
			p.Marks = append(p.Marks, m)
			cycles += n
		}
	}
	p.About = fmt.Sprintf("Live memory of %s over the last %v: from %v to %v; %d cycles.", p.Name, span.Round(time.Second), pressure.Bytes(least), pressure.Bytes(most), cycles)
	return p
}

// paths draws the steps. In each, the line goes from what was live first to what was
// live last, with all between the least and the most behind it; from step to step it is straight.
func (p *picture) paths(levels []gc.Level, step, now time.Duration, x func(time.Duration) float64, y func(int64) float64) {
	var line, band, held strings.Builder
	verb := "M"
	for i, l := range levels {
		from, until := 10*x(l.Start), 10*x(now)
		if i+1 < len(levels) {
			until = 10 * x(levels[i+1].Start)
		}
		to := min(until, 10*x(l.Start+step))
		fmt.Fprintf(&line, "%s%.1f,%.1fL%.1f,%.1f", verb, from, y(l.First), to, y(l.Last))
		fmt.Fprintf(&held, "%s%.1f,%.1fH%.1f", verb, from, y(l.Reserved), until)
		if l.Least < l.Most {
			fmt.Fprintf(&band, "M%.1f,%.1fH%.1fV%.1fH%.1fZ", from, y(l.Most), to, y(l.Least), from)
		}
		verb = "L"
	}
	p.Line, p.Band, p.Held = line.String(), band.String(), held.String()
}

// markOf is the mark of a step, and how many cycles ended in it.
func markOf(w gc.Work, at float64) (m mark, n int) {
	var parts []string
	for t := len(w.Cycles) - 1; t >= 0; t-- {
		if w.Cycles[t] > 0 {
			n += int(w.Cycles[t])
			parts = append(parts, fmt.Sprintf("%d %v", w.Cycles[t], gc.Trigger(t)))
		}
	}
	m = mark{At: at, Trigger: "natural", Text: fmt.Sprintf("%s; freed %v, callers held for %s", strings.Join(parts, ", "), pressure.Bytes(w.Freed), shortly(w.Held))}
	for _, t := range []gc.Trigger{gc.TriggerRefusal, gc.TriggerPolicy, gc.TriggerExplicit} {
		if w.Cycles[t] > 0 {
			m.Trigger = t.String()
			break
		}
	}
	return m, n
}

// byteTicks are three to six round sizes.
func byteTicks(top float64, y func(int64) float64) (all []tick) {
	unit := math.Exp2(10 * math.Floor(math.Log2(top)/10)) // of the size: KiB, MiB
	step := unit
	for _, f := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if step = f * unit; top/step <= 5 {
			break
		}
	}
	if top/step < 2 {
		step /= 2
	}
	for v := step; v < top; v += step {
		all = append(all, tick{y(int64(v)), strings.Replace(pressure.Bytes(int64(v)).String(), ".00 ", " ", 1)})
	}
	return all
}

// timeTicks are three to six round times ago.
func timeTicks(span time.Duration, x func(ago time.Duration) float64) (all []tick) {
	step := 10 * time.Minute
	for _, d := range []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute, 2 * time.Minute} {
		if span/d <= 6 {
			step = d
			break
		}
	}
	for ago := step; float64(ago) < 0.97*float64(span); ago += step {
		text := fmt.Sprintf("%.3g s ago", ago.Seconds())
		if step >= time.Minute {
			text = fmt.Sprintf("%d min ago", ago/time.Minute)
		}
		all = append(all, tick{x(ago), text})
	}
	return all
}

// pauses is a histogram of how long callers were held.
type pauses struct {
	Bars []bar
	N    uint64
}

type bar struct {
	At, Width, Height, Top float64 // in percent, and in pixels
	Count                  uint64
	Bound                  string
}

const barsHeight = 110

// pausesOf draws the lengths that there were; nil if there was no pause.
func pausesOf(s gc.Stats) *pauses {
	first, last := -1, -1
	var most, n uint64
	for i, c := range s.Pauses {
		if n += c; c == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last, most = i, max(most, c)
	}
	if n == 0 {
		return nil
	}
	first, last = max(0, first-1), min(len(s.Pauses)-1, last+1)
	p := &pauses{N: n}
	width := 100 / float64(last-first+1)
	for i := first; i <= last; i++ {
		b := bar{At: width * float64(i-first), Width: 0.9 * width, Height: barsHeight * float64(s.Pauses[i]) / float64(most), Count: s.Pauses[i], Bound: "more"}
		if s.Pauses[i] > 0 {
			b.Height = max(2, b.Height)
		}
		if i < len(s.Pauses)-1 {
			b.Bound = gc.PauseBound(i).String()
		}
		b.Top = barsHeight + 18 - b.Height
		p.Bars = append(p.Bars, b)
	}
	return p
}
