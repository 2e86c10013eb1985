package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A roomy memory has room for so many bytes, 0 for any number, in chunks. It refuses each third object so often, as fragments do. It
// panics where an object is freed that is not there.
type roomy struct {
	limit, chunk int64
	refuses      int
	there, asked map[int32]int64
	live, mapped int64
}

func newRoomy(limit, chunk int64, refuses int) *roomy {
	return &roomy{limit: limit, chunk: chunk, refuses: refuses, there: map[int32]int64{}, asked: map[int32]int64{}}
}

func (m *roomy) Alloc(object int32, bytes int64) bool {
	if m.asked[object]++; m.limit > 0 && m.live+bytes > m.limit || object%3 == 2 && m.asked[object] <= int64(m.refuses) {
		return false
	}
	m.there[object] = bytes
	m.live += bytes
	m.mapped = max(m.mapped, m.Reserved()/m.chunk)
	return true
}

func (m *roomy) Free(object int32) {
	bytes, ok := m.there[object]
	if !ok {
		panic("an object is freed that is not there")
	}
	m.live -= bytes
	delete(m.there, object)
}

func (m *roomy) Live() int64     { return m.live }
func (m *roomy) Reserved() int64 { return (m.live + m.chunk - 1) / m.chunk * m.chunk }
func (m *roomy) Mapped() int64   { return m.mapped }

// A naiveMachine walks the world of a [Machine] from one thing that happens to the next: an event, or the end of a phase of
// the cycle under way. It keeps objects one by one, and shares with the engine only the draw from a distribution and [Runahead].
type naiveMachine struct {
	*Machine
	policy         policy.Policy
	told           Told
	limit          int64
	space          pressure.Space
	memory         *roomy
	noise, stalls  *rand.Rand
	now, shift     float64
	lead           Runahead
	expects        map[uint32]time.Duration // by the label of the wait place
	numbers        map[uint64]int32         // of the objects that are there, by ID
	dead           []int32                  // dropped and not freed
	tracked        int64                    // objects that were handed out and not freed
	next           int32
	rest           []trace.Event // that come after this one
	wake           int64
	inVain         int
	mapped         int64
	sweep          float64 // left of the last cycle's
	ended          float64
	given, freed   int64 // since the last cycle
	after          int64
	cycles         uint64
	wanted         int64
	cycle          *naivePhases
	slowed         float64
	areaLive, area float64
	res            Result
	pauses         []Pause
	held           bool // the last time that it was to be
}

// naivePhases is a cycle under way: what is left of its phase, and what begins after that.
type naivePhases struct {
	policy.Cycle
	left  float64
	then  []func() float64 // each returns how long its phase takes
	begin float64
	held  float64 // since when, or less than 0
	found []int32
}

func (n *naiveMachine) tick(d float64) {
	dead := int64(0)
	for _, object := range n.dead {
		dead += n.memory.there[object]
	}
	n.areaLive += d * float64(n.memory.live)
	n.area += d * float64(dead)
	n.now += d
}

// elapse lets the program do d ns of work, which is slowed beside a cycle if slows is set; or wait for so long. A cycle, and the
// sweep after it, come along more slowly while the program works.
func (n *naiveMachine) elapse(d float64, works, slows bool) {
	for d > 0 {
		speed, rate := 1.0, 1.0
		if n.cycle != nil && slows {
			speed = 1 / (1 + n.Slowdown)
		}
		if works {
			rate = 1 / max(1, n.Stretch)
		}
		dt := d / speed
		if n.cycle != nil {
			dt = min(dt, n.cycle.left/rate)
		}
		n.tick(dt)
		d -= dt * speed
		n.shift += dt * (1 - speed)
		n.slowed += dt * (1 - speed)
		if d < 1e-9 {
			d = 0
		}
		if n.cycle == nil {
			n.sweep = max(0, n.sweep-dt*rate)
		} else {
			n.cycle.left -= dt * rate
			n.phase()
		}
	}
}

// phase begins the next phases, as long as there is nothing left of this one.
func (n *naiveMachine) phase() {
	for c := n.cycle; c.left < 1e-6; {
		if len(c.then) == 0 {
			n.settle()
			return
		}
		begin := c.then[0]
		c.then = c.then[1:]
		c.left = begin()
	}
}

