package gc

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A plainBackoff is the back-off of a gauge as its comment has it.
type plainBackoff struct {
	worth         float64
	length, until time.Duration
	level         int64
}

func (b *plainBackoff) on(level, heap int64, now time.Duration) bool {
	grown, enough := level-b.level, max(b.level/8, heap)
	switch {
	case b.worth >= 0.25: // it rests until the time is over, or enough has come
		return now < b.until && grown < enough
	case grown > b.level+heap+16<<20: // more than twice as much
		return false
	}
	return now < b.until || grown < enough // until both
}

func (b *plainBackoff) learn(o outcome, now time.Duration) {
	brought := float64(o.freed) >= 0.05*float64(o.high) || o.freed >= 2<<20 && 2*o.freed >= o.grown
	ran := o.ran > 0
	if !o.asked && (!brought || !ran) {
		return
	}
	tells := brought || ran || float64(o.risen) >= 0.05*float64(o.high) && o.risen >= 2<<20
	if tells {
		b.worth /= 2
	}
	if brought || ran {
		b.worth += 0.5
	}
	switch {
	case brought:
		b.length, b.until = 0, 0
	case tells && b.worth >= 0.25:
		b.length, b.until = 0, o.began+time.Duration(float64(o.work)/0.05)
	default:
		b.length = max(time.Duration(float64(o.work)/0.01), min(max(2*b.length, 10*ms), 2*time.Minute))
		b.until = now + b.length
	}
	b.level = max(0, o.high-o.freed)
}

// TestABackoffIsWhatItsCommentSays, of random cycles and levels, with each bound among them.
func TestABackoffIsWhatItsCommentSays(t *testing.T) {
	const mib = 1 << 20
	schedules(t, 400, func(d *draw) {
		var got backoff
		var want plainBackoff
		now := time.Second
		for range 60 {
			now += oneOf(d, 0, ms, 10*ms, 20*ms, time.Minute)
			high := oneOf(d, int64(100*mib), 1000*mib, 20*mib)
			o := outcome{
				asked: between(d, 0, 4) > 0, began: now - oneOf(d, ms, 30*ms), high: high, work: oneOf(d, ms/20, ms, 100*ms), ran: oneOf(d, int64(0), 0, 1, -1),
				grown: oneOf(d, int64(0), 4*mib, 4*mib+1, 200*mib), risen: oneOf(d, int64(0), 2*mib, 2*mib-1, high/20, high/20-1, high),
				freed: oneOf(d, int64(0), 0, 0, 2*mib, 2*mib-1, high/20, high/20-1, high/2, high+5),
			}
			if between(d, 0, 1) == 0 {
				got.learn(o, now)
				want.learn(o, now)
			}
			level := oneOf(d, 0, want.level/2, want.level+want.level/8, want.level+want.level/8-1, want.level+4*mib, want.level+4*mib-1, 2*want.level+20*mib, 2*want.level+20*mib+1)
			at := oneOf(d, now, want.until, want.until-1)
			if between(d, 0, 3) == 0 {
				got.see(level)
				want.level = min(want.level, level)
			}
			if a, b := got.on(level, 4*mib, at), want.on(level, 4*mib, at); a != b || got != backoff(want) {
				d.Fatalf("%+v, want %+v; at a level of %d, at %v: rests %v, want %v; last %+v", got, want, level, at, a, b, o)
			}
		}
	})
}

// A plainGauge is what a gauge is to know of a memory.
type plainGauge struct {
	level, given, fallen, low int64
	since, began              time.Duration
	byItself                  float64
	outcome                   outcome
	brought, credited         int64
	told, givenAtMark         int64
	each, kept, rate          float64
	backoff                   plainBackoff
	liveAfter                 int64
}

func (p *plainGauge) see(level int64) {
	p.given += max(0, level-p.level)
	p.fallen += max(0, p.level-level)
	p.level, p.low, p.backoff.level = level, min(p.low, level), min(p.backoff.level, level)
}

// freed is what it has fallen by, beyond what the program frees by itself in such a time.
func (p *plainGauge) freed(now time.Duration) int64 {
	return max(0, p.fallen-int64(p.byItself*float64(now-p.since)))
}

func (p *plainGauge) judge(now, work time.Duration, ran int64) {
	o := p.outcome
	o.freed, o.ran, o.work = p.freed(now), ran, work
	p.backoff.learn(o, now)
	if p.kept = 0; ran > 0 && o.lasted > 0 {
		p.each = max(p.each*63/64, float64(o.risen)/float64(ran))
		p.kept = max(0, p.each*float64(ran)-float64(o.risen))
		p.rate = p.kept / float64(o.lasted)
	}
	p.brought += o.freed
	p.outcome, p.fallen, p.since, p.low = outcome{}, 0, now, p.level
}

