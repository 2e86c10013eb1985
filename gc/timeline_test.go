package gc

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A cycle's tooth is in the timeline as it was: its top right before what is dead is
// given back, which is above what the policy was asked about, and its bottom after.
func TestTimelineHasTheTeethOfTheSaw(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	e.pass(time.Second)
	got := make(chan policy.Cycle)
	go func() { got <- c.Collect(policy.TriggerExplicit) }()
	end := <-e.marks
	awaitHeld(c)
	g.at.Live, g.dead = 900, 700 // allocated beside the mark
	e.pass(30 * ms)
	e.mu.Lock()
	e.each = 8 * ms
	e.mu.Unlock()
	end <- 0
	<-got
	l := c.Snapshot()
	if len(l.Sources) != 1 {
		t.Fatalf("%+v", l)
	}
	least, most := int64(1<<62), int64(0)
	for _, x := range l.Sources[0].Levels {
		least, most = min(least, x.Least), max(most, x.Most)
		if x.Limit != 1000 || x.Start > l.Now || x.Start < 900*ms {
			t.Errorf("%+v", x)
		}
	}
	if least != 100 || most != 900 {
		t.Errorf("%d to %d bytes, want 100 to 900", least, most)
	}
	w, _ := l.Last(time.Hour)
	if w.Cycles[policy.TriggerExplicit] != 1 || w.Busy != 30*ms || w.Held != 30*ms || w.Longest != 30*ms || w.Freed != 700 || w.Processor != 8*ms {
		t.Errorf("%+v", w)
	}
	e.pass(time.Second)
	l = c.Snapshot()
	if w, _ := l.Last(900 * ms); w.Held != 0 {
		t.Errorf("%+v later", w)
	}
	if s := c.Stats(); s.Processor != 8*ms {
		t.Errorf("%+v", s)
	}
}

// However long a collector lives, the extremes of the last minutes are kept, and the
// memory that this takes does not grow.
func TestTimelineForgetsTheOldest(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	const each, last = 10 * ms, 20 * time.Minute
	for now := time.Duration(0); now < last; now += each {
		g.at.Live = int64(now / each % 1000)
		c.mu.Lock()
		c.seeAll(e.now())
		c.worked(e.now(), Work{Busy: 1})
		c.mu.Unlock()
		e.pass(each)
		if now != 8*time.Second && now != last-each {
			continue
		}
		l := c.Snapshot()
		first, n := l.Sources[0].Levels[0], len(l.Sources[0].Levels)
		if early := now < last/2; early && (l.Step > 17*ms || first.Start != 0) || !early && (l.Step != 1<<longestShift || n != timelineLen || l.Now-first.Start > 5*time.Minute) {
			t.Errorf("after %v: %d steps of %v, the first at %v", now, n, l.Step, first.Start)
		}
		var seen time.Duration
		for i, x := range l.Sources[0].Levels[1 : n-1] {
			if want := l.Step; x.Start != first.Start+time.Duration(i+1)*want {
				t.Fatalf("step %d starts at %v, the one before it at %v", i+1, x.Start, l.Sources[0].Levels[i].Start)
			}
			lo := int64(x.Start/each) % 1000
			if hi := int64((x.Start+l.Step)/each) % 1000; x.Start > 20*ms && lo > 1 && lo < hi && (x.Least < lo || x.Least > lo+1 || x.Most > hi || x.Most < hi-1) {
				t.Fatalf("at %v: %d to %d bytes, want %d to %d", x.Start, x.Least, x.Most, lo, hi)
			}
		}
		for _, w := range l.Work {
			seen += w.Busy
		}
		if want := (l.Now - l.Work[0].Start) / each; seen < want-1 || seen > want+1 {
			t.Errorf("%d units of work since %v, want %d", seen, l.Work[0].Start, want)
		}
	}
}

// What a clock that was read long ago says goes to no step before its own.
func TestTimelineWithALateClock(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	e.pass(time.Hour)
	c.Snapshot()
	g.at.Live = 5000
	c.mu.Lock()
	c.seeAll(0)
	c.mu.Unlock()
	l := c.Snapshot()
	if n := len(l.Sources[0].Levels); n != 1 {
		t.Errorf("%d steps", n)
	}
}

// BenchmarkTimeline is one reading of a source, which each question to a policy
// takes, and the reading of all that is kept, which the debug page takes.
func BenchmarkTimeline(b *testing.B) {
	c := newCollector(b, Config{Idle: -1})
	g := c.NewGate(&level{})
	b.Run("of=see", func(b *testing.B) {
		now, s := time.Duration(0), g.source.Sample()
		c.mu.Lock()
		defer c.mu.Unlock()
		for b.Loop() {
			now += time.Microsecond
			c.see(g, now, s)
		}
	})
	b.Run("of=read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Snapshot()
		}
	})
}

// TestALookThatComesLateIsKept: the clock was read before steps became twice as long, and the source after that.
func TestALookThatComesLateIsKept(t *testing.T) {
	c, _, g := staged(t, policy.Spec{}.New())
	full := time.Duration(timelineLen) << firstShift
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(g.gate, full-10, pressure.Sample{Live: 5})
	last := c.stepAt(full)
	c.see(g.gate, full-5, pressure.Sample{Live: 900})
	most := int64(0)
	g.gate.past.all(last, func(_ int64, l *Level) { most = max(most, l.Most) })
	if most != 900 {
		t.Errorf("the most that was seen is %d, want 900", most)
	}
}
