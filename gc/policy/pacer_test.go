package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A loop is a program of equal steps: so many requests of 10 MB, a gap apart, all of them dropped at the end of the step, and a wait.
// Cycles take as long as is said.
type loop struct {
	*world
	gap, wait, length time.Duration
	draw              *rand.Rand     // of the requests in a step; nil: 10 in each
	late              int            // requests that did not fit
	beside            int            // cycles that started at a wait
	hit               map[string]int // reasons of cycles
}

func newLoop(text string, limit int64) *loop {
	return &loop{world: &world{policy: MustParse(text).New(), limit: limit}, gap: ms, wait: 5 * ms, length: ms, hit: map[string]int{}}
}

func (l *loop) ask(kind PointKind, request int64) {
	if start := time.Duration(l.started); l.running && l.now-start >= l.length {
		l.settle(TriggerPolicy, Overlap, start, l.length, l.dropped)
	}
	if kind == Allocation && l.live+request < l.wake {
		return
	}
	at := l.point(kind, request)
	if at.Cost = l.length; kind == Sync {
		at.Wait = l.wait
	}
	d := l.policy.Decide(at)
	if l.wake = d.Wake; d.Action != Skip {
		if l.hit[d.Reason]++; kind == Sync {
			l.beside++
		}
	}
	l.obey(d)
}

// run takes steps, and counts anew.
func (l *loop) run(steps int) (cycles int) {
	before := l.cycles
	l.late, l.beside, l.hit = 0, 0, map[string]int{}
	for range steps {
		requests := 10
		if l.draw != nil {
			requests = 5 + l.draw.IntN(16)
		}
		for range requests {
			l.ask(Allocation, 10*MB)
			if l.limit > 0 && l.live+10*MB > l.limit {
				l.late++
			}
			l.live, l.allocated, l.now = l.live+10*MB, l.allocated+10*MB, l.now+l.gap
		}
		l.garbage = l.live
		l.ask(Sync, 0)
		l.now += l.wait
	}
	return int(l.cycles - before)
}

// TestPacer: what the pacer does in programs whose best schedule is known.
func TestPacer(t *testing.T) {
	l := newLoop("pacer", 250*MB)
	l.run(20)
	if n := l.run(50); n < 25 || n > 60 || l.late > 0 {
		t.Errorf("with room for two steps: %d cycles in 50 steps, %d allocations did not fit", n, l.late)
	}
	if l.hit["headroom may not outlast a cycle"]+l.hit["foreseen: headroom does not outlast a cycle"]+l.hit["the wait hides what the headroom is worth"] < 20 {
		t.Errorf("reasons %v, want mostly those that the scores of starts have taught", l.hit)
	}

	if n := newLoop("pacer", GB).run(100); n < 9 || n > 16 {
		t.Errorf("with room for ten steps: %d cycles in 100", n)
	}

	l = newLoop("pacer", 300*MB) // steps of 5 to 20 requests, and waits that hide a cycle: nothing foresees one
	l.gap, l.wait, l.length, l.draw = ms/10, 6*ms, 5*ms, rand.New(rand.NewPCG(1, 2))
	l.run(100)
	if n := l.run(500); l.beside < 50 || l.beside < n/2 {
		t.Errorf("where waits hide a cycle: %d of %d start beside one; without this guess every seventh does", l.beside, n)
	}

	p := MustParse("pacer").New()
	if first, full := p.Decide(alloc(ms, 999, 1000)), p.Decide(grow(2*ms, 995, 100, 0, 0, 1000)); first.Action == Block || full.Action != Block {
		t.Errorf("%+v where the request fits, %+v where it does not", first, full)
	}
}

// TestPacerBelievesRefusals: a refusal of bytes that fit under the limit makes the most that was granted the limit to go by, for 256 cycles
// after the last one.
func TestPacerBelievesRefusals(t *testing.T) {
	p := MustParse("pacer").New()
	for i := range 600 {
		now := time.Duration(2*i+10) * ms
		if d := p.Decide(grow(now, 790, 20, 0, 0, 1000)); (d.Reason == "headroom used up") != (i > 0 && i <= 200+observedKeep) {
			t.Fatalf("after %d cycles: %+v", i, d)
		}
		c := Cycle{Start: now, Trigger: TriggerNatural, Limit: 1000}
		if i == 0 || i == 200 {
			c.Trigger, c.Freed, c.LiveAfter, c.Wanted = TriggerRefusal, 790, 0, 900
		}
		p.Observe(c)
	}
}

// TestHost: what the price and the target buy, and where a cycle starts because of them.
func TestHost(t *testing.T) {
	for _, limit := range []int64{0, 10 * GB} {
		last := 0
		for _, price := range []string{"1e-13", "1e-11", "1e-9"} {
			n := newLoop("host:overhead=0%,price="+price, limit).run(200)
			if n <= last {
				t.Errorf("memory at %s, limit %d: %d cycles, %d at a lower price", price, limit, n, last)
			}
			last = n
		}
	}
	for _, share := range []float64{0.005, 0.02, 0.05} {
		l := newLoop(fmt.Sprintf("host:price=0,overhead=%g%%", 100*share), 0)
		if got := float64(l.run(2000)) * float64(ms) / float64(l.now); got < 0.8*share || got > 1.2*share {
			t.Errorf("where the price asks for nothing, cycles take %.2f%%, want %g%%", 100*got, 100*share)
		}
	}
	for _, c := range []struct {
		why, text string
		before    Cycle
		now, work time.Duration
		live      int64
		want      Action
	}{
		{"headroom lasts, though cycles were dear", "host:overhead=0%", Cycle{Duration: time.Second, Freed: 1}, 2 * time.Second, ms, 11 * miB, Skip},
		{"headroom has ended", "host:overhead=0%", Cycle{Duration: time.Second, Freed: 1}, 2 * time.Second, ms, 13 * miB, Overlap},
		{"10 ms of processor time are 1 % of a second", "host:price=0", Cycle{Start: time.Second, Duration: ms, Work: 10 * ms, Freed: miB}, 1900 * ms, 10 * ms, 10 * miB, Skip},
		{"which is over", "host:price=0", Cycle{Start: time.Second, Duration: ms, Work: 10 * ms, Freed: miB}, 2100 * ms, 10 * ms, 10 * miB, Overlap},
		{"a target of almost nothing", "host:price=0,overhead=0.00000000001%", Cycle{Start: time.Second, Duration: ms, Work: 10 * ms, Freed: miB}, time.Hour, 10 * ms, 10 * miB, Skip},
	} {
		p := MustParse(c.text).New()
		p.Observe(c.before)
		at := grow(c.now, c.live, 1, 0, 10*miB, 0)
		if at.Cost, at.Work = ms, c.work; p.Decide(at).Action != c.want {
			t.Errorf("%s: %+v", c.why, p.Decide(at))
		}
	}
}

// BenchmarkAwake asks at requests that are all worth remembering, so that none is answered from Wake. A decision costs
// what pacer takes more than never, which does nothing but pass time.
func BenchmarkAwake(b *testing.B) {
	for _, policy := range []string{"never", "pacer", "host"} {
		b.Run(policy, func(b *testing.B) {
			l := newLoop(policy, 250*MB)
			l.run(20)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				l.wake = 0
				l.ask(Allocation, 10*MB)
				l.live, l.allocated, l.now = l.live+10*MB, l.allocated+10*MB, l.now+ms
				if n++; n%10 == 0 {
					l.garbage = l.live
				}
			}
		})
	}
}
