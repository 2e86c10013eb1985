package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	if l.hit["headroom may not outlast a cycle"]+l.hit["foreseen: headroom does not outlast a cycle"]+l.hit["the wait hides what the headroom is worth"] < 20 {
		t.Errorf("reasons %v, want mostly what the scores of starts have taught", l.hit)
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

// TestHostMemoryBuysCycles: the dearer memory is, the more cycles; also
// without a limit.
func TestHostMemoryBuysCycles(t *testing.T) {
	for _, limit := range []int64{0, 10 * GB} {
		var last uint64
		for _, text := range []string{"host:price=1e-13,overhead=0%", "host:price=1e-11,overhead=0%", "host:price=1e-9,overhead=0%"} {
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

// BenchmarkAwake asks at requests that are all worth remembering, so that
// none is answered from Wake. A decision costs
// what pacer takes more than never, which does nothing but pass time.
func BenchmarkAwake(b *testing.B) {
	for _, policy := range []string{"never", "pacer", "host"} {
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

// TestCorrection: cycles that take twice as long as is said make the pacer go by twice
// what it is told, and back.
func TestCorrection(t *testing.T) {
	var s correction
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
	var c observedLimit
	is := func(what string, limit int64) {
		t.Helper()
		if got := c.of(0, 1000); got != limit {
			t.Errorf("%s: limit %d, want %d", what, got, limit)
		}
	}
	ends := func(live, request int64) {
		c.learn(Cycle{Freed: 300, LiveAfter: live - 300, Limit: 1000, Wanted: live + request})
	}
	c.of(900, 1000)
	ends(990, 20)
	is("a refusal of what does not fit", 1000)
	ends(900, 50)
	is("a refusal of what should fit", 900)
	c.of(940, 1000)
	is("granted", 940)
	ends(800, 100)
	is("a refusal of what was granted before", 800)
	for keep := observedKeep; keep <= observedKeep*observedMore*observedMore; keep *= observedMore {
		for i := range keep {
			if c.of(0, 1000) != 800 {
				t.Fatalf("forgotten after %d cycles, want %d", i, keep)
			}
			c.learn(Cycle{Limit: 1000})
		}
		is("forgotten", 1000)
		ends(800, 100)
	}
	c.of(2000, 1000)
	is("the limit is there", 1000)

	c = observedLimit{}
	ends(700, 300)
	is("a refusal of all that the limit has", 700)
	ends(690, 20)
	is("a refusal of less than was granted, in other pieces", 700)
	ends(690, 10)
	is("and of what was granted exactly", 690)
	ends(800, 150)
	is("a refusal where more is live than was ever seen", 800)
	c.learn(Cycle{Freed: 300, LiveAfter: 100, Limit: 1000})
	is("a cycle without a refusal", 800)
}

// TestForecast: requests of 100 and of 200 bytes, a long one at each tenth, 1 ms
// apart. A cycle that starts at the next one is over after so many as its length tells.
func TestForecast(t *testing.T) {
	request := func(i int) int64 {
		if i%10 == 0 {
			return 5000
		}
		return int64(100 + i%2*100)
	}
	for _, length := range []int{5, 41} {
		f := new(forecast)
		now := moment{}
		for i := range 400 {
			f.see(now, &Point{At: Allocation, Request: request(i), Cost: time.Duration(length)*ms - ms/2}, 1)
			now.time, now.total = now.time+ms, now.total+request(i)
			if i < 200 {
				continue
			}
			want := int64(0)
			for k := range length {
				want += request(i + 1 + k)
			}
			if x := f.recall(); x.last != want || x.most != want {
				t.Fatalf("%d ms, at %d: foresees %v, at most %v; want %v", length, i, x.last, x.most, want)
			}
		}
	}
}

// TestForecastRemembers tokens and grains, and knows nothing at first.
func TestForecastRemembers(t *testing.T) {
	f := new(forecast)
	now := moment{total: 5}
	for i, c := range []struct {
		at    Point
		grown int64
		want  bool
	}{
		{Point{Request: 1}, 0, true},                                                                 // the first
		{Point{Request: 1}, 0, false}, {Point{Request: 99}, 99, false}, {Point{Request: 1}, 1, true}, // a grain
		{Point{Request: 100}, 0, true}, {Point{Request: 99}, 0, false}, {Point{At: Sync}, 0, true}, {Point{At: Sync}, 0, true}, {Point{}, 99, false},
	} {
		now.total += c.grown
		c.at.Cost = time.Hour
		if got := f.see(now, &c.at, 100); got != c.want {
			t.Errorf("point %d: remembered %v", i, got)
		}
		if x := f.recall(); x.last != 0 || x.most != 0 || x.kept != -1 {
			t.Errorf("point %d: recalls %+v", i, x)
		}
	}
	f.visit(&f.here, func(x *situation) { x.kept = 0 })
	if x := f.recall(); x.kept != 0 || x.most != 0 {
		t.Errorf("all that was kept is %+v", x)
	}
}

// TestStartsFindTheMargin: a program that allocates ten bytes in a cycle, one by one, is to
// start when there is room for ten, where a pause costs more than bytes; where bytes
// are dear, it is not to start early at all.
func TestStartsFindTheMargin(t *testing.T) {
	for _, c := range []struct {
		worth     float64 // in cycles per byte
		low, high int64
	}{{1e-4, 10, 20}, {0.01, 10, 20}, {0.2, 0, 1}} {
		var d starts
		now := moment{}
		for range 20000 {
			now.time, now.total = now.time+ms/10, now.total+1
			d.see(&view{now: now, top: now.total + 1, guess: make([]float64, guesses), g: float64(ms), worth: c.worth * float64(ms), budget: 64, headroom: 50})
		}
		if got := int64(d.room(make([]float64, guesses))); got < c.low || got > c.high {
			t.Errorf("a byte is worth %g cycles: starts with room for %d, want %d to %d", c.worth, got, c.low, c.high)
		}
		if got := d.pace(now); math.Abs(got-float64(ms/10)) > 1 {
			t.Errorf("a byte lasts %g ns, want %v", got, ms/10)
		}
	}
}

// TestStartsAgainstTheWholePast: the score of every grain, margin and guess is what a search through
// all of the past says.
func TestStartsAgainstTheWholePast(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	const grain, budget, g = 16, 16 * budgetGrains, 5e6
	type place struct {
		now   moment
		top   int64
		guess [guesses]float64
	}
	var d starts
	var past []place
	var hidden, early [guesses][margins]float64
	now, judged := moment{}, int64(0)
	for range 3000 {
		now.time += time.Duration(draw.Int64N(1e6))
		p := place{now: now, top: now.total + draw.Int64N(3*grain)}
		for k := range p.guess {
			if k > 0 {
				p.guess[k] = float64(draw.Int64N(8 * grain))
			}
		}
		past = append(past, p)
		s := &view{now: now, top: p.top, guess: p.guess[:], g: g, worth: 1, budget: budget, headroom: budget}
		d.see(s)
		for ; judged < p.top/grain; judged++ {
			end := judged + 1
			for k := range guesses {
				for m := range margins {
					hidden[k][m], early[k][m] = keepScore*hidden[k][m], keepScore*early[k][m]
					from := slices.IndexFunc(past, func(p place) bool { return p.top/grain >= end-budgetGrains })
					x := slices.IndexFunc(past, func(p place) bool { return (p.top+int64(p.guess[k]))/grain >= end-int64(1)<<m>>1 })
					if x >= 0 {
						start := &past[max(x, from)].now
						passed := float64(now.time - start.time)
						hidden[k][m] += min(1, passed/g)
						early[k][m] += float64(end*grain - start.total)
					}
				}
			}
		}
		now.total = p.top
	}
	for k := range guesses {
		for m := range margins {
			if h, e := d.hidden[k][m], d.early[k][m]; math.Abs(h-hidden[k][m]) > 1e-6*h || math.Abs(e-early[k][m]) > 1e-6*e {
				t.Errorf("guess %d, margin %d: hides %g and gives up %g, want %g and %g", k, m, h, e, hidden[k][m], early[k][m])
			}
		}
	}
}

// TestHostKeepsToItsHeadroom: live bytes above the headroom start a cycle, also after
// cycles that were dear for what they freed.
func TestHostKeepsToItsHeadroom(t *testing.T) {
	for live, want := range map[int64]Action{11 * miB: Skip, 13 * miB: Overlap} {
		p := MustParse("host:overhead=0%").New()
		p.Observe(Cycle{Duration: time.Second, Trigger: TriggerPolicy, Action: Overlap, Freed: 1, LiveAfter: 10 * miB})
		at := Point{Now: 2 * time.Second, At: Allocation, Request: 1, LiveAfter: 10 * miB, Cost: ms, Work: ms}
		at.Sample.Live = live
		if d := p.Decide(at); d.Action != want {
			t.Errorf("%d MiB live: %v (%s), want %v", live/miB, d.Action, d.Reason, want)
		}
	}
}

// TestHostTakesItsOverhead: where the price asks for nothing, cycles take the share that is the target.
func TestHostTakesItsOverhead(t *testing.T) {
	for _, share := range []float64{0.005, 0.02, 0.05} {
		l := newLoop(fmt.Sprintf("host:price=0,overhead=%g%%", 100*share), 0)
		l.run(2000)
		got := float64(l.w.cycles) * float64(ms) / float64(l.w.now)
		if got < 0.8*share || got > 1.2*share {
			t.Errorf("cycles take %.2f%%, want %g%%", 100*got, 100*share)
		}
	}
}

// TestHostCountsProcessorTime: a cycle of 1 ms that takes 10 ms of processor time is due again after a second at 1 %.
func TestHostCountsProcessorTime(t *testing.T) {
	for now, want := range map[time.Duration]Action{1900 * ms: Skip, 2100 * ms: Overlap} {
		p := MustParse("host:price=0,overhead=1%").New()
		p.Observe(Cycle{Start: time.Second, Duration: ms, Work: 10 * ms, Freed: miB, Trigger: TriggerPolicy})
		at := Point{Now: now, At: Allocation, Request: 1, LiveAfter: 10 * miB, Cost: ms, Work: 10 * ms}
		at.Sample.Live = 10 * miB
		if d := p.Decide(at); d.Action != want {
			t.Errorf("after %v: %v (%s), want %v", now, d.Action, d.Reason, want)
		}
	}
}

// TestCPUControl holds the heap to the published rule.
func TestCPUControl(t *testing.T) {
	p := MustParse("cpucontrol:15%,min=1000B").New().(*cpuControl)
	p.Decide(grow(0, 0, 1, 0, 0, 0))
	want := 1000.
	for i, c := range []struct{ work, overhead float64 }{ // one cycle in each 100 ns; overhead over the last three
		{10, 10. / 90}, {30, 40. / 160}, {20, 60. / 240}, {1, 51. / 249},
	} {
		end := time.Duration(100 * (i + 1))
		p.Observe(Cycle{Start: end - time.Duration(c.work), Duration: time.Duration(c.work), Work: time.Duration(c.work)})
		want *= 0.5 + 1/(1+math.Exp(-100*(c.overhead-0.15)))
		if math.Abs(p.heap-want) > 1e-9*want {
			t.Errorf("cycle %d: heap %.0f, want %.0f", i, p.heap, want)
		}
	}
}
