package policy

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A loop of steps, each of ten requests of 10 MB, 1 ms apart, all dropped at
// its end, and a wait.
type loop struct {
	w    *world
	step int
	hit  map[string]int // reasons of cycles
	late int            // allocations that did not fit
}

func newLoop(text string, limit int64) *loop {
	return &loop{w: &world{policy: MustParse(text).New(), limit: limit}, hit: map[string]int{}}
}

func (l *loop) settle() {
	if w := l.w; w.running && w.now-time.Duration(w.started) >= ms {
		w.settle(TriggerPolicy, Overlap, time.Duration(w.started), ms, w.dropped)
	}
}

func (l *loop) ask(at Point) {
	d := l.w.policy.Decide(at)
	l.w.wake = d.Wake
	if d.Action != Skip {
		l.hit[d.Reason]++
	}
	l.w.obey(d)
}

func (l *loop) run(steps int) {
	w := l.w
	for range steps {
		for range 10 {
			l.settle()
			if w.live+10*MB >= w.wake {
				l.ask(w.point(Allocation, 10*MB))
			}
			if w.limit > 0 && w.live+10*MB > w.limit {
				l.late++
			}
			w.live, w.allocated = w.live+10*MB, w.allocated+10*MB
			w.now += ms
		}
		w.garbage = w.live
		l.settle()
		l.ask(w.point(Sync, 0))
		w.now += 5 * ms
		l.step++
	}
}

// TestPacerLearnsALoop: at twice what a step needs a cycle per step is enough,
// started so that nothing is refused, and once the loop is known by forecast.
func TestPacerLearnsALoop(t *testing.T) {
	l := newLoop("pacer", 250*MB)
	l.run(20)
	l.late, l.hit = 0, map[string]int{}
	before := l.w.cycles
	l.run(50)
	if l.late > 0 {
		t.Errorf("%d allocations did not fit", l.late)
	}
	if n := l.w.cycles - before; n < 25 || n > 60 {
		t.Errorf("%d cycles in 50 steps", n)
	}
	if l.hit["headroom may not outlast a cycle"]+l.hit["foreseen: headroom does not outlast a cycle"]+l.hit["planned: the best place before headroom ends"] < 20 {
		t.Errorf("reasons %v, want mostly what drills have taught", l.hit)
	}
}

// TestPacerIsLazyWithRoom: with room for ten steps it collects every tenth or so.
func TestPacerIsLazyWithRoom(t *testing.T) {
	l := newLoop("pacer", GB)
	l.run(100)
	if n := l.w.cycles; n < 9 || n > 16 {
		t.Errorf("%d cycles in 100 steps with room for ten", n)
	}
}

// TestPacerMemoryBuysCycles: the dearer memory is, the more cycles; also
// without a limit.
func TestPacerMemoryBuysCycles(t *testing.T) {
	for _, limit := range []int64{0, 10 * GB} {
		var last uint64
		for _, text := range []string{"pacer:memory=1e-13", "pacer:memory=1e-11", "pacer:memory=1e-9"} {
			l := newLoop(text, limit)
			l.run(200)
			if l.w.cycles <= last {
				t.Errorf("%s, limit %d: %d cycles, %d at a lower price", text, limit, l.w.cycles, last)
			}
			last = l.w.cycles
		}
	}
}

// TestPacerBlocksWithoutHeadroom: what does not fit collects here and now.
func TestPacerBlocksWithoutHeadroom(t *testing.T) {
	p := MustParse("pacer").New()
	if d := p.Decide(alloc(ms, 990, 1000)); d.Action != Skip && d.Action != Overlap {
		t.Errorf("%+v", d)
	}
	at := grow(2*ms, 995, 100, 0, 0, 1000)
	if d := p.Decide(at); d.Action != Block {
		t.Errorf("answers %+v where the request does not fit", d)
	}
}