// TestAGaugeIsWhatItsDocSays runs a gauge beside a restatement of it: looks, marks and their ends come in any order, and levels rise and fall.
func TestAGaugeIsWhatItsDocSays(t *testing.T) {
	quiet(t)             // so that no finalizer becomes due
	const unit = 1 << 30 // a multiple of what Go's heap may be
	schedules(t, 300, func(d *draw) {
		e, p := newPuppet(), new(watching)
		e.pass(time.Hour)
		c := newOn(e, Config{Caps: Caps{Cycles: 1, Gauges: 50}, Idle: -1}, p)
		defer c.Close()
		level := int64(5 * unit)
		g := &Gauge{c: c, read: func() int64 { return level }, low: level, stop: make(chan struct{})}
		g.level.Store(level)
		g.grown.Store(level)
		g.backoff.level = level
		g.gate = c.NewGate(g)
		walk := (*gaugeWalk)(g)
		w := &plainGauge{level: level, given: level, low: level, liveAfter: level, backoff: plainBackoff{level: level}}
		g.reuse.each = oneOf(d, 0, float64(unit))
		w.each = g.reuse.each
		asked, ran, heap := 0, int64(0), goHeap()
		cleaned := func() bool { return w.outcome.high > 0 && e.sweeps.Load() >= w.outcome.marks }
		move := func(d *draw) {
			waitFor(t, 20*time.Second, func() bool { return !readPending().waiting() }) // of this process, which a gauge looks at, too
			level = max(0, level+unit*between(d, int64(-4), 5)+oneOf(d, int64(0), 0, unit/8, -unit/3))
		}
		d.repeat(map[string]func(*draw){
			"pass": func(d *draw) { e.pass(oneOf(d, ms, 2*ms, 20*ms, 20*ms-1, time.Second)) },
			"limit": func(d *draw) {
				g.SetLimit(oneOf(d, int64(0), 3*unit, 6*unit, level, level+unit))
			},
			"sweep": func(d *draw) { e.sweeps.Store(e.begun.Load()) },
			"mark": func(d *draw) {
				move(d)
				now := e.now()
				walk.promoteAll()
				w.see(level)
				w.brought, w.told = w.brought+w.told, 0
				if w.outcome.high == 0 {
					if past := now - w.since; past >= 2*ms {
						w.byItself = float64(w.fallen) / float64(past)
					}
					w.outcome = outcome{began: now, grown: w.level - w.low, risen: w.given - w.givenAtMark, lasted: now - w.began}
					w.givenAtMark, w.fallen, w.since = w.given, 0, now
					ran = oneOf(d, int64(0), 0, 3)
					g.before.finalized -= uint64(ran) // as if so many had run since
				}
				w.began = now
				e.begun.Add(1)
				asked := between(d, 0, 2) > 0
				move(d)
				walk.begin(asked)
				if w.outcome.high == 0 {
					w.see(level)
					w.outcome.high, w.outcome.marks = max(1, level), e.begun.Load()
				}
				w.outcome.asked = w.outcome.asked || asked
			},
			"settle": func(d *draw) {
				move(d)
				settled := walk.settled()
				if w.see(level); cleaned() {
					w.judge(e.now(), c.expected.Work, ran)
				}
				if settled != (w.outcome.high == 0) {
					d.Fatalf("settled: %v", settled)
				}
			},
			"credit": func(d *draw) {
				brought := w.brought
				if w.outcome.high > 0 {
					brought += w.freed(e.now())
				}
				want := max(0, brought-w.credited)
				w.credited += want
				if got := walk.credit(); got != want {
					d.Fatalf("credited %d, want %d", got, want)
				}
			},
			"look": func(d *draw) { g.look(d, w, p, e, &level, &asked, move, cleaned, ran, heap) },
			"and":  func(d *draw) { g.look(d, w, p, e, &level, &asked, move, cleaned, ran, heap) },
		}, func(d *draw) {
			got := plainGauge{
				g.level.Load(), g.grown.Load(), g.fallen, g.low, g.since, g.began, g.byItself, g.outcome, g.brought, g.credited,
				g.reuse.told, g.reuse.grown, g.reuse.each, g.reuse.kept, g.reuse.rate, plainBackoff(g.backoff), g.gate.liveAfter,
			}
			if got != *w || len(p.points) != asked || g.Resting() != w.backoff.length || g.Stuck() {
				d.Fatalf("asked %d times, want %d; knows\n%+v, want\n%+v", len(p.points), asked, got, *w)
			}
			if s := g.Sample(); s != (pressure.Sample{Live: w.level, Reserved: w.level, Limit: g.limit.Load()}) || g.Allocated() != w.given {
				d.Fatalf("a sample of %+v, %d handed out", s, g.Allocated())
			}
		})
	})
}

