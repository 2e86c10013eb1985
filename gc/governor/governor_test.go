package governor_test

import (
	"math"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// uncapped never rests, so that each answer of the policy shows.
var uncapped = governor.Caps{Cycles: 1}

func TestThePolicySeesTheMemory(t *testing.T) {
	d := newDriver(t, uncapped, policy.Overlap)
	m := d.add(pressure.Device(0), 100)
	m.put(30 * mib)
	m.Reserved = 40 * mib
	d.g.Costs = governor.Costs{Cost: 3 * ms, Work: 2 * ms, Slowdown: 0.5}
	d.g.Heap = 7 * mib
	d.pass(5 * ms)
	d.allocate(m, mib)
	want := policy.Point{
		Now: 5 * ms, At: policy.Allocation, Request: mib, Allocated: 30 * mib, Cost: 3 * ms, Work: 2 * ms, Slowdown: 0.5, Heap: 7 * mib,
		Sample: pressure.Sample{Space: pressure.Device(0), Live: 30 * mib, Reserved: 40 * mib, Limit: 100 * mib},
	}
	if d.p.asked[0] != want {
		t.Errorf("at an allocation it saw %+v\nwant %+v", d.p.asked[0], want)
	}
	m.drop(10 * mib)
	m.Live -= 4 * mib // freed by the program
	m.Returning = 2 * mib
	d.g.Sync(d.now, 7*ms)
	want = policy.Point{
		Now: 5 * ms, At: policy.Sync, Wait: 7 * ms, WillBlock: true, Allocated: 31 * mib, Freed: 2 * mib, Running: true, Heap: 7 * mib,
		Cost: 3 * ms, Work: 2 * ms, Slowdown: 0.5, Sample: pressure.Sample{Space: pressure.Device(0), Live: 29 * mib, Reserved: 40 * mib, Limit: 100 * mib},
	}
	if got := d.p.asked[1]; got != want {
		t.Errorf("at a wait it saw %+v\nwant %+v", got, want)
	}
}

// TestAReportSaysWhatACycleDid: the cycle frees what was garbage when it began, and the next point counts from there.
func TestAReportSaysWhatACycleDid(t *testing.T) {
	d := newDriver(t, uncapped, policy.Overlap)
	d.g.Processors = 4
	m := d.add(pressure.Host, 100)
	m.put(60 * mib)
	m.drop(20 * mib)
	d.pass(5 * ms)
	d.allocate(m, mib)
	d.g.Refuse(d.now, &m.Memory, 50*mib)
	d.g.Refuse(d.now, &m.Memory, 40*mib)
	d.g.Refuse(d.now, &m.Memory, 70*mib)
	d.work = 8 * ms
	d.pass(20 * ms)
	want := policy.Cycle{
		Start: 5 * ms, Duration: 10 * ms, Work: 2 * ms, Action: policy.Overlap, Freed: 20 * mib, LiveAfter: 41 * mib,
		Limit: 100 * mib, Wanted: 101 * mib,
	}
	if len(d.p.told) != 1 || d.p.told[0] != want || d.cycles[0] != want {
		t.Fatalf("told %+v\nwant %+v", d.p.told, want)
	}
	d.allocate(m, mib)
	if p := d.p.asked[1]; p.Allocated != 0 || p.Freed != 0 || p.LiveAfter != 41*mib || p.Running || p.Cycles != 1 {
		t.Errorf("after it the policy saw %+v", p)
	}
	d.pass(20 * ms)
	if c := d.p.told[1]; c.Wanted != 0 {
		t.Errorf("the next cycle wants %d, which the last one did", c.Wanted)
	}
}

// TestTheFullestMemoryIsShown: of memories with limits the one under most pressure, and of those without the one that has grown most.
func TestTheFullestMemoryIsShown(t *testing.T) {
	d := newDriver(t, uncapped, policy.Skip)
	a, b, c := d.add(pressure.Device(0), 100), d.add(pressure.Device(1), 1000), d.add(pressure.Host, 0)
	shown := func(asks *memory, request int64) *governor.Memory {
		d.g.Allocate(d.now, &asks.Memory, request)
		return d.g.Top
	}
	a.put(50 * mib)
	b.put(400 * mib)
	c.put(5000 * mib)
	if got := shown(c, mib); got != &a.Memory {
		t.Error("not the one at 50 %")
	}
	b.put(101 * mib)
	if got := shown(a, mib); got != &b.Memory {
		t.Error("not the one at 50.1 %")
	}
	b.Live = 500 * mib // the same pressure: b has grown more
	if got := shown(a, mib); got != &b.Memory {
		t.Error("not the one that has grown more")
	}
	if got := shown(a, 500*mib); got != &a.Memory {
		t.Error("a request does not count as growth")
	}
}

// TestAWakeLevelIsKept: nobody asks below it, and a cycle or a change cancels it.
func TestAWakeLevelIsKept(t *testing.T) {
	d := newDriver(t, uncapped, policy.Skip)
	d.p.Wake = 50 * mib
	a, b, c := d.add(pressure.Device(0), 100), d.add(pressure.Device(1), 10), d.add(pressure.Device(2), 0)
	a.put(mib)
	d.allocate(a, 1)
	for _, m := range []struct {
		of   *memory
		want int64
	}{{a, 50 * mib}, {b, 5 * mib}, {c, math.MaxInt64 / 2}} {
		if m.of.Wake != m.want {
			t.Errorf("wakes at %d, want %d: the same pressure", m.of.Wake, m.want)
		}
	}
	d.begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block, Memory: &a.Memory})
	d.settle()
	if a.Wake != 0 || b.Wake != 0 {
		t.Error("a cycle does not wake all")
	}
	for _, wake := range []int64{0, math.MaxInt64} {
		d.p.Wake = wake
		d.allocate(a, 1)
		if a.Wake != wake || b.Wake != wake || c.Wake != wake {
			t.Errorf("wake %d is %d, %d, %d", wake, a.Wake, b.Wake, c.Wake)
		}
		d.g.SetPolicy(d.p)
	}
}