// TestPacerWaitsEarlyOnceBitten: after a cycle that freed too little it waits
// for the next one before the request that would not fit.
func TestPacerWaitsEarlyOnceBitten(t *testing.T) {
	p := MustParse("pacer").New()
	at := grow(2*ms, 700, 200, 0, 0, 1000)
	at.Running = true
	if d := p.Decide(at); d.Action != Skip {
		t.Errorf("waits at once: %+v", d)
	}
	short := at
	short.Request = 400
	p.Decide(short) // what is refused does not fit
	p.Observe(Cycle{Start: 2 * ms, Duration: ms, Trigger: TriggerRefusal, Action: Block})
	if d := p.Decide(at); d.Action != Block {
		t.Errorf("does not wait: %+v", d)
	}
}

// TestHistoryFollows: the match is a period back, whatever the period, and is
// found again after a surprise.
func TestHistoryFollows(t *testing.T) {
	h := new(history)
	now := moment{}
	for i := range 2000 {
		request := int64(100 + i%37)
		if i == 1500 {
			request = 7777
		}
		now.time += ms
		h.see(now, &Point{At: Allocation, Request: request}, 1)
		now.total += request
		if i > 100 && i < 1500 || i > 1600 {
			if lag := h.head - 1 - h.match; lag <= 0 || lag%37 != 0 {
				t.Fatalf("token %d: match %d back", i, lag)
			}
		}
		if i == 1500 && h.match != 0 {
			t.Error("the surprise matches")
		}
	}
}

// TestHistoryForesees: requests of 100 and of 200 bytes, a long one at each tenth, 1 ms
// apart. A cycle of 4.5 ms that starts at the next one is over after five.
func TestHistoryForesees(t *testing.T) {
	h := new(history)
	now := moment{}
	request := func(i int) int64 {
		if i%10 == 0 {
			return 5000
		}
		return int64(100 + i%2*100)
	}
	for i := range 300 {
		h.see(now, &Point{At: Allocation, Request: request(i), Cost: 4500 * time.Microsecond}, 1)
		now.time, now.total = now.time+ms, now.total+request(i)
		if i < 100 {
			continue
		}
		want := int64(0)
		for k := range 5 {
			want += request(i + 1 + k)
		}
		if last, most, ok := h.foresee(); !ok || last != want || most != want {
			t.Fatalf("at %d foresees %v, at most %v, %v; want %v", i, last, most, ok, want)
		}
	}
}

// TestHistoryForeseesALongCycle: requests of 100 bytes, 1 ms apart. Of the newest 41 it is not known
// yet what follows until a cycle of 40.5 ms is over.
func TestHistoryForeseesALongCycle(t *testing.T) {
	h := new(history)
	now := moment{}
	for i := range 200 {
		h.see(now, &Point{At: Allocation, Request: 100, Cost: 40500 * time.Microsecond}, 1)
		now.time, now.total = now.time+ms, now.total+100
		if i < 100 {
			continue
		}
		if last, most, ok := h.foresee(); !ok || last != 4100 || most != 4100 {
			t.Fatalf("at %d foresees %v, at most %v, %v", i, last, most, ok)
		}
	}
}

// TestHistoryPlans: steps of a request of 500 bytes and nine of 100, 1 ms apart but for 20 ms after the
// fifth. Whether a wall is in this step or three steps on, a cycle of 15 ms is to start before that wait if
// time is dear; if bytes are, at the wall.
func TestHistoryPlans(t *testing.T) {
	h := new(history)
	now := moment{}
	for i := range 300 {
		request := int64(100)
		if i%10 == 0 {
			request = 500
		}
		h.see(now, &Point{At: Allocation, Request: request}, 1)
		if i > 100 && i%10 == 4 {
			for _, steps := range []int64{0, 1, 3} {
				wall := now.total + 100 + 500 + steps*1400 // five requests fit after this one
				if lead, ok := h.plan(now, wall, float64(15*ms), 0, 1); !ok || lead != 501 {
					t.Fatalf("at %d, %d steps ahead: a lead of %v, %v; want 501", i, steps, lead, ok)
				}
				if lead, ok := h.plan(now, wall, float64(15*ms), 0, 1e6); !ok || lead != 0 {
					t.Fatalf("at %d, %d steps ahead, bytes are dear: a lead of %v, %v; want 0", i, steps, lead, ok)
				}
			}
		}
		now.time, now.total = now.time+ms, now.total+request
		if i%10 == 4 {
			now.time += 20 * ms
		}
	}
}

