package sim

import (
	"cmp"
	"math"
	"reflect"
	"slices"
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
	space  pressure.Space
	limit  int64
	told   Told
	cost   int64   // ns
	share  float64 // of it, for the policy's cycles
	steps  []step  // if set, of a schedule, in the place of a policy
	points int
	ladder func(int64) int64
	slows  float64 // the program, beside a cycle

	point, waited   int64           // when it was last asked or could have been, and how long it waited there
	rest            float64         // of a ns that it has lost
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
	res             Result
	areaLive, areaG float64 // as if cycles freed nothing
	kept, dropped   int64   // that would be live and garbage then
	frees           []naiveFree
	pauses          []Pause
	levels          []Level         // after the last event of each time
	asked           []time.Duration // on the recording's clock
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
		n.pauses = append(n.pauses, Pause{At: time.Duration(n.now), Trace: time.Duration(n.now - n.shift), Length: time.Duration(d)})
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
	n.allocated, n.given, n.liveAfter = 0, 0, n.live
	c.LiveAfter, c.Limit = n.live, naiveLimit(n.told, n.limit)
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

// slow delays the program beside the cycle under way: it has worked since the last point, but for the wait there.
func (n *naive) slow() {
	worked := n.now - n.shift - n.point
	wait := min(n.waited, worked)
	beside := float64(max(0, n.cycle.end-n.point-n.shift-wait))
	n.rest += n.slows * min(float64(worked-wait), beside/(1+n.slows))
	lost := int64(n.rest)
	n.rest -= float64(lost)
	n.pass(n.now + lost)
	n.shift += lost
	n.res.Slowed += time.Duration(lost)
}

// costNow is what a cycle costs that starts now, by share; it counts as busy.
func (n *naive) costNow(share float64) int64 {
	g := int64(share * float64(n.cost))
	n.res.GCBusy += time.Duration(g)
	return g
}

func (n *naive) ask(p policy.Point) policy.Decision {
	p.Now = time.Duration(n.now)
	p.Sample = pressure.Sample{Space: n.space, Live: n.live, Reserved: n.live, Limit: naiveLimit(n.told, n.limit)}
	p.Allocated, p.Freed, p.LiveAfter = n.allocated, n.given, n.liveAfter
	p.Cost = time.Duration(n.share * float64(n.cost))
	if n.told.Cost != 0 {
		p.Cost = time.Duration(n.told.Cost * float64(p.Cost))
	}
	p.Slowdown = n.slows
	p.Running, p.Cycles = n.cycle != nil, n.cycles
	if n.points++; n.steps != nil {
		return n.follow(int64(p.Wait))
	}
	d := n.policy.Decide(p)
	n.asked = append(n.asked, time.Duration(n.now-n.shift))
	n.wake = d.Wake
	return d
}

// follow waits for the cycle under way where a schedule has a step, and returns that step's decision.
func (n *naive) follow(w int64) (d policy.Decision) {
	if s := n.steps[0]; s.point == n.points-1 {
		n.steps, d.Action = n.steps[1:], s.action
		if n.cycle != nil {
			n.obey(policy.Decision{Action: policy.Block}, w)
		}
	}
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
		n.cycle, n.rest = &naiveCycle{n.now, n.now + n.costNow(n.share), n.dead()}, 0
	default:
		n.res.Collections++
		g, start, ids := n.costNow(n.share), n.now, n.dead()
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
		g, start, ids := n.costNow(1), n.now, n.dead()
		l := n.ladder(g)
		n.hold(l)
		n.settle(policy.Cycle{Start: time.Duration(start), Duration: time.Duration(g), Exposed: time.Duration(l), Trigger: policy.TriggerRefusal, Action: policy.Block, Wanted: wanted}, n.now, ids)
	}
	if !n.fits(z) {
		n.res.FailedAllocs++
	}
}