// TestAWakeLevelBesideAMemoryWithoutLimit is the same for all, because no pressure is known.
func TestAWakeLevelBesideAMemoryWithoutLimit(t *testing.T) {
	d := newDriver(t, uncapped, policy.Skip)
	d.p.Wake = 50 * mib
	a, b := d.add(pressure.Device(0), 0), d.add(pressure.Device(1), 100)
	a.put(mib)
	if d.allocate(a, 1); d.g.Top != &a.Memory || a.Wake != 50*mib || b.Wake != 50*mib {
		t.Errorf("wakes at %d and %d", a.Wake, b.Wake)
	}
}

// TestPartsOfOneMemory: what libraries count and what a gauge reads of the host are one memory to the policy, which has grown as much as
// the part that grew most.
func TestPartsOfOneMemory(t *testing.T) {
	d := newDriver(t, uncapped, policy.Skip)
	own, gauge, device := d.add(pressure.Host, 100), d.add(pressure.Host, 300), d.add(pressure.Device(0), 1000)
	own.Soft, gauge.Gauge = true, true
	own.put(20 * mib)
	gauge.put(100 * mib)
	d.begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block, Memory: &own.Memory})
	own.drop(5 * mib)
	own.doomed, gauge.doomed = 5*mib, 10*mib
	d.settle()
	if c := d.cycles[0]; c.Freed != 15*mib || c.LiveAfter != 105*mib || c.Limit != 190*mib { // 85 MiB more than what is left
		t.Errorf("the cycle's report is %+v, want both parts", c)
	}
	own.put(3 * mib)
	gauge.put(mib)
	d.allocate(own, mib)
	if p := d.p.asked[0]; d.g.Top != &own.Memory || p.Sample.Live != 108*mib || p.Sample.Reserved != 108*mib || p.Sample.Limit != 190*mib || p.LiveAfter != 105*mib || p.Freed != 0 {
		t.Errorf("the policy saw %+v", p)
	}
	d.p.Wake = 115 * mib // 10 MiB of growth
	d.allocate(own, mib)
	if own.Wake != 25*mib || gauge.Wake != 100*mib {
		t.Errorf("wakes at %d and %d MiB, want 25 and 100", own.Wake/mib, gauge.Wake/mib)
	}
	gauge.Fell(80 * mib)
	d.g.Allocate(d.now, &gauge.Memory, 0)
	if p := d.p.asked[2]; p.LiveAfter != 95*mib {
		t.Errorf("after a fall %d MiB are left of the last cycle", p.LiveAfter/mib)
	}
	own.Returning = 5 * mib
	d.g.Allocate(d.now, &own.Memory, 0)
	if p := d.p.asked[3]; p.Sample.Headroom() != 75*mib {
		t.Errorf("with 20 MiB live of 100, and 5 that return, there is room for %d MiB", p.Sample.Headroom()/mib)
	}
	_ = device
}

