package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// The bounds of a snapshot's verdict. Held is what [gc.Caps] allows by default.
const (
	heldMost     = 0.05
	pressureMost = 0.95
	nearCap      = 0.9
)

// Verdict judges the collector by its last minute. If the finding of package gc/auto on the process
// is worse, Verdict returns that.
func Verdict(s *gc.Snapshot) gc.Finding {
	f := judge(s)
	if s.Process.Worse(f) {
		return s.Process
	}
	return f
}

func judge(s *gc.Snapshot) gc.Finding {
	done, span := s.Last(time.Minute)
	processor, held := done.Shares(span)
	last := "in the last minute"
	if s.Now < time.Minute {
		last = "since the start"
	}
	sum := int64(0)
	for _, n := range done.Cycles {
		sum += int64(n)
	}
	cycles := count(pressure.Count(sum), "cycle")
	often := fmt.Sprintf("%s %s freed %v and took %s of the processor time", last, cycles, pressure.Bytes(done.Freed), percent(processor))
	find := func(level, verdict, reason, next, see string) gc.Finding {
		return gc.Finding{Level: level, Verdict: verdict, Reason: reason, Next: next, See: see}
	}
	top := mostPressed(s)
	blocked, isBlocked := s.Err.(registry.Blocked)
	switch refused := done.Cycles[policy.TriggerRefusal]; {
	case s.Closed:
		return find(verdict.Watch, "collector closed", "This collector is closed, so nothing here changes any more.",
			"If gc/auto was started again, pass the new auto.Collector() to debug.Handler.", verdict.Guide+"one-import")
	case isBlocked:
		return find(verdict.Bad, verdict.Blocked, "Finalizers, cleanups or releases do not return. "+string(blocked)+".", verdict.Next[verdict.Blocked], verdict.Guide+"is-it-the-gc")
	case s.Err != nil:
		return find(verdict.Bad, "panic contained", "Something has panicked and was contained; the error is below. The policy in use is "+s.Policy+".",
			"Mend what panicked: the program goes on without it.", verdict.Guide+"seeing-what-it-does")
	case s.Stats.OverLimit:
		return find(verdict.Bad, verdict.OverLimit, "The last cycle left more than the limit of gc.Own. The log says why.", verdict.Next[verdict.OverLimit], verdict.Guide+"is-it-the-gc")
	case refused > 0 && refused >= done.Cycles[policy.TriggerPolicy]:
		return find(verdict.Watch, "refusals", fmt.Sprintf("%d of %s %s were forced by allocations that did not fit: the policy collects too late, or the limit is too low.", refused, cycles, last),
			"Raise the limit, or choose a policy that collects sooner, such as pacer.", verdict.Guide+"choosing-a-policy")
	case held > heldMost:
		return find(verdict.Watch, "callers held", fmt.Sprintf("Callers were held by cycles for %s of the time %s, %v at most.", percent(held), last, done.MaxPause.Round(10*time.Microsecond)),
			"Lower Caps.Held or Caps.Assist, or raise the limit.", verdict.Guide+"own-by-hand")
	case s.Caps.Cycles < 1 && processor > nearCap*s.Caps.Cycles:
		return find(verdict.Watch, "cycles at their cap", strings.ToUpper(often[:1])+often[1:]+", which is all that they may ("+percent(s.Caps.Cycles)+").",
			"For fewer cycles: a higher limit, a lower price of memory, fewer pointers in the Go heap, or a lower Caps.Cycles.", verdict.Guide+"own-by-hand")
	case top.Limit > 0 && top.Pressure() > pressureMost:
		return find(verdict.Watch, verdict.NearLimit, fmt.Sprintf("The %v memory is full: %s.", top.Space, fill(top)), verdict.Next[verdict.NearLimit], verdict.Guide+"is-it-the-gc")
	}
	text := often + ", and held callers for " + percent(held) + " of the time."
	if len(s.Sources) > 0 {
		text = fill(top) + "; " + text
	}
	return find(verdict.Good, verdict.Healthy, "Healthy: "+text, "", "")
}

// mostPressed returns the source under most pressure or, without limits, the one with most live
// bytes.
func mostPressed(s *gc.Snapshot) (top pressure.Sample) {
	for i, w := range s.Sources {
		full, most := w.Pressure(), top.Pressure()
		if i == 0 || full > most || full == most && top.Limit == 0 && (w.Limit > 0 || w.Live > top.Live) {
			top = w.Sample
		}
	}
	return top
}

func fill(s pressure.Sample) string {
	if s.Limit == 0 {
		return fmt.Sprintf("%v live, no limit", pressure.Bytes(s.Live))
	}
	return fmt.Sprintf("%v live of %v (%s)", pressure.Bytes(s.Live), pressure.Bytes(s.Limit), percent(s.Pressure()))
}

// percent formats a share with two digits: 0.012 %, 3.5 %, 100 %, 250 %.
func percent(f float64) string {
	digits, _ := strconv.ParseFloat(strconv.FormatFloat(100*f, 'g', 2, 64), 64)
	return strconv.FormatFloat(digits, 'f', -1, 64) + " %"
}