// TestPacerTakesAWait: steps of 5 to 20 requests, drawn, much faster than a cycle is, and
// a wait that hides one after each: most cycles start beside a wait, though nothing foresees
// one. Without this guess every seventh does.
func TestPacerTakesAWait(t *testing.T) {
	w := &world{policy: MustParse("pacer").New(), limit: 300 * MB}
	draw := rand.New(rand.NewPCG(1, 2))
	beside, cycles := 0, 0
	ask := func(step int, at Point) {
		d := w.policy.Decide(at)
		if w.wake = d.Wake; d.Action != Skip && step > 100 {
			cycles++
			if at.At == Sync {
				beside++
			}
		}
		w.obey(d)
	}
	settle := func() {
		if w.running && w.now-time.Duration(w.started) >= 5*ms {
			w.settle(TriggerPolicy, Overlap, time.Duration(w.started), 5*ms, w.dropped)
		}
	}
	for step := range 600 {
		for range 5 + draw.IntN(16) {
			settle()
			at := w.point(Allocation, 10*MB)
			at.Cost = 5 * ms
			ask(step, at)
			w.live, w.allocated, w.now = w.live+10*MB, w.allocated+10*MB, w.now+ms/10
		}
		w.garbage = w.live
		settle()
		at := w.point(Sync, 0)
		at.Cost, at.Wait = 5*ms, 6*ms
		ask(step, at)
		w.now += 6 * ms
	}
	if beside < 50 || beside < cycles/2 {
		t.Errorf("%d of %d cycles start beside a wait", beside, cycles)
	}
}

// TestPracticeFindsTheMargin: a program that allocates ten bytes in a cycle, one by one, is to
// start when there is room for ten, where a pause costs more than bytes; where bytes
// are dear, it is not to start early at all.
func TestPracticeFindsTheMargin(t *testing.T) {
	for _, c := range []struct {
		price     float64 // in cycles per byte
		low, high float64
	}{{1e-4, 10, 20}, {0.01, 10, 20}, {0.2, 0, 1}} {
		var p practice
		now := moment{}
		for range 20000 {
			now.time, now.total = now.time+ms/10, now.total+1
			p.see(&scene{now: now, top: now.total + 1, guess: new([guesses]float64), g: float64(ms), budget: 512, headroom: 400, reachable: 112})
		}
		p.choose(float64(ms), c.price*float64(ms))
		if got := 512 * marginOf[p.margin]; got < c.low || got > c.high {
			t.Errorf("a byte is worth %g cycles: starts with room for %g, want %g to %g", c.price, got, c.low, c.high)
		}
	}
}

// TestOutlookIsWhatDecides: while no cycle is under way, one starts where room is used up.
func TestOutlookIsWhatDecides(t *testing.T) {
	l := newLoop("pacer", 200*MB)
	p := l.w.policy.(*pacer)
	starts := 0
	l.w.policy = &lookedAt{p, func(at Point, d Decision) {
		o := p.Outlook(at)
		if at.Running || exceeds(&at, 200*MB) || d.Reason == "asleep" || d.Reason == "a cycle would free too little" {
			return
		}
		if near := o.Room <= o.Guess+o.Margin; near != (d.Action != Skip) {
			t.Fatalf("step %d: %+v, and answers %+v", l.step, o, d)
		} else if near {
			starts++
		}
	}}
	l.run(100)
	if starts < 20 {
		t.Errorf("%d starts", starts)
	}
}

// A lookedAt is a pacer that is looked at after each answer.
type lookedAt struct {
	*pacer
	look func(Point, Decision)
}

func (w *lookedAt) Decide(at Point) Decision {
	d := w.pacer.Decide(at)
	w.look(at, d)
	return d
}