// TestARestEndsWhereTheMemoryIsAnotherOne: it has shrunk by an eighth, or more than doubled. The
// time of the cycle before it, here 100 ms, is no part of it.
func TestARestEndsWhereTheMemoryIsAnotherOne(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Overlap)
	m := d.add(pressure.Device(0), 1000)
	m.put(80 * mib)
	d.length, d.work = 100*ms, 10*ms
	d.allocate(m, 0)
	d.pass(100 * ms)
	for live, over := range map[int64]bool{69: true, 71: false, 80: false, 175: false, 177: true} {
		if m.Rest.Over(d.now+100*ms, live*mib) != over {
			t.Errorf("with %d MiB it is over: %v", live, !over)
		}
	}
	var lasts []time.Duration
	for i := range 5 {
		switch i {
		case 2:
			d.g.Changed()
		case 4:
			d.g.Settled(d.now, &governor.Run{Cause: governor.Cause{Trigger: policy.TriggerNatural, Action: policy.Overlap, Memory: &m.Memory}})
		}
		if i%2 == 0 && i > 0 && !m.Rest.Over(d.now, m.Live) {
			t.Errorf("it lasts though limits have changed, or a cycle of the runtime has ended: %+v", m.Rest)
		}
		d.begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block, Memory: &m.Memory})
		d.settle()
		lasts = append(lasts, m.Rest.Until-d.now)
	}
	if lasts[1] <= lasts[0] || lasts[2] >= lasts[0] || lasts[3] <= lasts[2] || lasts[4] >= lasts[3] {
		t.Errorf("after two cycles in vain, two since limits have changed, and one since a cycle of the runtime, it lasts %v", lasts)
	}
}

// TestACrowdedSoftMemory: where nearly all of the limit is in use, cycles take a twentieth of the time, though they free something.
func TestACrowdedSoftMemory(t *testing.T) {
	for share, most := range map[int64]float64{80: 1, 95: 0.06} {
		d := newDriver(t, governor.Caps{}, policy.Overlap)
		d.length, d.work = 10*ms, 10*ms
		m := d.add(pressure.Host, 100)
		m.Soft = true
		m.put(share * mib)
		began, working := 0, time.Duration(0)
		for d.now < 10*time.Second {
			m.drop(2 * mib)
			if d.allocate(m, 2*mib) {
				began++
				working += d.length
			}
			d.pass(10 * ms)
		}
		got := float64(working) / float64(d.now)
		if got > most || most == 1 && got < 0.2 {
			t.Errorf("%d %% in use: cycles for %.3f of the time", share, got)
		}
		if want := governor.Crowded; most < 1 && m.Rest.Why != want {
			t.Errorf("%d %% in use: rests because %v", share, m.Rest.Why)
		}
	}
}

// TestAnAssistIsAShare: who fills half of the room waits for half of the cycle, unless the cycle is as far; and what is not needed is given back.
func TestAnAssistIsAShare(t *testing.T) {
	d := newDriver(t, governor.Caps{Held: 1, Assist: time.Second}, policy.Overlap)
	d.g.Costs.Cost = 100 * ms
	m := d.add(pressure.Host, 100)
	m.Soft = true
	m.put(60 * mib)
	d.pass(time.Second) // until the budget is full
	a := d.begin(governor.Cause{Trigger: policy.TriggerPolicy, Action: policy.Overlap, Memory: &m.Memory})
	if got := a.Share(20 * mib); got != 50*ms {
		t.Errorf("20 of 40 MiB owe %v", got)
	}
	if got := a.Share(400 * mib); got != 100*ms {
		t.Errorf("more than all owes %v", got)
	}
	m.put(20 * mib)
	if got := d.g.Assist(d.now, a, 50*ms); got != 50*ms {
		t.Errorf("held for %v", got)
	}
	d.g.LetGo(d.now + 10*ms)
	if got := d.g.Assist(d.now+30*ms, a, 50*ms); got != 20*ms {
		t.Errorf("30 ms later held for %v, want what is left of the half", got)
	}
	if got := d.g.Assist(d.now+60*ms, a, 50*ms); got != 0 {
		t.Errorf("held for %v beside a cycle that is ahead", got)
	}
	if got := d.g.Assist(d.now+30*ms, a, 99*time.Microsecond); got != 0 {
		t.Errorf("held for %v, which is not worth a timer", got)
	}
	if got := governor.Yielders(2); got != 4 {
		t.Errorf("%d callers make way on two processors", got)
	}
	d = newDriver(t, governor.Caps{Held: 1, Assist: 50 * ms}, policy.Overlap)
	d.pass(time.Second)
	for i := range 10 { // 500 ms would be more than the budget has
		if got := d.g.GiveWay(d.now); got != 50*ms {
			t.Errorf("after %d that were let go after 10 ms, a caller is held for %v", i, got)
		}
		d.pass(10 * ms)
		d.g.LetGo(d.now)
	}
	if none := d.begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block}); none.Share(mib) != 0 {
		t.Error("an assist for no memory")
	}
}