func (n *naiveMachine) start(trigger policy.Trigger, action policy.Action) {
	c := &naivePhases{begin: n.now, held: -1, Cycle: policy.Cycle{Start: time.Duration(n.now), Trigger: trigger, Action: action}}
	f, since := n.Noise.draw(n.noise), n.After.Of(math.MaxInt64)
	if n.cycles > 0 {
		since = n.After.Of(time.Duration(n.now - n.ended))
	}
	c.left = n.sweep + f*since*float64(n.Start)
	n.sweep = 0
	c.then = []func() float64{
		func() float64 {
			c.found = slices.Clone(n.dead)
			return f*since*n.Mark.Of(n.tracked, n.Heap) + n.Stall.draw(n.stalls)
		},
		func() float64 {
			bytes := int64(0)
			for _, object := range c.found {
				bytes += n.memory.there[object]
			}
			n.sweep = n.Sweep.Of(0, n.Heap)
			return f * n.Settle.Of(int64(len(c.found)), bytes)
		},
	}
	n.cycle = c
	n.phase()
}

func (n *naiveMachine) settle() {
	c := n.cycle
	n.cycle = nil
	for _, object := range c.found {
		c.Freed += n.memory.there[object]
		n.memory.Free(object)
		n.tracked--
		n.dead = slices.DeleteFunc(n.dead, func(d int32) bool { return d == object })
	}
	c.Duration = time.Duration(n.now - c.begin)
	if c.held >= 0 {
		c.Exposed = time.Duration(n.now - c.held)
	}
	c.LiveAfter, c.Limit, c.Wanted = n.memory.live, naiveLimit(n.told, n.limit), n.wanted
	n.res.GCBusy += c.Duration
	n.wanted, n.given, n.freed, n.wake, n.after, n.ended = 0, 0, 0, 0, n.memory.live, n.now
	n.cycles++
	n.policy.Observe(c.Cycle)
}

// hold keeps the program until no cycle is under way, and for extra. Continued, it is more of the last pause.
func (n *naiveMachine) hold(extra float64, at int64, continued bool) {
	begin := n.now
	if n.cycle != nil {
		n.cycle.held = begin
	}
	for n.cycle != nil {
		n.elapse(n.cycle.left, false, false)
	}
	n.elapse(extra, false, false)
	d := n.now - begin
	if n.held = d > 0 || continued && n.held; d <= 0 {
		return
	}
	n.shift += d
	n.lead.Pause(d)
	if !continued {
		n.pauses = append(n.pauses, Pause{At: time.Duration(begin), Trace: time.Duration(at)})
	}
	last := &n.pauses[len(n.pauses)-1]
	last.Length += time.Duration(d)
	n.res.ExposedPause += time.Duration(d)
	n.res.MaxPause = max(n.res.MaxPause, last.Length)
}

func naiveLimit(told Told, limit int64) int64 {
	if told.Limit != 0 && limit != 0 {
		return max(1, int64(float64(limit)*told.Limit))
	}
	return limit
}

func (n *naiveMachine) ask(p policy.Point) policy.Decision {
	p.Now = time.Duration(n.now)
	p.Sample = pressure.Sample{Space: n.space, Live: n.memory.live, Reserved: n.memory.Reserved(), Limit: naiveLimit(n.told, n.limit)}
	p.Allocated, p.Freed, p.LiveAfter, p.Cycles, p.Running = n.given, n.freed, n.after, n.cycles, n.cycle != nil
	cost := float64(n.Start) + n.Mark.Of(n.tracked, n.Heap) + float64(n.Settle.Base)
	if n.told.Cost != 0 {
		cost = math.Floor(cost) * n.told.Cost
	}
	p.Cost, p.Slowdown, p.Heap = time.Duration(cost), n.Slowdown, n.Heap
	d := n.policy.Decide(p)
	n.wake = d.Wake
	if d.Action != policy.Skip && n.cycle == nil {
		n.res.Collections++
		n.start(policy.TriggerPolicy, d.Action)
	}
	return d
}

