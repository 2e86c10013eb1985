package debug

import (
	"fmt"
	"runtime"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// Health says in a line how a collector is doing.
type Health struct {
	Level string `json:"level"` // good, watch or bad
	Text  string `json:"text"`
}

// The bounds of health. Held is what [gc.Caps] allows by default.
const (
	heldMost     = 0.05
	pressureMost = 0.95
	nearCap      = 0.9
)

// health judges by the last minute.
func (h *handler) health(s *Status) Health {
	line := h.c.Timeline()
	done, span := line.Last(time.Minute)
	share := func(d time.Duration) float64 { return float64(d) / float64(span) }
	top := mostPressed(s.Spaces)
	processor := share(done.Processor) / float64(runtime.GOMAXPROCS(0))
	last := "in the last minute"
	if line.Now < time.Minute {
		last = "since the start"
	}
	switch caps := h.c.Caps(); {
	case s.Error != "":
		return Health{"bad", "Something has panicked and was contained; the error is below. The policy in use is " + s.Policy + "."}
	case s.OverLimit:
		return Health{"bad", "More is reachable than the limit of gc.Own allows: cycles cannot help. ?diagnose says who holds it."}
	case done.Cycles[gc.TriggerRefusal] > 0 && done.Cycles[gc.TriggerRefusal] >= done.Cycles[gc.TriggerPolicy]:
		return Health{"watch", fmt.Sprintf("%d of %d cycles %s were forced by allocations that did not fit: the policy collects too late, or the limit is too low.",
			done.Cycles[gc.TriggerRefusal], total(done), last)}
	case share(done.Held) > heldMost:
		return Health{"watch", fmt.Sprintf("Callers were held by cycles for %s of the time %s, %s at most.", percent(share(done.Held)), last, shortly(done.Longest))}
	case caps.Cycles < 1 && processor > nearCap*caps.Cycles:
		return Health{"watch", fmt.Sprintf("Cycles took %s of the processor time %s, which is all that they may (%s).", percent(processor), last, percent(caps.Cycles))}
	case top != nil && top.Limit > 0 && float64(top.Live) > pressureMost*float64(top.Limit):
		return Health{"watch", fmt.Sprintf("The %s memory is full: %s.", top.Name, fill(top))}
	}
	text := "Healthy: "
	if top != nil {
		text += fill(top) + "; "
	}
	return Health{"good", text + fmt.Sprintf("%s %d cycles freed %v, took %s of the processor time, and held callers for %s of the time.",
		last, total(done), pressure.Bytes(done.Freed), percent(processor), percent(share(done.Held)))}
}

// mostPressed is the space that is fullest, or else has most; nil if there is none.
func mostPressed(all []Space) (top *Space) {
	pressed := func(s *Space) float64 { return float64(s.Live) / float64(max(s.Limit, 1)) }
	for i := range all {
		s := &all[i]
		switch {
		case top == nil, s.Limit > 0 && (top.Limit == 0 || pressed(s) > pressed(top)), s.Limit == 0 && top.Limit == 0 && s.Live > top.Live:
			top = s
		}
	}
	return top
}

func fill(s *Space) string {
	if s.Limit == 0 {
		return fmt.Sprintf("%v live, no limit", pressure.Bytes(s.Live))
	}
	return fmt.Sprintf("%v live of %v (%s)", pressure.Bytes(s.Live), pressure.Bytes(s.Limit), percent(float64(s.Live)/float64(s.Limit)))
}

func total(w gc.Work) (n uint32) {
	for _, x := range w.Cycles {
		n += x
	}
	return n
}

func percent(f float64) string { return fmt.Sprintf("%.2g %%", 100*f) }

// shortly is a duration in three digits or so.
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