// TestWhoIsLetGoEarly: callers who are held, and let go when the cycle has settled, are held for their share of a second, though each of
// them says that it goes on.
func TestWhoIsLetGoEarly(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Overlap)
	d.pass(time.Minute)
	for end := d.now + time.Second; d.now < end; d.pass(ms) {
		wait := min(d.g.GiveWay(d.now), ms)
		if wait == 0 {
			continue
		}
		d.hold(wait)
		d.pass(wait)
		for range 3 {
			d.g.LetGo(d.now)
		}
	}
	between(t, "held in the second", d.heldIn(d.now-time.Second, d.now), 20*ms, 50*ms)
}

// TestNaturalCyclesCostNothing: they end rests, spend no share, and the policy is told of their yield.
func TestNaturalCyclesCostNothing(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Overlap)
	d.g.Costs = governor.Costs{Cost: 8 * ms, Work: 6 * ms}
	m := d.add(pressure.Host, 100)
	m.put(50 * mib)
	d.pass(time.Second)
	m.Live -= 10 * mib
	m.Freed = 10 * mib
	run := governor.Run{Cause: governor.Cause{Trigger: policy.TriggerNatural, Action: policy.Overlap, Memory: &m.Memory}}
	c := d.g.Settled(d.now, &run)
	want := policy.Cycle{
		Start: 992 * ms, Duration: 8 * ms, Work: 6 * ms, Trigger: policy.TriggerNatural, Action: policy.Overlap,
		Freed: 10 * mib, LiveAfter: 40 * mib, Limit: 100 * mib,
	}
	if c != want || d.p.told[0] != want {
		t.Errorf("told %+v\nwant %+v", c, want)
	}
	if !d.allocate(m, mib) {
		t.Error("it has spent the share of cycles")
	}
	run.Memory = nil
	d.g.Settled(d.now, &run) // beside one of ours
	if !d.g.Running {
		t.Error("it has ended the cycle beside it")
	}
}

// TestCostsAreLearned: from cycles of 40 ms the next is expected to take about as long.
func TestCostsAreLearned(t *testing.T) {
	d := newDriver(t, uncapped, policy.Overlap)
	d.g.Processors = 2
	d.g.Learn()
	m := d.add(pressure.Host, 100)
	d.g.See(1<<20, 1)
	before := d.g.Costs
	for range 8 {
		d.begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block, Memory: &m.Memory})
		run := d.run
		run.Duration, run.Swept, run.Processor, run.Tracked = 45*ms, 5*ms, 30*ms, 1
		d.g.Settled(d.now, &run)
		d.now += time.Second
	}
	between(t, "expects", d.g.Cost, 39*ms, 41*ms)
	between(t, "of work for each processor", d.g.Work, 14*ms, 16*ms)
	if before.Cost > 5*ms || before.Slowdown != 0 {
		t.Errorf("at first %+v", before)
	}
	d.g.See(100<<20, 1)
	between(t, "with more heap", d.g.Cost, 100*ms, ever)
}