// newlyMapped is how long it takes to put memory behind the chunks that are new.
func (n *naiveMachine) newlyMapped() (d float64) {
	if chunks := n.memory.mapped - n.mapped; chunks > 0 {
		d = n.Map.Of(chunks, 0)
	}
	n.mapped = n.memory.mapped
	return d
}

// admit has the memory take an object, by way of the cycle under way and three rounds of the ladder.
func (n *naiveMachine) admit(object int32, z, at int64) bool {
	if n.take(object, z) {
		n.elapse(n.newlyMapped(), true, false)
		return true
	}
	fits := false
	n.wanted = n.memory.live + z
	if n.cycle != nil {
		n.hold(0, at, false)
		fits = n.take(object, z)
	}
	for round := 0; round < 3 && !fits; round++ {
		before := n.memory.live
		n.wanted = before + z
		n.ladder(z, at)
		fits = n.take(object, z)
		if before-n.memory.live < z {
			break
		}
	}
	if fits {
		n.hold(n.newlyMapped(), at, n.held)
	}
	return fits
}

// take counts an object when it is handed out: one that does not fit is never counted.
func (n *naiveMachine) take(object int32, z int64) bool {
	if !n.memory.Alloc(object, z) {
		return false
	}
	n.tracked++
	n.given += z
	return true
}

func (n *naiveMachine) ladder(z, at int64) {
	extra := float64(n.Ladder)
	if n.inVain > 0 { // waits for 1, 2, 4 or 8 cycles, and at most 256 ms
		g := float64(n.Start) + float64(time.Duration(n.Mark.Of(0, n.Heap)+n.Settle.Of(0, 0)))
		extra += min(256e6, g*[]float64{1, 2, 4, 8}[min(n.inVain, 4)-1])
	}
	if n.Waits && n.Elastic {
		if i := slices.IndexFunc(n.rest, func(e trace.Event) bool { return e.Kind == trace.Sync }); i >= 0 {
			e := n.rest[i]
			extra += max(0, float64(e.Time+int64(e.Duration))+n.shift-n.lead.held+n.lead.late-n.now)
		}
	}
	dead := int64(0)
	for _, object := range n.dead {
		dead += n.memory.there[object]
	}
	n.res.RefusalCollections++
	n.start(policy.TriggerRefusal, policy.Block)
	n.hold(extra, at, false)
	if n.inVain++; dead >= z {
		n.inVain = 0
	}
}

func (n *naiveMachine) event(e trace.Event) {
	if e.Kind == trace.Mark {
		n.lead.Measured(float64(e.Duration))
		return
	}
	gap := float64(e.Time) + n.shift - n.now
	idle := n.IdleGap > 0 && gap > float64(n.IdleGap)
	n.elapse(gap, !idle, !idle)
	switch e.Kind {
	case trace.Alloc:
		if n.memory.live+e.Bytes >= n.wake {
			if n.ask(policy.Point{At: policy.Allocation, Request: e.Bytes}).Action == policy.Block {
				n.hold(0, e.Time, false)
			}
		}
		object := n.next
		n.next++
		if n.admit(object, e.Bytes, e.Time) {
			n.numbers[e.ID] = object
		} else {
			n.res.FailedAllocs++
		}
		n.res.PeakLive = max(n.res.PeakLive, n.memory.live)
		n.elapse(n.Alloc.Of(1, e.Bytes), true, false)
	case trace.Drop:
		if object, ok := n.numbers[e.ID]; ok {
			n.dead = append(n.dead, object)
		}
	case trace.Free:
		if object, ok := n.numbers[e.ID]; ok {
			n.memory.Free(object)
			n.tracked--
			n.freed += e.Bytes
		}
	case trace.Sync:
		expects, w := n.expects[e.Aux], float64(e.Duration)
		d := n.ask(policy.Point{At: policy.Sync, Wait: expects, WillBlock: true})
		if left := n.lead.Wait(w); n.Elastic {
			n.shift -= w - left
			w = left
		}
		n.elapse(w, false, false)
		if expects == 0 {
			expects = time.Duration(w)
		} else {
			expects += (time.Duration(w) - expects) / 4
		}
		n.expects[e.Aux] = expects
		if d.Action == policy.Block {
			n.hold(0, e.Time, false)
		}
	}
}