func (n *naive) event(e trace.Event) {
	n.pass(e.Time + n.shift)
	if e.Kind == trace.Alloc || e.Kind == trace.Sync {
		if n.cycle != nil {
			n.slow()
		}
		if n.cycle != nil && n.now >= n.cycle.end {
			n.settleOverlapped(0, 0)
		}
		n.point, n.waited = e.Time, int64(e.Duration)
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
	last, most := int64(0), int64(0)
	for i, e := range events {
		if e.Kind == trace.Mark {
			continue
		}
		n.event(e)
		last, most = e.Time, max(most, n.kept-n.dropped)
		if i+1 < len(events) && events[i+1].Time == e.Time {
			continue
		}
		garbage := int64(0)
		for _, id := range n.dead() {
			garbage += n.bytes[id]
		}
		n.levels = append(n.levels, Level{time.Duration(n.now), n.live, garbage})
	}
	g := time.Duration(n.cost)
	n.res.LimitBytes, n.res.LimitFactor = n.limit, float64(n.limit)/float64(max(1, most))
	n.res.Cycle, n.res.Ladder = g, time.Duration(n.ladder(int64(g)))
	n.res.Span = time.Duration(last)
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

// A noted policy keeps what it is asked and told. Its cycles cost a share of a full one.
type noted struct {
	policy.Policy
	share  float64
	points []policy.Point
	answer []policy.Decision
	told   []policy.Cycle
}

func (p *noted) Decide(at policy.Point) policy.Decision {
	d := p.Policy.Decide(at)
	p.points, p.answer = append(p.points, at), append(p.answer, d)
	return d
}

func (p *noted) Observe(c policy.Cycle) {
	p.told = append(p.told, c)
	p.Policy.Observe(c)
}

func (p *noted) CycleShare() float64 { return p.share }

// genStrayed draws a workload in space 3 from 1,000 ns on, among events that do not count, and returns those that do, from 0 on. Of some
// objects it is known from a cycle alone that they were garbage: that many are seen.
func genStrayed(t *random) (w *Workload, events []trace.Event, seen int) {
	plain := genTrace(t, t.coin())
	tr := &trace.Trace{Name: "strayed", Labels: []string{"", "a", "b", trace.AheadLabel}}
	for i, e := range plain.Events {
		if e.Time -= plain.Events[0].Time; e.Kind == trace.Sync {
			e.Aux = uint32(t.IntN(3))
		}
		events = append(events, e)
		e.Time, e.Space = e.Time+1000, 3
		if e.Kind == trace.Sync {
			e.Space = pressure.Space(t.IntN(4))
		}
		other := trace.Event{Time: e.Time, Kind: pick(t, trace.Alloc, trace.Drop, trace.Free, trace.Mark, trace.Cycle, trace.Decision), ID: e.ID, Bytes: 1 << 40, Duration: 7}
		if i > 0 {
			tr.Record(other)
		}
		if e.Kind == trace.Drop && t.coin() {
			e.Kind, e.Aux, e.Bytes = trace.Free, trace.FreeCycle, 0
			seen++
		}
		tr.Record(e)
		if e.Kind == trace.Drop {
			e.Kind, e.Aux = trace.Free, uint32(t.IntN(2))
			tr.Record(e) // its drop was seen
		}
		if t.IntN(5) == 0 {
			ahead := trace.Event{Time: e.Time, Kind: trace.Mark, Aux: 3, Duration: time.Duration(t.IntN(40))}
			tr.Record(ahead)
			ahead.Time -= 1000
			events = append(events, ahead)
		}
	}
	w, err := Compile(tr, 3)
	if err != nil {
		t.Fatal(err)
	}
	return w, events, seen
}

// TestAgainstANaiveReplay: every metric of a run, all that the policy is shown and all
// that it is told, what the log keeps of it, and what a workload says of itself.
func TestAgainstANaiveReplay(t *testing.T) { check(t, 1000, againstANaiveReplay) }

func againstANaiveReplay(t *random) {
	w, events, seen := genStrayed(t)
	countsAre(t, w, events, seen)
	cfg := genConfig(t, w)
	cfg.WaitNoise, cfg.Told = 0, Told{Limit: some(t, 0.75, 1e-9), Cost: some(t, 2.5)}
	cfg.Ladder = Ladder{Fixed: some[time.Duration](t, 17), Factor: 1.5}
	if between(t, 0, 4) == 0 {
		cfg.Limit = 0
	}
	fresh := genWhim(t, policy.Skip, policy.Skip, policy.Overlap, policy.Block)
	fast, slow := &noted{Policy: fresh(), share: some(t, 0.4, -1)}, &noted{Policy: fresh()}
	cfg.Log = &Log{KeepDecisions: true}
	got := Run(w, fast, cfg)
	addUp(t, fast.points)
	n := naiveOf(&cfg)
	if n.policy = slow; fast.share > 0 {
		n.share = fast.share
	}
	sameButForMeans(t, got, n.run(events), slow.String())
	if !reflect.DeepEqual(fast.points, slow.points) || !reflect.DeepEqual(fast.told, slow.told) {
		t.Fatalf("shown %+v\nwant  %+v\ntold %+v\nwant %+v", fast.points, slow.points, fast.told, slow.told)
	}
	logIs(t, cfg.Log, n, slow)
	seriesHas(t, w.Series(cfg.Log, got.Elapsed, int(got.Elapsed)), n.levels)
}

// sameButForMeans compares results, whose means may differ by a rounding.
func sameButForMeans(t *random, got, want Result, name string) {
	if math.Abs(got.MeanLive-want.MeanLive) < 1e-6 && math.Abs(got.MeanGarbage-want.MeanGarbage) < 1e-6 {
		want.MeanLive, want.MeanGarbage = got.MeanLive, got.MeanGarbage
	}
	if want.Trace, want.Policy = "strayed", name; got != want {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// naiveOf returns a naive replay in the world of a config, in space 3.
func naiveOf(cfg *Config) *naive {
	return &naive{space: 3, limit: cfg.Limit, told: cfg.Told, share: 1, slows: cfg.Cost.Slowdown, cost: int64(cfg.Cost.Base), ladder: func(g int64) int64 {
		if cfg.Ladder.Fixed != 0 {
			return int64(cfg.Ladder.Fixed)
		}
		return int64(cfg.Ladder.Factor * float64(g))
	}}
}

// countsAre compares what a workload says of itself with its events.
func countsAre(t *random, w *Workload, events []trace.Event, seen int) {
	want := Workload{Name: "strayed", Space: 3, SeenDeaths: seen}
	for _, e := range events {
		switch e.Kind {
		case trace.Alloc:
			want.Allocs++
			want.AllocatedBytes += e.Bytes
		case trace.Drop, trace.Free:
			want.Drops++
		case trace.Sync:
			want.Syncs++
			want.Wait += e.Duration
		}
	}
	got := Workload{Name: w.Name, Space: w.Space, Allocs: w.Allocs, AllocatedBytes: w.AllocatedBytes, Drops: w.Drops, SeenDeaths: w.SeenDeaths, Syncs: w.Syncs, Wait: w.Wait}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("a workload is\n%+v, want\n%+v", got, want)
	}
}

// logIs compares what a log keeps with a naive replay.
func logIs(t *random, l *Log, n *naive, p *noted) {
	var lengths []time.Duration
	for _, x := range n.pauses {
		lengths = append(lengths, x.Length)
	}
	slices.Sort(lengths)
	if !slices.EqualFunc(l.Pauses, n.pauses, func(x, y Pause) bool { x.seq = 0; return x == y }) || !slices.Equal(l.Lengths(), lengths) {
		t.Fatalf("pauses %+v, sorted %v\nwant   %+v", l.Pauses, l.Lengths(), n.pauses)
	}
	if !slices.EqualFunc(l.Cycles, p.told, func(x Collected, y policy.Cycle) bool { return x.Cycle == y }) {
		t.Fatalf("cycles %+v\nwant   %+v", l.Cycles, p.told)
	}
	for i, d := range l.Decisions {
		if i >= len(p.points) || d.Point != p.points[i] || d.Decision != p.answer[i] || d.Trace != n.asked[i] {
			t.Fatalf("decision %d is %+v", i, d)
		}
	}
	if len(l.Decisions) != len(p.points) {
		t.Fatalf("the log has %d decisions, want %d", len(l.Decisions), len(p.points))
	}
}

// seriesHas wants the level after the last event of each ns in a series of such slots.
func seriesHas(t *random, got []Level, events []Level) {
	for _, x := range events {
		if !slices.Contains(got, x) {
			t.Fatalf("the series lacks %+v: %+v", x, got)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b Level) int { return cmp.Compare(a.At, b.At) }) {
		t.Fatalf("a series goes backwards: %+v", got)
	}
}
