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

func TestOneCycleAtATime(t *testing.T) {
	d := newDriver(t, uncapped, policy.Overlap)
	m := d.add(pressure.Device(0), 100)
	if !d.allocate(m, mib) || d.allocate(m, mib) {
		t.Error("the second allocation is to begin a cycle beside the first one's")
	}
	d.p.Action = policy.Block
	if o := d.g.Sync(d.now, ms); o.Begin || !o.Hold {
		t.Errorf("a caller who is to block beside a cycle: %+v, want to be held for that", o)
	}
}

func TestWhoIsHeldForAWholeCycle(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*memory)
		held bool
		as   policy.Action
	}{
		"a pool's":  {func(*memory) {}, true, policy.Block},
		"soft":      {func(m *memory) { m.Soft = true }, false, policy.Block},
		"a gauge's": {func(m *memory) { m.Gauge = true }, false, policy.Overlap},
	} {
		d := newDriver(t, uncapped, policy.Block)
		m := d.add(pressure.Host, 100)
		test.set(m)
		if o := d.g.Allocate(0, &m.Memory, mib); o.Hold != test.held || !o.Begin || o.Action != test.as {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestDueAsksAndBeginsNothing(t *testing.T) {
	d := newDriver(t, uncapped, policy.Overlap)
	if d.g.Due(0) {
		t.Error("a cycle is due where nothing is watched")
	}
	d.add(pressure.Host, 100)
	if !d.g.Due(0) || d.g.Running || d.p.asked[0].WillBlock || d.p.asked[0].At != policy.Sync {
		t.Errorf("asked %+v", d.p.asked)
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
	d.g.Wake(&c.Memory)
	if a.Wake == 0 || c.Wake != 0 {
		t.Error("another limit of one memory wakes that one")
	}
	d.begin(policy.TriggerExplicit, policy.Block, &a.Memory)
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

// TestPartsOfOneMemory: what libraries count and what a gauge reads of the host are one memory to the policy, which has grown as much as
// the part that grew most.
func TestPartsOfOneMemory(t *testing.T) {
	d := newDriver(t, uncapped, policy.Skip)
	own, gauge, device := d.add(pressure.Host, 100), d.add(pressure.Host, 300), d.add(pressure.Device(0), 1000)
	own.Soft, gauge.Gauge = true, true
	own.put(20 * mib)
	gauge.put(100 * mib)
	d.begin(policy.TriggerExplicit, policy.Block, &own.Memory)
	own.drop(5 * mib)
	own.doomed, gauge.doomed = 5*mib, 10*mib
	d.settle()
	if c := d.cycles[0]; c.Freed != 15*mib || c.LiveAfter != 105*mib || c.Limit != 190*mib { // 85 MiB more than what is left
		t.Errorf("the cycle's report is %+v, want both parts", c)
	}
	own.put(3 * mib)
	gauge.put(mib)
	d.allocate(own, mib)
	if p := d.p.asked[0]; d.g.Top != &own.Memory || p.Sample.Live != 108*mib || p.Sample.Limit != 190*mib || p.LiveAfter != 105*mib || p.Freed != 0 {
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
	_ = device
}

// TestCyclesKeepToTheirShare: cycles that take 20 ms of one processor, and free nearly all.
func TestCyclesKeepToTheirShare(t *testing.T) {
	for _, test := range []struct {
		name        string
		caps        governor.Caps
		processors  int
		least, most int // cycles in 10 s
	}{
		{"a quarter", governor.Caps{}, 1, 120, 126},
		{"of two processors", governor.Caps{}, 2, 240, 252},
		{"a twentieth", governor.Caps{Cycles: 0.05}, 1, 24, 26},
		{"no cap", governor.Caps{Cycles: 1}, 1, 450, 500},
	} {
		d := newDriver(t, test.caps, policy.Overlap)
		d.g.Processors, d.length, d.work = test.processors, 20*ms, 20*ms
		m := d.add(pressure.Device(0), 1000)
		cycles, _ := d.run(m, 10*time.Second, mib, 1)
		between(t, test.name, cycles, test.least, test.most)
	}
}

// TestACapShowsAsAReason: observers see why a cycle that the policy wants does not begin.
func TestACapShowsAsAReason(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Block)
	m := d.add(pressure.Device(0), 1000)
	d.work = 100 * ms
	d.run(m, 20*ms, mib, 1)
	if o := d.g.Sync(d.now, ms); o.Begin || o.Hold || d.g.Answer.Action != policy.Skip || d.g.Answer.Reason != governor.CappedReason {
		t.Errorf("at a wait it orders %+v for %+v", o, d.g.Answer)
	}
	if d.g.Answer.Wake != 0 {
		t.Error("it is not asked again")
	}
}

// TestCyclesThatFreeNothing take ever less of the time, and one that frees something ends that.
func TestCyclesThatFreeNothing(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Overlap)
	d.length, d.work = ms, ms
	m := d.add(pressure.Device(0), 1000)
	m.put(500 * mib)
	first, _ := d.run(m, time.Second, 0, 0)
	between(t, "cycles in the first second", first, 4, 7)
	d.run(m, 9*time.Second, 0, 0)
	last, _ := d.run(m, 10*time.Second, 0, 0)
	between(t, "in the second ten", last, 0, 1)
	if m.Rest.Why != governor.Futile {
		t.Errorf("rests because %v", m.Rest.Why)
	}
	m.drop(200 * mib)
	d.pass(2 * time.Minute)
	if !d.allocate(m, 0) {
		t.Error("it rests for more than two minutes")
	}
	d.pass(10 * ms)
	d.length, d.work = ms, ms
	between(t, "then it rests for", m.Rest.Until-d.now, -ever, 10*ms)
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
	d.g.Changed()
	if !m.Rest.Over(d.now, m.Live) {
		t.Error("it lasts though limits have changed")
	}
}

// TestARestIsOfOneMemory: a device that is full of what is in use does not keep another one waiting.
func TestARestIsOfOneMemory(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Overlap)
	d.length, d.work = ms, ms
	full, other := d.add(pressure.Device(0), 100), d.add(pressure.Device(1), 100)
	full.put(99 * mib)
	d.run(full, 20*time.Second, 0, 0)
	if full.Rest.Over(d.now, full.Live) {
		t.Fatal("the full one does not rest")
	}
	other.put(99*mib + 1)
	other.drop(90 * mib)
	if !d.allocate(other, 0) {
		t.Errorf("the other one rests, too, until %v at %v", other.Rest.Until, d.now)
	}
	d.pass(10 * ms)
	if full.Rest.Over(d.now, full.Live) {
		t.Error("a cycle for the other one has ended the rest")
	}
	d.g.Natural(d.now, &full.Memory)
	if !full.Rest.Over(d.now+10*ms, full.Live) {
		t.Error("one of the runtime's own has not")
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

// TestASoftMemoryAtItsLimit begins a cycle beside its callers, by the same rules.
func TestASoftMemoryAtItsLimit(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Skip)
	m := d.add(pressure.Host, 100)
	m.Soft = true
	m.put(100 * mib)
	if o := d.g.Refuse(0, &m.Memory, mib); !o.Begin || o.Hold || o.Action != policy.Overlap {
		t.Errorf("it orders %+v", o)
	}
	d.begin(policy.TriggerRefusal, policy.Overlap, &m.Memory)
	if o := d.g.Refuse(0, &m.Memory, mib); o.Begin {
		t.Error("a second one beside it")
	}
	d.pass(10 * ms)
	if o := d.g.Refuse(d.now, &m.Memory, mib); o.Begin {
		t.Error("it has freed nothing, and there is no rest")
	}
	if c := d.cycles[0]; c.Trigger != policy.TriggerRefusal || c.Wanted != 0 {
		t.Errorf("its report is %+v", c)
	}
}

// TestAMemoryThatRefuses climbs again only where an eighth of the limit was added, if a cycle made no room.
func TestAMemoryThatRefuses(t *testing.T) {
	d := newDriver(t, uncapped, policy.Skip)
	m := d.add(pressure.Host, 80)
	m.put(80 * mib)
	if !m.Climbs(0) {
		t.Error("the first does not")
	}
	m.Climbed(false)
	m.put(10*mib - 1)
	if m.Climbs(time.Hour) {
		t.Error("it climbs again at once")
	}
	m.put(1)
	if !m.Climbs(0) {
		t.Error("it never does again")
	}
	m.Climbed(true)
	m.Live -= 20 * mib
	if !m.Climbs(0) {
		t.Error("one that was served rests")
	}
}

// TestCallersAreHeldForAShareOfAnySecond: whatever they owe, in no second more than caps allow.
func TestCallersAreHeldForAShareOfAnySecond(t *testing.T) {
	for _, caps := range []governor.Caps{{}, {Held: 0.2}, {Held: 0.01, Assist: ms}, {Held: 1}} {
		d := newDriver(t, caps, policy.Overlap)
		d.g.Costs.Cost, d.length = 400*ms, 400*ms
		m := d.add(pressure.Host, 100)
		m.Soft = true
		most := d.g.Caps().Held
		for d.now < 5*time.Second {
			a := d.begin(policy.TriggerPolicy, policy.Overlap, &m.Memory)
			for d.g.Running {
				m.put(mib)
				d.hold(d.g.Assist(d.now, &a, a.Share(mib)))
				d.hold(d.g.GiveWay(d.now))
				if n := len(d.holds); n > 0 && d.holds[n-1].to-d.holds[n-1].from > d.g.Caps().Assist {
					t.Fatalf("%+v: one call waits for %v", caps, d.holds[n-1].to-d.holds[n-1].from)
				}
				d.pass(ms)
			}
			m.Live = 0
		}
		for from := time.Duration(0); from < d.now-time.Second; from += 7 * ms {
			if got := d.heldIn(from, from+time.Second); float64(got) > most*float64(time.Second)+1 {
				t.Fatalf("%+v: held for %v of the second from %v on", caps, got, from)
			}
		}
		if got := d.heldIn(0, d.now); float64(got) < 0.4*most*float64(d.now) && most < 0.5 {
			t.Errorf("%+v: held for %v in all, as good as never", caps, got)
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
	a := d.begin(policy.TriggerPolicy, policy.Overlap, &m.Memory)
	if got := a.Share(20 * mib); got != 50*ms {
		t.Errorf("20 of 40 MiB owe %v", got)
	}
	if got := a.Share(400 * mib); got != 100*ms {
		t.Errorf("more than all owes %v", got)
	}
	m.put(20 * mib)
	if got := d.g.Assist(d.now, &a, 50*ms); got != 50*ms {
		t.Errorf("held for %v", got)
	}
	d.g.LetGo(d.now + 10*ms)
	if got := d.g.Assist(d.now+30*ms, &a, 50*ms); got != 20*ms {
		t.Errorf("30 ms later held for %v, want what is left of the half", got)
	}
	if got := d.g.Assist(d.now+60*ms, &a, 50*ms); got != 0 {
		t.Errorf("held for %v beside a cycle that is ahead", got)
	}
	if got := d.g.Assist(d.now+30*ms, &a, 99*time.Microsecond); got != 0 {
		t.Errorf("held for %v, which is not worth a timer", got)
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
	if none := d.begin(policy.TriggerExplicit, policy.Block, nil); none.Share(mib) != 0 {
		t.Error("an assist for no memory")
	}
}

func TestTheFirstCallersGiveWay(t *testing.T) {
	want := []governor.Way{governor.Assess, governor.Yield, governor.Yield, governor.Yield, governor.GoOn, governor.GoOn}
	for i, w := range want {
		if got := governor.WayOf(i+1, 2); got != w {
			t.Errorf("caller %d: %v, want %v", i+1, got, w)
		}
	}
}

// TestAQuietProgram gets one cycle, and is looked at no more.
func TestAQuietProgram(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Skip)
	d.g.IdleEvery = 500 * ms
	m, gauge := d.add(pressure.Device(0), 100), d.add(pressure.Host, 0)
	gauge.Gauge = true
	gauge.put(mib)
	m.put(mib)
	quiet := func() governor.Order {
		d.pass(500 * ms)
		o := d.g.Quiet(d.now)
		if o.Begin {
			d.begin(policy.TriggerExplicit, o.Action, d.g.Top)
			d.pass(10 * ms)
		}
		return o
	}
	if o := quiet(); o.Begin || o.Again != 500*ms {
		t.Errorf("it has just allocated: %+v", o)
	}
	gauge.put(mib)
	if o := quiet(); !o.Begin || o.Action != policy.Overlap || d.g.Answer.Reason != "idle" {
		t.Errorf("it is quiet: %+v, %+v", o, d.g.Answer)
	}
	if o := quiet(); o != (governor.Order{}) {
		t.Errorf("it was served: %+v", o)
	}
	m.put(mib)
	quiet()
	if o := quiet(); !o.Begin {
		t.Errorf("it has allocated since: %+v", o)
	}
	m.put(mib)
	m.Live = 0
	quiet()
	if o := quiet(); o != (governor.Order{}) {
		t.Errorf("nothing is live: %+v", o)
	}
	m.put(mib)
	d.g.SetPolicy(policy.Spec{}.New())
	quiet()
	if o := quiet(); o != (governor.Order{}) {
		t.Errorf("the policy is never: %+v", o)
	}
}

// TestAskedAgainWhereNobodyAllocates: after a cycle that freed memory of Own, less and less often.
func TestAskedAgainWhereNobodyAllocates(t *testing.T) {
	d := newDriver(t, governor.Caps{}, policy.Skip)
	d.g.IdleEvery = 500 * ms
	m := d.add(pressure.Host, 100)
	m.Soft = true
	m.put(10 * mib)
	m.drop(5 * mib)
	d.begin(policy.TriggerExplicit, policy.Block, &m.Memory)
	waits := []time.Duration{d.settle().Again}
	for waits[len(waits)-1] > 0 {
		d.pass(waits[len(waits)-1])
		o, asked := d.g.Later(d.now)
		if !asked {
			t.Fatalf("not asked after %v", waits)
		}
		waits = append(waits, o.Again)
	}
	if len(waits) != 9 || waits[0] != 10*ms || waits[7] != 1280*ms {
		t.Errorf("asked after %v", waits)
	}
	d.p.Action = policy.Block
	d.begin(policy.TriggerExplicit, policy.Block, &m.Memory)
	if o := d.settle(); o.Again != 0 {
		t.Errorf("a cycle that freed nothing has it asked after %v", o.Again)
	}
	m.drop(mib)
	d.begin(policy.TriggerExplicit, policy.Block, &m.Memory)
	d.settle()
	if o, _ := d.g.Later(d.now); !o.Begin || o.Hold || o.Action != policy.Overlap {
		t.Errorf("later it orders %+v", o)
	}
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
	c := d.g.Natural(d.now, &m.Memory)
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
	d.g.Natural(d.now, nil) // beside one of ours, and of no memory
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
		d.begin(policy.TriggerExplicit, policy.Block, &m.Memory)
		d.g.Settled(d.now, &governor.Took{Duration: 45 * ms, Swept: 5 * ms, Processor: 30 * ms, Tracked: 1})
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
	d.g.IdleEvery = 500 * ms
	m := d.add(pressure.Host, 100)
	m.Soft = true
	m.put(200 * mib)
	d.begin(policy.TriggerExplicit, policy.Block, &m.Memory)
	d.g.Close()
	d.settle()
	d.g.Quiet(d.now)
	later, _ := d.g.Later(d.now)
	orders := []governor.Order{d.g.Allocate(d.now, &m.Memory, 1), d.g.Sync(d.now, ms), d.g.Quiet(d.now), later, d.g.Refuse(d.now, &m.Memory, 1)}
	for i, o := range orders {
		if o.Begin || o.Hold || o.Again != 0 {
			t.Errorf("call %d orders %+v", i, o)
		}
	}
	d.g.Changed()
	d.g.Wake(&m.Memory)
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
	if d.g.Allocate(d.now, &b.Memory, 1); d.p.asked[0].Sample.Space != pressure.Device(1) || d.g.Top != nil || d.g.MostPressed() != nil {
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
	enough, little := governor.Climb{Wanted: 10}, governor.Climb{Wanted: 10}
	if !enough.Again(10) || !enough.Again(11) || enough.Again(12) {
		t.Error("not three rounds where others take what cycles free")
	}
	if little.Again(9) {
		t.Error("a second round after cycles that free too little")
	}
}

// TestAWaitIsExpectedAsTheLastOnesWere: the first counts whole, later ones a quarter.
func TestAWaitIsExpectedAsTheLastOnesWere(t *testing.T) {
	got := time.Duration(0)
	for _, w := range []time.Duration{8, 8, 4, 0} {
		got = governor.NextWait(got, w*ms)
	}
	if got != 5250*time.Microsecond {
		t.Errorf("expects %v", got)
	}
}