func (n *naiveMachine) run(events []trace.Event) Result {
	for i, e := range events {
		n.rest = events[i:]
		n.event(e)
	}
	n.res.Elapsed, n.res.Slowed = time.Duration(math.Round(n.now)), time.Duration(math.Round(n.slowed))
	if n.now > 0 {
		n.res.MeanLive, n.res.MeanGarbage = n.areaLive/n.now, n.area/n.now
	}
	return n.res
}

// genMachine draws a machine with some of its elements. Without noise all its times are whole numbers of some small part of a ns,
// which has no roundings; with noise no two things happen at one time.
func genMachine(t *random) *Machine {
	linear := func() Linear {
		return Linear{some[time.Duration](t, 4, 16, 50), some(t, 0.5, 3), some(t, 2.0, 8) * (1 << 30)}
	}
	m := &Machine{
		Start: some[time.Duration](t, 3, 12), Mark: linear(), Settle: linear(), Ladder: some[time.Duration](t, 5, 30), Map: linear(),
		Stretch: some(t, 1.0, 2, 4), Slowdown: some(t, 1.0, 3), IdleGap: some[time.Duration](t, 5, 10),
		Sweep: linear(), Alloc: Linear{some[time.Duration](t, 2), 1, some(t, 0.25) * (1 << 30)},
		Heap: some[int64](t, 2, 5), Waits: t.coin(), Elastic: t.coin(),
	}
	m.Settle.PerGiB /= 16
	if t.coin() {
		m.After = Curve{{10, 0.5}, {40, 0.5}, {41, 1.5}}
	}
	if t.coin() {
		m.Noise, m.Start, m.IdleGap, m.After = Noise{0.5, 1, 2}, m.Start+3, 0, m.After[:min(1, len(m.After))]
		m.Stall = Stall{some(t, 0.3), []float64{20, 30, 70}}
	}
	return m
}

// turns is a policy whose answers depend on how often it was asked and told, and on nothing that differs by a rounding.
type turns struct {
	seed   uint64
	points []policy.Point
	told   []policy.Cycle
}

func (p *turns) Decide(at policy.Point) policy.Decision {
	p.points = append(p.points, at)
	r := rand.New(rand.NewPCG(p.seed, uint64(len(p.points))<<32|uint64(len(p.told))))
	return policy.Decision{Action: policy.Action(max(0, r.IntN(5)-2)), Wake: at.Sample.Live + r.Int64N(60) - 20}
}
func (p *turns) Observe(c policy.Cycle) { p.told = append(p.told, c) }
func (p *turns) String() string         { return "turns" }

// near reports whether two times are the same but for a rounding.
func near[T time.Duration | float64](a, b T) bool { return math.Abs(float64(a)-float64(b)) <= 1 }

// TestAgainstANaiveMachine: every metric of a run, all that the policy is shown and told, and every pause.
func TestAgainstANaiveMachine(t *testing.T) { check(t, 1000, againstANaiveMachine) }

