package sim

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A naive replay walks the rules of DESIGN, section 6, over the events themselves, one
// object at a time and without a thought for speed. It shares nothing with the engine.
type naive struct {
	policy policy.Policy
	limit  int64
	cost   func(tracked, freed int) int64 // ns
	ladder float64

	now             int64           // of the run
	shift           int64           // by which that is later than the recording
	objects         map[uint64]bool // there; true once dropped
	bytes           map[uint64]int64
	live            int64
	wake            int64
	cycle           *naiveCycle // under way
	allocated       int64       // since the last cycle settled, as given
	given           int64       // freed by hand
	liveAfter       int64
	lastFreed       int // objects
	res             Result
	areaLive, areaG float64 // as if cycles freed nothing
	kept, dropped   int64   // that would be live and garbage then
	frees           []naiveFree
	cycles          uint64
}

type naiveCycle struct {
	start, end int64
	dead       []uint64
}

// A naiveFree is when bytes became free.
type naiveFree struct{ at, bytes int64 }

func (n *naive) pass(to int64) {
	n.areaLive += float64(n.kept) * float64(to-n.now)
	n.areaG += float64(n.dropped) * float64(to-n.now)
	n.now = to
}

func (n *naive) hold(d int64) {
	if d > 0 {
		n.pass(n.now + d)
		n.shift += d
		n.res.ExposedPause += time.Duration(d)
		n.res.MaxPause = max(n.res.MaxPause, time.Duration(d))
	}
}

// dead returns the objects that are dropped and not freed.
func (n *naive) dead() (ids []uint64) {
	for id, dropped := range n.objects {
		if dropped {
			ids = append(ids, id)
		}
	}
	return ids
}

// settle frees what a cycle found, and tells the policy.
func (n *naive) settle(c policy.Cycle, at int64, ids []uint64) {
	for _, id := range ids {
		c.Freed += n.bytes[id]
		delete(n.objects, id)
	}
	n.live -= c.Freed
	n.frees = append(n.frees, naiveFree{at, c.Freed})
	n.allocated, n.given, n.liveAfter, n.lastFreed = 0, 0, n.live, len(ids)
	c.LiveAfter, c.Limit = n.live, n.limit
	n.cycles++
	n.wake = 0
	n.policy.Observe(c)
}

// settleOverlapped ends the cycle under way, which has held the program for so long.
func (n *naive) settleOverlapped(held, wanted int64) {
	c := n.cycle
	n.cycle = nil
	n.settle(policy.Cycle{Start: time.Duration(c.start), Duration: time.Duration(c.end - c.start), Exposed: time.Duration(max(0, held)), Action: policy.Overlap, Wanted: wanted}, c.end, c.dead)
}

// costNow is what a cycle costs that starts now; it counts as busy.
func (n *naive) costNow() int64 {
	g := n.cost(len(n.objects), len(n.dead()))
	n.res.GCBusy += time.Duration(g)
	return g
}

func (n *naive) ask(p policy.Point) policy.Decision {
	p.Now = time.Duration(n.now)
	p.Sample = pressure.Sample{Live: n.live, Reserved: n.live, Limit: n.limit}
	p.Allocated, p.Freed, p.LiveAfter = n.allocated, n.given, n.liveAfter
	p.Cost = time.Duration(n.cost(len(n.objects), n.lastFreed))
	p.Running, p.Cycles = n.cycle != nil, n.cycles
	d := n.policy.Decide(p)
	n.wake = d.Wake
	return d
}

// obey does what the policy says at a point where the program waits for w ns anyway.
func (n *naive) obey(d policy.Decision, w int64) {
	switch {
	case d.Action == policy.Skip:
	case n.cycle != nil:
		if d.Action == policy.Block {
			held := n.cycle.end - n.now - w
			n.hold(held)
			n.settleOverlapped(held, 0)
		}
	case d.Action == policy.Overlap:
		n.res.Collections++
		n.cycle = &naiveCycle{n.now, n.now + n.costNow(), n.dead()}
	default:
		n.res.Collections++
		g, start, ids := n.costNow(), n.now, n.dead()
		n.hold(g - w)
		n.settle(policy.Cycle{Start: time.Duration(start), Duration: time.Duration(g), Exposed: time.Duration(max(0, g-w)), Action: policy.Block}, n.now, ids)
	}
}

func (n *naive) fits(z int64) bool { return n.limit == 0 || n.live+z <= n.limit }

