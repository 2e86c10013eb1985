package debug

import (
	"fmt"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A chart is the last minutes of one source, as the page's script draws it. Times are in seconds
// before now.
type chart struct {
	Name                  string `json:"-"`
	About                 string `json:"-"` // for screen readers
	Worth                 string `json:"-"` // of cycles; empty = unknown
	Live, Reserved, Limit int64
	Span, Step            float64
	Levels                [][6]float64 // ago; live first, last, least and most; reserved
	Events                []event
}

// An event is a step of the timeline in which cycles ended.
type event struct {
	Ago     float64
	Trigger string // of the most important one
	Text    string
}

func chartsOf(line *gc.Snapshot) (all []chart) {
	var events []event
	cycles := 0
	ago := func(at time.Duration) float64 { return max(0, (line.Now - at).Seconds()) }
	for _, w := range line.Work {
		if n := int(total(w)); n > 0 {
			events = append(events, eventOf(w, ago(w.Start+line.Step/2)))
			cycles += n
		}
	}
	for _, past := range line.Sources {
		levels := past.Levels // not empty, because the gauge is read first
		first, last := levels[0], levels[len(levels)-1]
		c := chart{Name: past.Space.String(), Worth: past.Worth, Live: last.Last, Reserved: last.Reserved, Limit: last.Limit, Span: max(1, ago(first.Start)), Step: line.Step.Seconds(), Events: events}
		if len(events) > 0 {
			c.Span = max(c.Span, events[0].Ago)
		}
		least, most := first.Least, first.Most
		for _, l := range levels {
			least, most = min(least, l.Least), max(most, l.Most)
			c.Levels = append(c.Levels, [6]float64{ago(l.Start), float64(l.First), float64(l.Last), float64(l.Least), float64(l.Most), float64(l.Reserved)})
		}
		c.About = fmt.Sprintf("Live memory of %s over the last %.0f s: from %v to %v; %s.", c.Name, c.Span, pressure.Bytes(least), pressure.Bytes(most), count(cycles, "cycle"))
		all = append(all, c)
	}
	return all
}

func eventOf(w gc.Work, ago float64) event {
	var parts []string
	e := event{Ago: ago}
	for _, t := range []policy.Trigger{policy.TriggerRefusal, policy.TriggerPolicy, policy.TriggerExplicit, policy.TriggerNatural} {
		if w.Cycles[t] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", w.Cycles[t], t))
			if e.Trigger == "" {
				e.Trigger = t.String()
			}
		}
	}
	e.Text = fmt.Sprintf("%.1f s ago: %s; freed %v, callers held for %s", ago, strings.Join(parts, ", "), pressure.Bytes(w.Freed), shortly(w.Exposed))
	return e
}

// pauses says how long callers were held.
type pauses struct {
	N, Most uint64
	Lengths []length
}

type length struct {
	Count uint64
	Bound string
}

// pausesOf lists the lengths from the first to the last that occurred.
func pausesOf(s *gc.Stats) (p pauses) {
	for i, n := range s.Pauses {
		if p.N += n; p.N == 0 {
			continue
		}
		bound := "longer"
		if i < len(s.Pauses)-1 {
			bound = "at most " + gc.PauseBound(i).String()
		}
		p.Most = max(p.Most, n)
		p.Lengths = append(p.Lengths, length{n, bound})
	}
	for len(p.Lengths) > 0 && p.Lengths[len(p.Lengths)-1].Count == 0 {
		p.Lengths = p.Lengths[:len(p.Lengths)-1]
	}
	return p
}

func total(w gc.Work) (n uint64) {
	for _, x := range w.Cycles {
		n += x
	}
	return n
}

// shortly formats a duration with about three digits.
func shortly(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		d = d.Round(time.Microsecond)
	case d < time.Second:
		d = d.Round(10 * time.Microsecond)
	default:
		d = d.Round(10 * time.Millisecond)
	}
	return d.String()
}
