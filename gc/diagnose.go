package gc

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Finding is a judgement on the memory of a process or a collector. Level is "good", "watch" or
// "bad". Verdict is a short constant, and Reason has the figures behind it. Next is the step to
// take. See is the address of a page that says more; it may be empty.
type Finding = verdict.Finding

// A Diagnosis answers "is it the garbage collector?". Its verdict is one of
//
//   - "garbage lag": cycles free much;
//   - "reachable growth": the reachable part of the Go heap grows;
//   - "growth outside Go": memory outside the Go heap grows, and cycles do not free it;
//   - "allocator retention": an allocator keeps much free memory;
//   - "finalizers blocked": finalizers or cleanups that are due do not run;
//   - "over the limit", "near the limit": of the process, as package gc/auto knows it;
//   - "nothing wrong".
type Diagnosis struct {
	Finding
	text string
}

// String returns the diagnosis as text of several lines.
func (d Diagnosis) String() string { return d.text }

// SetAllocatorStats tells [Collector.Diagnose] how to read the bytes that the C allocator has
// handed out and those that it keeps. Package gc/with/malloc does that for glibc.
func SetAllocatorStats(read func() (inUse, kept int64)) { verdict.SetAllocator(read) }

// Diagnose runs two cycles, waits for the window, runs two more cycles, and says why the process
// holds so much memory. With a window of 0 it cannot see growth. Where package gc/auto runs, growth
// is judged by that package, which watches the process all the time. Diagnose blocks until it is
// done, or until ctx ends the window. It stops the world to read stacks. It is safe for concurrent
// use. Outside Linux resident memory is unknown, and the verdict rests on the Go heap and the
// counted bytes.
func (c *Collector) Diagnose(ctx context.Context, window time.Duration) Diagnosis {
	x := verdict.Examination{Before: c.footprint()}
	x.Blocked = !c.collectAll()
	x.After, x.Stacks = c.footprint(), verdict.ReadStacks()
	select {
	case <-time.After(window):
		x.Blocked = window > 0 && !c.collectAll() || x.Blocked
	case <-ctx.Done():
	}
	x.Later = c.footprint()
	f := x.Find(verdict.Current())
	return Diagnosis{f, x.Text(f)}
}

func (c *Collector) footprint() verdict.Footprint {
	f := verdict.ReadFootprint()
	f.Libraries = c.Counters()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.gates {
		if s := g.source.Sample(); g.gauge() == nil && s.Space == pressure.Host {
			f.Counted += s.Live
		}
	}
	return f
}

// collectAll runs two cycles. The second one frees objects that the finalizers of the first made
// unreachable. It waits for finalizers and cleanups, at most drainBound, and reports whether all
// have run.
func (c *Collector) collectAll() bool {
	const drainBound = 2 * time.Second
	for range 2 {
		c.Collect(policy.TriggerExplicit)
		for end := time.Now().Add(drainBound); !c.cleaned(c.engine.Marked()); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
	}
	return true
}

// The bounds of a snapshot's verdict. Held is what [Caps] allows by default.
const (
	heldMost     = 0.05
	pressureMost = 0.95
	nearCap      = 0.9
)

// Verdict judges the collector by its last minute. If the finding of package gc/auto on the process
// is worse, Verdict returns that.
func (s *Snapshot) Verdict() Finding {
	f := s.judge()
	if s.Process.Worse(f) {
		return s.Process
	}
	return f
}

func (s *Snapshot) judge() Finding {
	done, span := s.Last(time.Minute)
	share := func(d time.Duration) float64 { return float64(d) / float64(span) }
	processor := share(done.Processor) / float64(runtime.GOMAXPROCS(0))
	last := "in the last minute"
	if s.Now < time.Minute {
		last = "since the start"
	}
	sum := int64(0)
	for _, n := range done.Cycles {
		sum += int64(n)
	}
	cycles := verdict.Plural(sum, "cycle")
	often := fmt.Sprintf("%s %s freed %v and took %s of the processor time", last, cycles, pressure.Bytes(done.Freed), percent(processor))
	find := func(level, verdict, reason, next, see string) Finding {
		return Finding{Level: level, Verdict: verdict, Reason: reason, Next: next, See: see}
	}
	top := s.mostPressed()
	switch refused := done.Cycles[policy.TriggerRefusal]; {
	case s.Err != nil:
		return find(verdict.Bad, "panic contained", "Something has panicked and was contained; the error is below. The policy in use is "+s.Policy+".",
			"Mend what panicked: the program goes on without it.", verdict.Guide+"seeing-what-it-does")
	case s.Stats.OverLimit:
		return find(verdict.Bad, verdict.OverLimit, "More is reachable than the limit of gc.Own allows: cycles cannot help.", verdict.Next[verdict.OverLimit], verdict.Guide+"is-it-the-gc")
	case refused > 0 && refused >= done.Cycles[policy.TriggerPolicy]:
		return find(verdict.Watch, "refusals", fmt.Sprintf("%d of %s %s were forced by allocations that did not fit: the policy collects too late, or the limit is too low.", refused, cycles, last),
			"Raise the limit, or choose a policy that collects sooner, such as pacer.", verdict.Guide+"choosing-a-policy")
	case share(done.Held) > heldMost:
		return find(verdict.Watch, "callers held", fmt.Sprintf("Callers were held by cycles for %s of the time %s, %v at most.", percent(share(done.Held)), last, done.Longest.Round(10*time.Microsecond)),
			"Lower Caps.Held or Caps.Assist, or raise the limit.", verdict.Guide+"own-by-hand")
	case s.Caps.Cycles < 1 && processor > nearCap*s.Caps.Cycles:
		return find(verdict.Watch, "cycles at their cap", strings.ToUpper(often[:1])+often[1:]+", which is all that they may ("+percent(s.Caps.Cycles)+").",
			"For fewer cycles: a higher limit, a lower price of memory, fewer pointers in the Go heap, or a lower Caps.Cycles.", verdict.Guide+"own-by-hand")
	case top.Limit > 0 && top.Pressure() > pressureMost:
		return find(verdict.Watch, verdict.NearLimit, fmt.Sprintf("The %v memory is full: %s.", top.Space, fill(top)), verdict.Next[verdict.NearLimit], verdict.Guide+"is-it-the-gc")
	}
	text := often + ", and held callers for " + percent(share(done.Held)) + " of the time."
	if len(s.Sources) > 0 {
		text = fill(top) + "; " + text
	}
	return find(verdict.Good, verdict.Healthy, "Healthy: "+text, "", "")
}

// mostPressed returns the source under most pressure or, without limits, the one with most live
// bytes.
func (s *Snapshot) mostPressed() (top pressure.Sample) {
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