func (n *naive) admit(z int64) {
	if !n.fits(z) && n.cycle != nil {
		held := n.cycle.end - n.now
		n.hold(held)
		n.settleOverlapped(held, n.live+z)
	}
	if !n.fits(z) {
		n.res.RefusalCollections++
		wanted := n.live + z
		g, start, ids := n.costNow(), n.now, n.dead()
		l := int64(n.ladder * float64(g))
		n.hold(l)
		n.settle(policy.Cycle{Start: time.Duration(start), Duration: time.Duration(g), Exposed: time.Duration(l), Trigger: policy.TriggerRefusal, Action: policy.Block, Wanted: wanted}, n.now, ids)
	}
	if !n.fits(z) {
		n.res.FailedAllocs++
	}
}

func (n *naive) event(e trace.Event) {
	n.pass(e.Time + n.shift)
	if (e.Kind == trace.Alloc || e.Kind == trace.Sync) && n.cycle != nil && n.now >= n.cycle.end {
		n.settleOverlapped(0, 0)
	}
	switch e.Kind {
	case trace.Alloc:
		if n.live+e.Bytes >= n.wake {
			n.obey(n.ask(policy.Point{At: policy.Allocation, Request: e.Bytes}), 0)
		}
		n.admit(e.Bytes)
		n.objects[e.ID], n.bytes[e.ID] = false, e.Bytes
		n.live += e.Bytes
		n.kept += e.Bytes
		n.allocated += e.Bytes
		n.res.PeakLive = max(n.res.PeakLive, n.live)
	case trace.Drop:
		n.objects[e.ID] = true
		n.dropped += e.Bytes
	case trace.Free:
		delete(n.objects, e.ID)
		n.live -= e.Bytes
		n.kept -= e.Bytes
		n.given += e.Bytes
	case trace.Sync:
		n.obey(n.ask(policy.Point{At: policy.Sync, Wait: e.Duration, WillBlock: true}), int64(e.Duration))
	}
}

func (n *naive) run(events []trace.Event) Result {
	n.objects, n.bytes = make(map[uint64]bool), make(map[uint64]int64)
	first, last := events[0].Time, events[len(events)-1].Time
	for _, e := range events {
		e.Time -= first
		n.event(e)
	}
	n.res.Span = time.Duration(last - first)
	n.res.Elapsed = n.res.Span + time.Duration(n.shift)
	if elapsed := float64(n.res.Elapsed); elapsed > 0 {
		for _, f := range n.frees {
			absent := float64(f.bytes) * max(0, elapsed-float64(f.at))
			n.areaLive -= absent
			n.areaG -= absent
		}
		n.res.MeanLive, n.res.MeanGarbage = n.areaLive/elapsed, n.areaG/elapsed
	}
	return n.res
}

// A noted policy keeps what it is asked and told.
type noted struct {
	policy.Policy
	points []policy.Point
	told   []policy.Cycle
}

func (p *noted) Decide(at policy.Point) policy.Decision {
	p.points = append(p.points, at)
	return p.Policy.Decide(at)
}

func (p *noted) Observe(c policy.Cycle) {
	p.told = append(p.told, c)
	p.Policy.Observe(c)
}

// TestAgainstANaiveReplay: every metric of a run, all that the policy is shown and all
// that it is told.
func TestAgainstANaiveReplay(t *testing.T) {
	for range 10 {
		check(t, 100, againstANaiveReplay)
	}
}

func againstANaiveReplay(t *random) {
	tr := genTrace(t, t.coin())
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	cfg := genConfig(t, w)
	cfg.WaitNoise, cfg.Cost.Slowdown = 0, 0
	if between(t, 0, 4) == 0 {
		cfg.Limit = 0
	}
	fresh := genWhim(t, policy.Skip, policy.Skip, policy.Overlap, policy.Block)
	fast, slow := &noted{Policy: fresh()}, &noted{Policy: fresh()}
	got := Run(w, fast, cfg)
	n := naive{policy: slow, limit: cfg.Limit, ladder: cfg.Ladder.Factor, cost: func(tracked, freed int) int64 {
		return int64(cfg.Cost.Base) + int64(math.Round(cfg.Cost.PerTracked*float64(tracked)+cfg.Cost.PerFreed*float64(freed)))
	}}
	want := n.run(tr.Events)
	for _, mean := range []struct{ got, want *float64 }{{&got.MeanLive, &want.MeanLive}, {&got.MeanGarbage, &want.MeanGarbage}} {
		if math.Abs(*mean.got-*mean.want) > 1e-6 {
			t.Fatalf("mean %f, want %f", *mean.got, *mean.want)
		}
		*mean.got = *mean.want
	}
	want.Trace, want.Policy, want.LimitBytes, want.LimitFactor, want.Cycle, want.Ladder = got.Trace, got.Policy, got.LimitBytes, got.LimitFactor, got.Cycle, got.Ladder
	if got != want {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(fast.points, slow.points) || !reflect.DeepEqual(fast.told, slow.told) {
		t.Fatalf("shown %+v\nwant  %+v\ntold %+v\nwant %+v", fast.points, slow.points, fast.told, slow.told)
	}
}