// TestAClosedGovernorDoesNothing: no policy is asked or told.
func TestAClosedGovernorDoesNothing(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Block)
	m := d.add(pressure.Host, 100)
	m.Soft = true
	m.put(200 * mib)
	d.begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block, Memory: &m.Memory})
	d.g.Close()
	d.settle()
	d.g.Quiet(d.now)
	quiet, more := d.g.Quiet(d.now)
	orders := []governor.Order{d.g.Allocate(d.now, &m.Memory, 1), d.g.Sync(d.now, ms), quiet, d.g.Refuse(d.now, &m.Memory, 1)}
	for i, o := range orders {
		if o.Begin || o.Hold || more {
			t.Errorf("call %d orders %+v", i, o)
		}
	}
	d.g.Changed()
	if late := d.add(pressure.Host, 1); len(d.p.asked)+len(d.p.told) > 0 || m.Wake != math.MaxInt64 || late.Wake != math.MaxInt64 {
		t.Errorf("asked %d times, told %d times, wakes at %d and %d", len(d.p.asked), len(d.p.told), m.Wake, late.Wake)
	}
	if len(d.cycles) != 1 || d.cycles[0].LiveAfter != 200*mib {
		t.Errorf("who waited for the last cycle gets %+v", d.cycles)
	}
}

// TestAMemoryThatIsRemoved is shown no more.
func TestAMemoryThatIsRemoved(t *testing.T) {
	d := newDriver(t, uncapped, policy.Overlap)
	a, b := d.add(pressure.Device(0), 100), d.add(pressure.Device(1), 100)
	a.put(mib)
	d.g.Remove(&a.Memory)
	d.allocate(b, mib)
	d.g.Remove(&b.Memory)
	if d.g.Allocate(d.now, &b.Memory, 1); d.p.asked[0].Sample.Space != pressure.Device(1) || d.g.Top != nil || d.g.MostPressed(nil, 0) != nil {
		t.Errorf("asked about %+v", d.p.asked)
	}
}

func TestCapsOutOfRange(t *testing.T) {
	for _, caps := range []governor.Caps{{Cycles: -0.1}, {Cycles: 1.1}, {Held: -1}, {Held: 1.1}, {Cycles: math.NaN()}, {Held: math.NaN()}} {
		if caps.Check() == nil {
			t.Errorf("%+v passes", caps)
		}
	}
	caps := governor.Caps{Assist: -1}
	if err := caps.Check(); err != nil || caps != (governor.Caps{Cycles: 0.25, Held: 0.05, Assist: -1}) {
		t.Errorf("%v, %+v", err, caps)
	}
}

// TestALadder: a climber that gets nothing waits as long as its collections take, twice as long each time, and climbs three rounds at most.
func TestALadder(t *testing.T) {
	var l governor.Ladder
	var waits []time.Duration
	for range 6 {
		waits = append(waits, l.Rest())
		l.Collected(10*ms, 5, 6)
	}
	for i, want := range []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 80 * ms} {
		if waits[i] != want {
			t.Errorf("waits %v", waits)
			break
		}
	}
	l.Collected(time.Second, 5, 6)
	if got := l.Rest(); got != 256*ms {
		t.Errorf("after a long one it waits %v", got)
	}
	if l.Collected(time.Second, 6, 6); l.Rest() != 0 {
		t.Error("it waits after one that freed enough")
	}
	m := governor.Memory{Reading: governor.Reading{Limit: 80}}
	m.Climbed(false)
	if m.Climbed(true); !m.Climbs() {
		t.Error("a memory that was served rests")
	}
	if !governor.ClimbsAgain(1, 10, 10) || !governor.ClimbsAgain(2, 11, 10) || governor.ClimbsAgain(3, 12, 10) {
		t.Error("not three rounds where others take what cycles free")
	}
	if governor.ClimbsAgain(1, 9, 10) {
		t.Error("a second round after cycles that free too little")
	}
}

// TestAQuietProgram gets one cycle for what is live, whatever a gauge does meanwhile.
func TestAQuietProgram(t *testing.T) {
	for live, want := range map[int64]bool{0: false, mib: true} {
		d := newDriver(t, governor.Caps{}, policy.Skip)
		m, gauge := d.add(pressure.Device(0), 100), d.add(pressure.Host, 0)
		gauge.Gauge = true
		m.put(mib)
		m.Live = live
		d.g.Quiet(d.now)
		gauge.put(mib)
		if o, _ := d.g.Quiet(d.now + 500*ms); o.Begin != want {
			t.Errorf("with %d bytes live: %+v", live, o)
		}
	}
}
