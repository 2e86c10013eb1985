package gc

import (
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestACollectorIsWhatItsDocSays runs a collector on a puppet beside a plain restatement of what its doc comments promise: when the
// policy is asked, and what it is shown, who is held, what a cycle reports, when it may come, and what snapshot, counts, timeline and
// recording say of all that. They are compared after each step.
func TestACollectorIsWhatItsDocSays(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	schedules(t, 400, func(d *draw) {
		w := newWorld(d)
		defer close(w.e.marks)
		defer w.c.Close()
		d.repeat(map[string]func(*draw){
			"allocate": w.allocate, "allocate more": w.allocate, "and more": w.allocate, "free": w.free, "die": w.die, "refuse": w.refuse,
			"limit": w.setLimit, "policy": w.setPolicy, "sync": w.sync, "due": w.due, "collect": w.collect, "natural": w.natural,
			"pass": func(d *draw) {
				w.e.pass(oneOf(d, time.Microsecond, ms, 50*ms, time.Duration(between(d, 0, int64(3*time.Second)))))
			},
		}, w.check)
	})
}

// A well is one memory of a world, and its registry.
type well struct {
	pressure.Sample
	allocated int64
	unit      int64 // of all its bytes
	dead      int   // objects of 10 units
	gate      *Gate
	gauge     *Gauge // that reads it, or nil

	// What the collector should know.
	wake                        int64 // bytes from which on the policy is asked
	liveAfter, allocatedAtCycle int64 // of the last cycle
	wanted                      int64
	levels                      []seenLevel // that were read
}

type seenLevel struct {
	at time.Duration
	pressure.Sample
}

// A wellSource is what the collector sees of a well.
type wellSource struct{ *well }

func (s wellSource) Sample() pressure.Sample { return s.well.Sample }
func (s wellSource) Allocated() int64        { return s.well.allocated }

func (w *well) promoteAll()     {}
func (w *well) Len() int        { return 3 }
func (w *well) bytes(int) int64 { return 10 * w.unit }
func (w *well) give(int)        { w.set(w.Live - 10*w.unit) }

func (w *well) walk(r *collection) {
	if w.dead > 0 {
		r.found(&batch{gate: w.gate, dead: w, n: w.dead})
	}
	w.dead = 0
}

// set changes what is live.
func (w *well) set(live int64) {
	w.allocated += max(0, live-w.Live)
	w.Live, w.Reserved = live, max(w.Reserved, live)
	if w.gauge != nil {
		w.Reserved = live
		w.gauge.level.Store(live)
		w.gauge.grown.Store(w.allocated)
	}
}

// part reports whether it is a part of the host's memory.
func (w *well) part() bool { return (w.gate.soft || w.gauge != nil) && w.Space == pressure.Host }

// A plainThrottle says when cycles may come.
type plainThrottle struct {
	share     float64       // of the processor time
	next      time.Duration // none may begin before
	futile    int
	until     time.Duration // the policy is not asked at allocations before ...
	gate      *Gate
	low, high int64 // ... unless this gate's live bytes are below or above
}

func (p *plainThrottle) ended(c policy.Cycle, x *well, end, processor time.Duration, kept int64) {
	if p.share == 1 {
		return
	}
	if c.Trigger != policy.TriggerNatural {
		p.next = max(p.next, c.Start) + time.Duration(float64(processor)/2/p.share)
	}
	if p.futile++; 64*c.Freed >= kept+c.Freed {
		p.futile = 0
	}
	p.until = p.next
	if rest := min(2*time.Minute, 8*c.Work*(1<<p.futile)); p.futile > 0 && x.gauge == nil {
		p.until = max(p.until, end+rest)
	}
	if x.gate.soft && c.Limit > 0 && 8*kept > 7*c.Limit {
		p.until = max(p.until, end+20*c.Work)
	}
	p.gate, p.low, p.high = x.gate, x.liveAfter-x.liveAfter/8, 2*x.liveAfter+16<<20
}

func (p *plainThrottle) rests(now time.Duration, g *Gate, live int64) bool {
	return now < p.until && !(g == p.gate && (live < p.low || live > p.high))
}

// A world is a collector with its memories, and what it should know.
type world struct {
	c      *Collector
	e      *puppet
	caps   Caps
	rec    *recording
	policy *watching
	unit   int64 // of all bytes
	wells  []*well
	place  WaitPlace

	// Of the next cycle.
	lasts, swept time.Duration
	holds        bool          // its mark waits until a caller is held
	beside       time.Duration // what goes by before it is
	was          []well        // the memories before it
	now          time.Duration // when the step began

	asked, told     int // of what the policy has seen
	throttle        plainThrottle
	expected        *policy.Expectation
	tracked         int
	seenCycles      uint64
	read            time.Duration // the runtime's metrics
	cycles          []policy.Cycle
	stats           Stats
	over            bool
	decisions       []Decided
	reasons         map[string]uint64
	events          []trace.Event
	last            string // reason that was recorded at an allocation
	seen            machineSeen
	work            []Work // with the time of each in Start
	expectedAtPlace time.Duration
}

func newWorld(d *draw) *world {
	w := &world{e: newPuppet(), rec: &recording{}, policy: new(watching), reasons: map[string]uint64{}, expected: policy.NewExpectation(2)}
	w.place.Name = "a place"
	w.unit = oneOf(d, int64(1), 1<<20)
	w.caps = oneOf(d, Caps{Cycles: 1}, Caps{}, Caps{Cycles: 0.5})
	if err := w.caps.check(); err != nil {
		d.Fatal(err)
	}
	w.throttle.share = w.caps.Cycles
	w.e.pass(oneOf(d, time.Duration(between(d, 0, 1000)), 8500*ms, 17_100*ms)) // right before steps become longer
	w.e.state = reading{cycles: 7, scan: 1 << 20}
	w.seenCycles = 7
	w.expected.See(1<<20, 0)
	w.c = newOn(w.e, Config{Caps: w.caps, Idle: -1, Recorder: worldClock{w.rec, w.e}}, w.policy)
	patient(w.c)
	for range between(d, 1, 4) {
		x := &well{Sample: pressure.Sample{Space: oneOf(d, pressure.Host, pressure.Host, pressure.Device(0)), Limit: w.unit * oneOf(d, int64(0), 1000, 2000)}, unit: w.unit}
		x.set(w.unit * oneOf(d, int64(0), 500))
		if between(d, 0, 3) == 0 {
			x.Space = pressure.Host
			x.gauge = &Gauge{c: w.c}
			x.gauge.read = x.gauge.level.Load
			x.gauge.SetLimit(x.Limit)
			x.set(x.Live)
			x.gate = w.c.NewGate(x.gauge)
		} else {
			x.gate = w.c.NewGate(wellSource{x})
			x.gate.soft = between(d, 0, 1) == 0
		}
		x.liveAfter, x.allocatedAtCycle = x.Live, x.allocated
		w.wells = append(w.wells, x)
		w.c.addRegistry(x)
	}
	go func() {
		for end := range w.e.marks {
			for w.holds && !w.held() {
				time.Sleep(50 * time.Microsecond)
			}
			w.e.pass(w.lasts)
			end <- w.swept
		}
	}()
	return w
}

func (w *world) held() bool {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return w.c.current.Load().held != noOne
}

// A worldClock is a recording whose clock is an hour ahead of the collector's.
type worldClock struct {
	*recording
	e *puppet
}

func (r worldClock) Now() time.Duration { return r.e.now() + time.Hour }

// step draws the next answer of the policy and the next cycle, takes a step, and waits for the cycle that may come of it.
func (w *world) step(d *draw, do func(answer policy.Decision)) {
	w.policy.next = policy.Decision{
		Action: oneOf(d, policy.Skip, policy.Skip, policy.Overlap, policy.Block), Wake: oneOf(d, int64(0), 300*w.unit, 700*w.unit, 1500*w.unit, math.MaxInt64),
		Reason: oneOf(d, "a", "b"),
	}
	w.lasts, w.swept, w.beside, w.holds = oneOf(d, 2*ms, 30*ms), oneOf(d, 0, ms), 0, false
	w.e.mu.Lock()
	w.e.paid = oneOf(d, ms, 10*ms)
	w.e.state.scan = oneOf(d, uint64(1<<20), 8<<20)
	w.e.seen = oneOf(d, marking{}, marking{polls: 10, waiting: 4})
	w.e.mu.Unlock()
	w.now, w.was = w.e.now(), nil
	for _, x := range w.wells {
		w.was = append(w.was, *x)
	}
	do(w.policy.next)
	w.c.goroutine.Wait()
}

// before calls f with the memories as they were when the step began.
func (w *world) before(f func()) {
	var after []well
	for i, x := range w.wells {
		after = append(after, *x)
		x.Sample, x.allocated = w.was[i].Sample, w.was[i].allocated
	}
	f()
	for i, x := range w.wells {
		x.Sample, x.allocated = after[i].Sample, after[i].allocated
	}
}

// looks notes that the collector has read all memories.
func (w *world) looks(at time.Duration) {
	for _, x := range w.wells {
		x.levels = append(x.levels, seenLevel{at, x.Sample})
	}
}

// kept is what the last cycle left of the memory that x is a part of.
func (w *world) kept(x *well) (bytes int64) {
	for _, y := range w.wells {
		if y == x || y.part() && x.part() {
			bytes += y.liveAfter
		}
	}
	return bytes
}

// top is the memory that the policy is shown: under most pressure, or of the same pressure or one memory what has grown most.
func (w *world) top(asks *well, request int64) (top *well) {
	grown := func(x *well) int64 {
		if x == asks {
			return x.Live - x.liveAfter + request
		}
		return x.Live - x.liveAfter
	}
	for _, x := range w.wells {
		switch {
		case top == nil:
			top = x
		case x.part() && top.part() || x.Pressure() == top.Pressure():
			if grown(x) > grown(top) {
				top = x
			}
		case x.Pressure() > top.Pressure():
			top = x
		}
	}
	return top
}

// asks checks that the policy was asked once, and was shown what is true, and returns what is to come of its answer.
func (w *world) asks(d *draw, p policy.Point, asks *well) (answer policy.Decision, top *well) {
	d.Helper()
	if len(w.policy.points) != w.asked+1 {
		d.Fatalf("asked %d times, want once", len(w.policy.points)-w.asked)
	}
	got := w.policy.points[w.asked]
	w.asked++
	if w.now-w.read >= ms {
		w.expected.See(w.e.state.scan, w.tracked)
		w.read = w.now
	}
	w.before(func() {
		top = w.top(asks, p.Request)
		others := w.kept(top) - top.liveAfter
		p.Now, p.Sample = w.now, top.Sample
		p.Sample.Live += others
		p.Sample.Reserved += others
		if p.Sample.Limit > 0 {
			p.Sample.Limit += others
		}
		p.Allocated, p.LiveAfter = top.allocated-top.allocatedAtCycle, w.kept(top)
		p.Freed = p.Allocated - (top.Live - top.liveAfter)
		p.Cost, p.Work, p.Slowdown, p.Cycles = w.expected.Cost, w.expected.Work, w.expected.Slowdown, w.seenCycles-7
		w.looks(w.now)
	})
	if got != p {
		d.Fatalf("shown\n%+v, want\n%+v", got, p)
	}
	answer = w.policy.next
	if answer.Action != policy.Skip && w.now < w.throttle.next {
		answer = policy.Decision{Reason: "capped"}
		w.stats.Capped++
	}
	for _, x := range w.wells {
		x.wake = answer.Wake
		switch {
		case answer.Wake == 0 || answer.Wake == math.MaxInt64 || len(w.wells) == 1:
		case x == top || x.part() && top.part(): // at so much growth
			x.wake = max(1, answer.Wake-w.kept(top)+x.liveAfter)
		case top.Limit > 0 && x.Limit > 0: // at as much pressure
			x.wake = int64(float64(answer.Wake) / float64(top.Limit) * float64(x.Limit))
		case top.Limit > 0:
			x.wake = math.MaxInt64
		}
	}
	w.stats.Decisions[answer.Action]++
	w.reasons[answer.Reason]++
	if last := len(w.decisions) - 1; last >= 0 && w.decisions[last].Reason == answer.Reason && w.decisions[last].Action == policy.Skip && answer.Action == policy.Skip {
		w.decisions[last].Repeats++
	} else {
		w.decisions = append(w.decisions, Decided{p, answer, 1})
	}
	if p.At == policy.Sync || answer.Action != policy.Skip || answer.Reason != w.last {
		w.event(trace.Decision, w.now, 0, top, int64(answer.Action), answer.Reason)
	}
	if p.At == policy.Allocation {
		w.last = answer.Reason
	}
	return answer, top
}

// event notes what is to be recorded.
func (w *world) event(kind trace.Kind, at, length time.Duration, x *well, bytes int64, label string) {
	w.events = append(w.events, trace.Event{Time: int64(at + time.Hour), Kind: kind, Duration: length, Space: x.Space, Bytes: bytes, Aux: w.rec.Label(label)})
}

// ended notes what the cycle for x has done that has just ended.
func (w *world) ended(d *draw, trigger policy.Trigger, action policy.Action, x *well) {
	d.Helper()
	cycle, end, natural := policy.Cycle{Trigger: trigger, Action: action, Limit: x.Limit, Wanted: x.wanted}, w.e.now(), trigger == policy.TriggerNatural
	var work Work
	objects, kept := 0, int64(0)
	w.before(func() { w.looks(w.now); w.looks(end) })
	w.looks(end)
	for i, y := range w.wells {
		yield := 10 * w.unit * int64(w.was[i].dead)
		work.Freed += yield
		objects += w.was[i].dead
		if y == x && !natural {
			kept = w.was[i].Live - yield
		}
		if y == x || y.part() && x.part() {
			cycle.Freed += yield
			cycle.LiveAfter += y.Live
		}
		y.liveAfter, y.allocatedAtCycle, y.wake = y.Live, y.allocated, 0
	}
	x.wanted = 0
	if cycle.Limit > 0 {
		cycle.Limit += cycle.LiveAfter - x.Live
	}
	if natural { // nobody timed it
		w.expected.See(w.e.state.scan, w.tracked)
		cycle.Duration, cycle.Work = min(end, w.expected.Cost), w.expected.Work
	} else {
		cycle.Duration, cycle.Work = w.beside+w.lasts, w.e.paid/2
		work.Busy, work.Processor = cycle.Duration, w.e.paid
		w.expected.Learn(policy.Measured{
			Length: cycle.Duration - w.swept, Work: w.e.paid, Processors: 2,
			Scan: w.e.state.scan, Tracked: 3*len(w.wells) + objects, Polls: w.e.seen.polls, Waiting: w.e.seen.waiting,
		})
	}
	w.tracked, w.read, w.seenCycles = 3*len(w.wells), end, w.e.state.cycles
	w.expected.See(w.e.state.scan, w.tracked)
	cycle.Start = end - cycle.Duration
	if w.holds {
		cycle.Exposed = w.lasts
	}
	w.throttle.ended(cycle, x, end, w.e.paid, kept)
	w.cycles = append(w.cycles, cycle)
	w.stats.Cycles[trigger]++
	w.stats.Freed += work.Freed
	w.stats.Objects += uint64(objects)
	w.stats.Busy += work.Busy
	w.stats.Processor += work.Processor
	w.stats.Last = cycle
	if x.gate.soft && cycle.Limit > 0 && !natural {
		if cycle.LiveAfter > cycle.Limit && !w.over {
			w.stats.Over++
		}
		w.over = cycle.LiveAfter > cycle.Limit
	}
	work.Start, work.Cycles[trigger] = end, 1
	w.work = append(w.work, work)
	w.event(trace.Cycle, cycle.Start, cycle.Duration, x, cycle.Freed, "")
	w.events[len(w.events)-1].Aux = uint32(trigger)
	for i, now := range (machineSeen{int64(w.e.state.scan), 2, int64(1e6 * w.expected.Slowdown)}) {
		if now != w.seen[i] {
			w.event(trace.Mark, end, 0, x, now, machineLabels[i])
			w.seen[i] = now
		}
	}
	if w.holds {
		w.stats.Exposed += w.lasts
		w.stats.MaxPause = max(w.stats.MaxPause, w.lasts)
		i, _ := slices.BinarySearch(pauseBounds[:], w.lasts/time.Microsecond)
		w.stats.Pauses[i]++
		w.work = append(w.work, Work{Start: end, Held: w.lasts, Longest: w.lasts})
		w.event(trace.Mark, end-w.lasts, w.lasts, x, 0, PauseLabel)
	}
	if got := w.policy.cycles; len(got) != w.told+1 || got[w.told] != cycle {
		d.Fatalf("the policy was told of\n%+v, want\n%+v", got[w.told:], cycle)
	}
	w.told++
}

// pick draws a memory.
func (w *world) pick(d *draw) *well { return w.wells[between(d, 0, len(w.wells)-1)] }

// begins reports whether an answer has a cycle started.
func (w *world) begins(answer policy.Decision) bool {
	return answer.Action != policy.Skip && w.now >= w.throttle.next
}

func (w *world) allocate(d *draw) {
	x, request := w.pick(d), w.unit*oneOf(d, int64(1), 50, 200, 900)
	due := false
	w.step(d, func(answer policy.Decision) {
		if x.gauge != nil { // looks have found that it has risen
			due = true
			x.gate.rose(x.Live, request)
			return
		}
		due = x.Live+request >= x.wake && !w.throttle.rests(w.now, x.gate, x.Live)
		w.holds = due && w.begins(answer) && answer.Action == policy.Block && !x.gate.soft
		x.gate.Allocating(x.Live, request)
	})
	if due {
		answer, top := w.asks(d, policy.Point{At: policy.Allocation, Request: request}, x)
		if answer.Action == policy.Block && x.gauge != nil {
			answer.Action = policy.Overlap // nobody is held for a gauge
		}
		if answer.Action != policy.Skip {
			w.ended(d, policy.TriggerPolicy, answer.Action, top)
		}
	}
	x.set(x.Live + request)
}

func (w *world) sync(d *draw) {
	var answer policy.Decision
	w.step(d, func(next policy.Decision) {
		begins := w.begins(next)
		w.holds, w.beside = begins && next.Action == policy.Block && between(d, 0, 1) == 0, oneOf(d, ms, 7*ms)
		w.c.Sync(&w.place, func() error {
			if begins && !w.holds {
				w.beside = 0
				w.c.goroutine.Wait()
			} else {
				w.e.pass(w.beside)
			}
			return nil
		})
	})
	waited := w.beside
	answer, top := w.asks(d, policy.Point{At: policy.Sync, Wait: w.expectedAtPlace, WillBlock: true}, nil)
	if answer.Action == policy.Skip {
		w.event(trace.Sync, w.now, waited, top, 0, w.place.Name)
	} else if w.holds {
		w.event(trace.Sync, w.now, waited, top, 0, w.place.Name)
		w.ended(d, policy.TriggerPolicy, answer.Action, top)
	} else {
		waited = w.lasts
		w.ended(d, policy.TriggerPolicy, answer.Action, top)
		w.event(trace.Sync, w.now, waited, top, 0, w.place.Name)
	}
	if w.expectedAtPlace == 0 {
		w.expectedAtPlace = waited
	} else {
		w.expectedAtPlace += (waited - w.expectedAtPlace) / 4
	}
}

func (w *world) due(d *draw) {
	due := false
	w.step(d, func(policy.Decision) { due = w.c.Due() })
	if answer, _ := w.asks(d, policy.Point{At: policy.Sync}, nil); due != (answer.Action != policy.Skip) {
		d.Fatalf("due: %v, the policy said %v", due, answer)
	}
}

func (w *world) collect(d *draw) {
	trigger, got := oneOf(d, policy.TriggerExplicit, policy.TriggerRefusal), policy.Cycle{}
	w.step(d, func(policy.Decision) {
		w.holds = true
		got = w.c.Collect(trigger)
	})
	w.ended(d, trigger, policy.Block, w.topBefore())
	if got != w.stats.Last {
		d.Fatalf("Collect returned\n%+v, want\n%+v", got, w.stats.Last)
	}
}

func (w *world) topBefore() (top *well) {
	w.before(func() { top = w.top(nil, 0) })
	return top
}

func (w *world) natural(d *draw) {
	freed := int64(0)
	w.step(d, func(policy.Decision) {
		w.e.cycle()
		freed = w.c.Reap()
	})
	was := w.stats.Freed
	w.ended(d, policy.TriggerNatural, policy.Overlap, w.topBefore())
	if again := w.c.Reap(); freed != w.stats.Freed-was || again != 0 {
		d.Fatalf("reaped %d and then %d bytes, want %d", freed, again, w.stats.Freed-was)
	}
}

func (w *world) free(d *draw) {
	x := w.pick(d)
	x.set(x.Live - w.unit*between(d, 0, x.Live/w.unit-int64(10*x.dead)))
}

func (w *world) die(d *draw) {
	x := w.pick(d)
	x.dead += int(between(d, 0, x.Live/w.unit/10-int64(x.dead)))
}

func (w *world) refuse(d *draw) {
	x, request := w.pick(d), w.unit*oneOf(d, int64(5), 20)
	x.gate.Refused(request)
	if wanted := x.Live + request; x.wanted == 0 || wanted < x.wanted {
		x.wanted = wanted
	}
}

func (w *world) setLimit(d *draw) {
	x := w.pick(d)
	if x.Limit = w.unit * oneOf(d, int64(0), 1000, 2000); x.gauge != nil {
		x.gauge.SetLimit(x.Limit)
	}
	x.gate.Changed()
	x.wake = 0
}

func (w *world) setPolicy(d *draw) {
	w.policy = new(watching)
	w.asked, w.told = 0, 0
	w.c.SetPolicy(w.policy)
	w.throttle.futile, w.throttle.until = 0, 0
	for _, x := range w.wells {
		x.wake = 0
	}
}

// check compares all that the collector shows.
func (w *world) check(d *draw) {
	if n := len(w.policy.points); n != w.asked {
		d.Fatalf("asked %d times too often", n-w.asked)
	}
	now := w.e.now()
	w.looks(now)
	got := w.c.Snapshot()
	w.stats.Tracked, w.stats.Cost, w.stats.Slowdown, w.stats.OverLimit = w.tracked, w.expected.Cost, w.expected.Slowdown, w.over
	w.stats.Overtaken = got.Stats.Overtaken // depends on the finalizers of the process
	want := Snapshot{
		Now: now, Policy: "watching", Caps: w.caps, Stats: w.stats, Step: 1 << 24, Reasons: w.reasons,
		Cycles: last(w.cycles), Decisions: last(w.decisions),
	}
	for now/want.Step >= timelineLen {
		want.Step *= 2
	}
	want.Work = bucketed(w.work, want.Step)
	for _, x := range w.wells {
		settled := int64(-1)
		if len(w.cycles) > 0 {
			settled = x.liveAfter
		}
		want.Sources = append(want.Sources, Watched{x.Sample, settled, levelsOf(x.levels, want.Step)})
	}
	if got.Stats != want.Stats {
		d.Fatalf("counts\n%+v, want\n%+v", got.Stats, want.Stats)
	}
	if !maps.Equal(got.Reasons, want.Reasons) || !reflect.DeepEqual(got, want) {
		got.Stats, want.Stats = Stats{}, Stats{}
		d.Fatalf("a snapshot of\n%+v, want\n%+v", got, want)
	}
	if !slices.Equal(w.rec.Events, w.events) {
		d.Fatalf("recorded\n%+v, want\n%+v", last(w.rec.Events), last(w.events))
	}
	if place := w.place.Expected(); place != w.expectedAtPlace {
		d.Fatalf("a wait of %v is expected, want %v", place, w.expectedAtPlace)
	}
}

func last[T any](all []T) []T { return all[max(0, len(all)-recentLen):] }

// bucketed sums work up by steps.
func bucketed(all []Work, step time.Duration) (sums []Work) {
	for _, x := range all {
		start := x.Start / step * step
		if len(sums) == 0 || sums[len(sums)-1].Start != start {
			sums = append(sums, Work{Start: start})
		}
		sum := &sums[len(sums)-1]
		for i, n := range x.Cycles {
			sum.Cycles[i] += n
		}
		sum.Busy += x.Busy
		sum.Processor += x.Processor
		sum.Freed += x.Freed
		sum.Held += x.Held
		sum.Longest = max(sum.Longest, x.Longest)
	}
	return sums
}

func levelsOf(all []seenLevel, step time.Duration) (levels []Level) {
	for _, x := range all {
		start := x.at / step * step
		if len(levels) == 0 || levels[len(levels)-1].Start != start {
			levels = append(levels, Level{Start: start, First: x.Live, Least: x.Live})
		}
		l := &levels[len(levels)-1]
		l.Last, l.Least, l.Most, l.Reserved, l.Limit = x.Live, min(l.Least, x.Live), max(l.Most, x.Live), max(l.Reserved, x.Reserved), x.Limit
	}
	return levels
}