func againstANaiveMachine(t *random) {
	w, events, _ := genStrayed(t)
	cfg := Config{Limit: some(t, w.PeakReachable*3/2+1, w.PeakReachable*3/4+1), Machine: genMachine(t), Seed: t.Uint64(), Log: &Log{KeepDecisions: true}}
	cfg.Told = Told{Limit: some(t, 0.75, 1e-9), Cost: some(t, 2.5)}
	fast, slow := &turns{seed: cfg.Seed}, &turns{seed: cfg.Seed}
	memory := newRoomy(cfg.Limit, 1, 0)
	if t.coin() {
		refuses := some(t, 1, 2, 3, 4)
		memory, cfg.Memory = newRoomy(cfg.Limit, 16, refuses), newRoomy(cfg.Limit, 16, refuses)
	}
	n := &naiveMachine{
		Machine: cfg.Machine, policy: slow, told: cfg.Told, limit: cfg.Limit, space: 3, memory: memory,
		noise: rand.New(rand.NewPCG(cfg.Seed, 1)), stalls: rand.New(rand.NewPCG(cfg.Seed, 2)), expects: map[uint32]time.Duration{}, numbers: map[uint64]int32{},
	}
	if cfg.Memory == nil {
		m := *cfg.Machine
		m.Map = Linear{}
		n.Machine = &m
	}
	want, got := n.run(events), Run(w, fast, cfg)
	addUp(t, fast.points)
	sameTold(t, fast, slow)
	none := func(p Pause) bool { return p.Length == 0 } // ns: a rounding
	if !slices.EqualFunc(slices.DeleteFunc(cfg.Log.Pauses, none), slices.DeleteFunc(n.pauses, none), func(a, b Pause) bool {
		return near(a.At, b.At) && a.Trace == b.Trace && near(a.Length, b.Length)
	}) {
		t.Fatalf("pauses %+v\nwant   %+v", cfg.Log.Pauses, n.pauses)
	}
	sameResult(t, got, want, time.Duration(len(n.pauses)+len(slow.told)+1))
	live := memory.live // after the last event; a cycle may have ended since
	for _, c := range cfg.Log.Cycles {
		if c.seq == int64(len(w.ops)) {
			live += c.Freed
		}
	}
	levels := w.Series(cfg.Log, got.Elapsed, 100)
	if last := levels[len(levels)-1].Live; got.FailedAllocs == 0 && last != live {
		t.Fatalf("a series ends with %d bytes, want %d", last, live)
	}
}

// addUp wants the bytes that were handed out and freed since the last cycle to explain what is live, at each point.
func addUp(t *random, points []policy.Point) {
	for i, p := range points {
		if p.Sample.Live != p.LiveAfter+p.Allocated-p.Freed {
			t.Fatalf("point %d: %d + %d - %d bytes are not the %d that are live", i, p.LiveAfter, p.Allocated, p.Freed, p.Sample.Live)
		}
	}
}

// sameTold compares what two policies were asked and told: times but for a rounding.
func sameTold(t *random, got, want *turns) {
	sameButForTimes(t, "point", got.points, want.points, func(p *policy.Point) []*time.Duration { return []*time.Duration{&p.Now, &p.Cost, &p.Wait} })
	sameButForTimes(t, "cycle", got.told, want.told, func(c *policy.Cycle) []*time.Duration { return []*time.Duration{&c.Start, &c.Duration, &c.Exposed} })
}

// sameButForTimes compares two lists, whose times may differ by a rounding.
func sameButForTimes[E comparable](t *random, name string, got, want []E, times func(*E) []*time.Duration) {
	for i, g := range got[:min(len(got), len(want))] {
		w := want[i]
		of, all := times(&g), true
		for k, d := range times(&w) {
			all = all && near(*of[k], *d)
		}
		for k, d := range times(&w) {
			if all {
				*d = *of[k]
			}
		}
		if g != w {
			t.Fatalf("%s %d is %+v\nwant %+v", name, i, g, w)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d times a %s, want %d", len(got), name, len(want))
	}
}

// sameResult compares two results whose sums of times may differ by so much.
func sameResult(t *random, got, want Result, by time.Duration) {
	for _, d := range []struct {
		name      string
		got, want float64
		by        float64
	}{
		{"elapsed", float64(got.Elapsed), float64(want.Elapsed), 1}, {"slowed", float64(got.Slowed), float64(want.Slowed), 1},
		{"exposed", float64(got.ExposedPause), float64(want.ExposedPause), float64(by)}, {"max pause", float64(got.MaxPause), float64(want.MaxPause), 1},
		{"busy", float64(got.GCBusy), float64(want.GCBusy), float64(by)},
		{"mean live", got.MeanLive, want.MeanLive, 1e-6}, {"mean garbage", got.MeanGarbage, want.MeanGarbage, 1e-6},
		{"peak", float64(got.PeakLive), float64(want.PeakLive), 0}, {"failed", float64(got.FailedAllocs), float64(want.FailedAllocs), 0},
		{"collections", float64(got.Collections), float64(want.Collections), 0}, {"refusals", float64(got.RefusalCollections), float64(want.RefusalCollections), 0},
	} {
		if math.Abs(d.got-d.want) > d.by {
			t.Fatalf("%s: %v, want %v\n%+v\n%+v", d.name, d.got, d.want, got, want)
		}
	}
}
