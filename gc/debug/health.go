package debug

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A health says in a line how a collector is doing, and what to do.
type health struct {
	Level string `json:"level"` // good, watch or bad
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
	See   string `json:"see,omitempty"` // a page that tells more
}

const guide = "https://github.com/eagergc/eagergc/blob/main/gc/EMBEDDING.md#"

// The bounds of health. Held is what [gc.Caps] allows by default.
const (
	heldMost     = 0.05
	pressureMost = 0.95
	nearCap      = 0.9
)

// judge judges by the last minute.
func judge(s *status, now *gc.Snapshot) health {
	done, span := now.Last(time.Minute)
	share := func(d time.Duration) float64 { return float64(d) / float64(span) }
	top := mostPressed(s.Spaces)
	processor := share(done.Processor) / float64(runtime.GOMAXPROCS(0))
	last := "in the last minute"
	if now.Now < time.Minute {
		last = "since the start"
	}
	often := fmt.Sprintf("%s %s freed %v and took %s of the processor time", last, count(total(done), "cycle"), pressure.Bytes(done.Freed), percent(processor))
	switch caps := now.Caps; {
	case s.Error != "":
		return health{"bad", "Something has panicked and was contained; the error is below. The policy in use is " + s.Policy + ".",
			"Mend what panicked: the program goes on without it.", guide + "seeing-what-it-does"}
	case s.OverLimit:
		return health{"bad", "More is reachable than the limit of gc.Own allows: cycles cannot help.",
			"Diagnose says who holds it: hold less, or set a higher limit.", guide + "is-it-the-gc"}
	case done.Cycles[policy.TriggerRefusal] > 0 && done.Cycles[policy.TriggerRefusal] >= done.Cycles[policy.TriggerPolicy]:
		return health{"watch", fmt.Sprintf("%d of %s %s were forced by allocations that did not fit: the policy collects too late, or the limit is too low.",
			done.Cycles[policy.TriggerRefusal], count(total(done), "cycle"), last), "Raise the limit, or choose a policy that collects sooner, such as pacer.", guide + "choosing-a-policy"}
	case share(done.Held) > heldMost:
		return health{"watch", fmt.Sprintf("Callers were held by cycles for %s of the time %s, %s at most.", percent(share(done.Held)), last, shortly(done.Longest)),
			"Lower Caps.Held or Caps.Assist, or raise the limit.", guide + "own-by-hand"}
	case caps.Cycles < 1 && processor > nearCap*caps.Cycles:
		return health{"watch", strings.ToUpper(often[:1]) + often[1:] + ", which is all that they may (" + percent(caps.Cycles) + ").",
			"For fewer cycles: a higher limit, a lower price of memory, fewer pointers in the Go heap, or a lower Caps.Cycles.", guide + "own-by-hand"}
	case top != nil && top.Limit > 0 && top.full() > pressureMost:
		return health{"watch", fmt.Sprintf("The %s memory is full: %s.", top.Name, fill(top)), "Diagnose says whether it is garbage; if it is not, hold less or raise the limit.", guide + "is-it-the-gc"}
	default:
		text := "Healthy: "
		if top != nil {
			text += fill(top) + "; "
		}
		return health{Level: "good", Text: text + often + ", and held callers for " + percent(share(done.Held)) + " of the time."}
	}
}

// mostPressed is the first of the spaces that are fullest, or, where none has a limit, that have most; nil if there is none.
func mostPressed(all []space) *space {
	if len(all) == 0 {
		return nil
	}
	top := slices.MaxFunc(all, func(a, b space) int {
		return cmp.Or(cmp.Compare(min(a.Limit, 1), min(b.Limit, 1)), cmp.Compare(a.full(), b.full()))
	})
	return &top
}

// full is how much of its limit a space holds; without one, of a byte.
func (s *space) full() float64 { return float64(s.Live) / float64(max(s.Limit, 1)) }

func fill(s *space) string {
	if s.Limit == 0 {
		return fmt.Sprintf("%v live, no limit", pressure.Bytes(s.Live))
	}
	return fmt.Sprintf("%v live of %v (%s)", pressure.Bytes(s.Live), pressure.Bytes(s.Limit), percent(s.full()))
}

func total(w gc.Work) (n uint32) {
	for _, x := range w.Cycles {
		n += x
	}
	return n
}

// percent is a share in two digits: 0.012 %, 3.5 %, 100 %, 250 %.
func percent(f float64) string {
	digits, _ := strconv.ParseFloat(strconv.FormatFloat(100*f, 'g', 2, 64), 64)
	return strconv.FormatFloat(digits, 'f', -1, 64) + " %"
}

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