// BenchmarkPacerAwake asks at requests that are all worth remembering, so that
// none is answered from Wake: plans are part of the figure. A decision costs
// what pacer takes more than never, which does nothing but pass time.
func BenchmarkPacerAwake(b *testing.B) {
	for _, policy := range []string{"never", "pacer"} {
		b.Run(policy, func(b *testing.B) {
			l := newLoop(policy, 250*MB)
			l.run(20)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				l.w.wake = 0
				l.settle()
				l.ask(l.w.point(Allocation, 10*MB))
				l.w.live, l.w.allocated, l.w.now = l.w.live+10*MB, l.w.allocated+10*MB, l.w.now+ms
				if n++; n%10 == 0 {
					l.w.garbage = l.w.live
				}
			}
		})
	}
}

// TestStretch: cycles that take twice as long as is said make the pacer go by twice
// what it is told, and back.
func TestStretch(t *testing.T) {
	var s stretch
	if got := s.of(ms); got != ms {
		t.Errorf("%v before the first cycle", got)
	}
	for _, took := range []time.Duration{2 * ms, ms, 100 * ms} {
		s.told = ms
		for range 100 {
			s.learn(took)
		}
		if got, want := s.of(ms), min(took, 4*ms); (got - want).Abs() > ms/1000 {
			t.Errorf("cycles of %v, said to be 1 ms, are taken for %v", took, got)
		}
	}
}

// TestCeiling: what did not fit, and would have under the limit, makes the most that was granted the
// limit to go by. What was never told to be there changes nothing. It rises with what is granted,
// falls where less is refused, and is forgotten, for longer each time that this was wrong.
func TestCeiling(t *testing.T) {
	var c ceiling
	is := func(what string, under, known int64) {
		t.Helper()
		if got := c.under(1000); got != under {
			t.Errorf("%s: limit %d, want %d", what, got, under)
		}
		if got := c.see(0, 1000); got != known {
			t.Errorf("%s: %d are known to be there, want %d", what, got, known)
		}
	}
	ends := func(live, request int64) {
		c.learn(Cycle{Freed: 300, LiveAfter: live - 300, Limit: 1000, Wanted: live + request})
	}
	c.see(900, 1000)
	ends(990, 20)
	is("a refusal of what does not fit", 1000, 1000)
	ends(900, 50)
	is("a refusal of what should fit", 900, 900)
	c.see(940, 1000)
	is("granted", 940, 940)
	ends(800, 100)
	is("a refusal of what was granted before", 800, 800)
	for keep := ceilingKeep; keep <= ceilingKeep*ceilingMore*ceilingMore; keep *= ceilingMore {
		for i := range keep {
			if c.under(1000) != 800 {
				t.Fatalf("forgotten after %d cycles, want %d", i, keep)
			}
			c.learn(Cycle{Limit: 1000})
		}
		is("forgotten, and asked for beside a cycle", 1000, 800)
		ends(800, 100)
	}
	c.see(2000, 1000)
	is("the limit is there", 1000, 1000)
}

// TestPacerKeepsToItsHeadroom: where memory has a price, live bytes above the headroom start a cycle, also after
// cycles that were dear for what they freed.
func TestPacerKeepsToItsHeadroom(t *testing.T) {
	p := &pacer{Share: 0.05, Memory: 1e-8}
	p.Observe(Cycle{Duration: time.Second, Trigger: TriggerPolicy, Action: Overlap, Freed: 1, LiveAfter: 10 * miB})
	at := Point{Now: 2 * time.Second, At: Allocation, Request: 1, LiveAfter: 10 * miB, Cost: ms, Work: ms}
	for live, want := range map[int64]Action{11 * miB: Skip, 13 * miB: Overlap} {
		at.Sample.Live = live
		q := *p
		if d := q.Decide(at); d.Action != want {
			t.Errorf("%d MiB live: %v (%s), want %v", live/miB, d.Action, d.Reason, want)
		}
	}
}