// look checks a look at a gauge, and whether it asks the policy.
func (g *Gauge) look(d *draw, w *plainGauge, p *watching, e *puppet, level *int64, asked *int, move func(*draw), cleaned func() bool, ran, heap int64) {
	d.Helper()
	move(d)
	now, was := e.now(), w.level
	if got := g.Look(); got != *level {
		d.Fatalf("reads %d of %d", got, *level)
	}
	if w.see(*level); cleaned() {
		w.judge(now, g.c.expected.Work, ran)
	}
	if *level < was {
		w.liveAfter = min(w.liveAfter, *level)
	}
	limit, worth := g.limit.Load(), w.backoff.worth >= 0.25
	over := limit > 0 && *level > limit && w.backoff.length == 0
	switch {
	case *level <= was && !worth: // nothing grows
	case w.began > 0 && now-w.began < time.Second/50: // a cycle has only just begun
	case over || !w.backoff.on(*level, heap, now):
		live := min(was, *level) + w.told
		w.told = int64(min(w.kept, w.rate*float64(now-w.began)))
		*asked++
		if len(p.points) != *asked || p.points[*asked-1].Sample.Live != live || p.points[*asked-1].Request != max(0, *level+w.told-live) {
			d.Fatalf("asked %d times, want %d; last about %+v, want %d live and %d more", len(p.points), *asked, p.points[max(0, len(p.points)-1):], live, max(0, *level+w.told-live))
		}
	}
}

// TestANewGaugeIsRecordedAndCounted from what it reads first, and no more once it is closed.
func TestANewGaugeIsRecordedAndCounted(t *testing.T) {
	e, to := newPuppet(), &recording{}
	c := newOn(e, Config{Idle: -1, Recorder: worldClock{to, e}}, policy.Spec{}.New())
	defer c.Close()
	first, second := Watch(c, func() int64 { return 0 }), Watch(c, func() int64 { return 70 })
	second.mu.Lock()
	low, level := second.low, second.backoff.level
	second.mu.Unlock()
	c.mu.Lock()
	after := second.gate.liveAfter
	c.mu.Unlock()
	if second.Sample().Live != 70 || second.Allocated() != 70 || low != 70 || level != 70 || after != 70 || first.log.last%gaugeIDs != 0 || first.log.last/gaugeIDs == second.log.last/gaugeIDs {
		t.Errorf("%+v", second.Sample())
	}
	second.SetLimit(9)
	if s := c.Snapshot().Sources; len(s) != 2 || s[1].Live != 70 || s[1].Limit != 9 || len(c.allRegistries()) != 2 {
		t.Errorf("watches %+v", s)
	}
	c.mu.Lock()
	events := to.Events
	c.mu.Unlock()
	if len(events) != 1 || events[0].Kind != trace.Alloc || events[0].Bytes != 70 || to.Trace.Label(events[0]) != "(gauge)" || events[0].ID>>56 != 0xff || events[0].Space != pressure.Host {
		t.Errorf("recorded %+v", events)
	}
	first.Close()
	second.Close()
	second.Close()
	if len(c.sources()) != 0 || len(c.allRegistries()) != 0 {
		t.Error("a closed gauge is watched still")
	}
}

// TestMovesOfAGaugeAreRecorded with their cause: a cycle's where one is being judged.
func TestMovesOfAGaugeAreRecorded(t *testing.T) {
	e, to := newPuppet(), &recording{}
	c := newOn(e, Config{Idle: -1, Recorder: worldClock{to, e}}, policy.Spec{}.New())
	defer c.Close()
	g := &Gauge{c: c}
	for _, step := range []struct {
		moved, high int64
		event       int64 // bytes, below 0 of what is free; 0: none
		why         uint32
	}{{5, 0, 5, 0}, {0, 0, 0, 0}, {-5, 0, -5, trace.FreeExplicit}, {8, 9, 8, 0}, {-8, 9, -8, trace.FreeCycle}, {0, 9, 0, 0}} {
		n := len(to.Events)
		g.outcome.high = step.high
		g.record(step.moved)
		got, why := int64(0), uint32(0)
		for _, e := range to.Events[n:] {
			if got = e.Bytes; e.Kind == trace.Free {
				got, why = -e.Bytes, e.Aux
			}
		}
		if got != step.event || why != step.why || len(to.Events)-n > 1 {
			t.Errorf("%+v: recorded %+v", step, to.Events[n:])
		}
	}
}

// TestLooksComeWhereTheProgramRuns: as long as the process gets a slice of processor time, within their bounds.
func TestLooksComeWhereTheProgramRuns(t *testing.T) {
	g := &Gauge{}
	for _, test := range []struct{ last, got, want time.Duration }{
		{10 * ms, 10 * ms, 10 * ms}, {10 * ms, 5 * ms, 20 * ms}, {10 * ms, 20 * ms, 5 * ms}, {10 * ms, 100 * ms, 2 * ms}, {10 * ms, 0, 100 * ms}, {10 * ms, ms, 100 * ms}, {100 * ms, 20 * ms, 50 * ms},
	} {
		if got := g.longest(test.last, test.got); got != test.want {
			t.Errorf("after %v with %v of a processor: %v, want %v", test.last, test.got, got, test.want)
		}
	}
	if g.due.waits = true; g.longest(10*ms, 0) != 2*ms {
		t.Error("looks seldom, although finalizers are due")
	}
	if g.due.stuck = true; !g.Stuck() {
		t.Error("stuck, and nobody is told")
	}
}
