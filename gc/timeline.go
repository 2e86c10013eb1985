package gc

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Level is what a source held in one step: live bytes as the collector has read them. It reads whenever the policy is asked, right before a
// cycle gives back memory, when that is done, and, while the program is
// at work, each half of Config.Idle. So the top and the bottom of every tooth that
// a cycle cuts are exact.
type Level struct {
	Start       time.Duration // of the step
	First, Last int64         // live bytes at the first reading and at the last one
	Least, Most int64         // live bytes
	Reserved    int64         // the most
	Limit       int64         // the last; 0 = none known
}

// Work is what cycles did in one step.
type Work struct {
	Start     time.Duration    // of the step
	Cycles    [triggers]uint32 // that have ended, by Trigger
	Busy      time.Duration    // sum of their durations, but for those of the runtime's own
	Processor time.Duration    // that they have taken, but for what only idle cores did
	Freed     int64            // bytes that they gave back
	Held      time.Duration    // sum of the callers' pauses that have ended
	Longest   time.Duration    // the longest of those
}

func (w *Work) add(x *Work) {
	for t, n := range x.Cycles {
		w.Cycles[t] += n
	}
	w.Busy += x.Busy
	w.Processor += x.Processor
	w.Freed += x.Freed
	w.Held += x.Held
	w.Longest = max(w.Longest, x.Longest)
}

const (
	timelineLen  = 512
	firstShift   = 24 // steps of 2^24 ns
	longestShift = 29
)

// A timeline keeps steps. The collector's mu guards it. Its times never go back by
// more than a step or so: who reads the clock first may come second.
type timeline struct {
	shift uint            // steps of 2^shift ns
	work  *stepRing[Work] // nil before the first cycle
}

// A stepRing keeps the last steps. Each says which one it is, so that
// those that were left out need no clearing.
type stepRing[T any] [timelineLen]struct {
	number int64 // of the step, from 1 on; 0 = none
	of     T
}

// at returns the step with a number, and whether it has just begun.
func (s *stepRing[T]) at(number int64) (of *T, fresh bool) {
	x := &s[number%timelineLen]
	if x.number == number {
		return &x.of, false
	}
	if x.number > number { // the clock was read long ago
		return &s[x.number%timelineLen].of, false
	}
	x.number = number
	return &x.of, true
}

// all calls f for each step that is no older than the last ones, oldest first.
func (s *stepRing[T]) all(now int64, f func(number int64, of *T)) {
	for n := max(1, now-timelineLen+1); n <= now && s != nil; n++ {
		if x := &s[n%timelineLen]; x.number == n {
			f(n, &x.of)
		}
	}
}

// coarser returns the steps in steps twice as long.
func (s *stepRing[T]) coarser(last int64, join func(to, from *T, fresh bool)) *stepRing[T] {
	out := new(stepRing[T])
	s.all(last, func(number int64, of *T) {
		to, fresh := out.at((number + 1) / 2)
		join(to, of, fresh)
	})
	return out
}

// number is that of the step of a time. It makes steps longer where they are all full.
func (c *Collector) stepAt(now time.Duration) int64 {
	h := &c.timeline
	n := int64(now)>>h.shift + 1
	for n > timelineLen && h.shift < longestShift {
		h.work = h.work.coarser(timelineLen, joinWork)
		for _, g := range c.gates {
			g.past, g.until = g.past.coarser(timelineLen, joinLevel), 0
		}
		h.shift++
		n = int64(now)>>h.shift + 1
	}
	return n
}

func joinWork(to, from *Work, fresh bool) {
	if fresh {
		*to = Work{}
	}
	to.add(from)
}

func joinLevel(to, from *Level, fresh bool) {
	if fresh {
		*to = *from
		return
	}
	to.join(from.Last, from.Least, from.Most, from.Reserved, from.Limit)
}

func (l *Level) join(last, least, most, reserved, limit int64) {
	l.Last, l.Least, l.Most = last, min(l.Least, least), max(l.Most, most)
	l.Reserved, l.Limit = max(l.Reserved, reserved), limit
}

// see notes what the source of g holds. The caller holds mu.
func (c *Collector) see(g *Gate, now time.Duration, s pressure.Sample) {
	if now >= g.until {
		n := c.stepAt(now)
		l, fresh := g.past.at(n)
		if fresh {
			*l = Level{First: s.Live, Least: s.Live}
		}
		g.step, g.until = l, time.Duration(n<<c.timeline.shift)
	}
	g.step.join(s.Live, s.Live, s.Live, s.Reserved, s.Limit)
}

// seeAll notes what all sources hold. The caller holds mu.
func (c *Collector) seeAll(now time.Duration) {
	for _, g := range c.gates {
		g.last = g.source.Sample()
	}
	c.seeLast(now)
}

// seeLast notes what all sources held when they were last read, which was just now. The caller holds mu.
func (c *Collector) seeLast(now time.Duration) {
	for _, g := range c.gates {
		c.see(g, now, g.last)
	}
}

// worked adds to the step of now. The caller holds mu.
func (c *Collector) worked(now time.Duration, x Work) {
	if c.timeline.work == nil {
		c.timeline.work = new(stepRing[Work])
	}
	w, fresh := c.timeline.work.at(c.stepAt(now))
	joinWork(w, &x, fresh)
}

// workOf is a cycle that took so much processor time and gave back freed bytes.
func workOf(c policy.Cycle, processor time.Duration, freed int64) Work {
	w := Work{Freed: freed}
	w.Cycles[c.Trigger] = 1
	if c.Trigger != policy.TriggerNatural { // that one's duration is a guess, and its processor time nobody's
		w.Busy, w.Processor = c.Duration, processor
	}
	return w
}

// history adds what was done in the last minutes to a snapshot. The caller holds mu.
func (c *Collector) history(s *Snapshot) {
	last := c.stepAt(s.Now)
	shift := c.timeline.shift
	start := func(number int64) time.Duration { return time.Duration((number - 1) << shift) }
	s.Step = 1 << shift
	for _, g := range c.gates {
		w := Watched{Sample: g.last, Settled: -1}
		if c.settled.Load() > 0 {
			w.Settled = g.liveAfter
		}
		g.past.all(last, func(n int64, l *Level) {
			x := *l
			x.Start = start(n)
			w.Levels = append(w.Levels, x)
		})
		s.Sources = append(s.Sources, w)
	}
	c.timeline.work.all(last, func(n int64, w *Work) {
		x := *w
		x.Start = start(n)
		s.Work = append(s.Work, x)
	})
}
