package governor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// TestPromises runs random programs under policies of all kinds, and checks after each step what a program may rely on:
//
//   - one cycle runs at a time, and the policy is told of each, once;
//   - cycles take at most their share of the processors, and callers of soft memory are held for at most theirs of any second;
//   - a rest ends within two minutes of the cycle that it follows;
//   - nobody is held for a whole cycle but callers of memory that can refuse, where the policy says block;
//   - a cycle for one memory ends no rest of another, a gauge has no rest for cycles in vain, and only a soft memory one because it is full;
//   - without an allocation the policy is asked only after a cycle that freed something;
//   - what the policy sees is what the program did, by a ledger of the test's own.
func TestPromises(t *testing.T) {
	programs := 300
	if testing.Short() {
		programs = 100
	}
	for seed := range programs {
		promises(t, uint64(seed))
	}
}

// A ledger is what happened to a memory since the last cycle, and in all.
type ledger struct{ live, after, allocated, freed int64 }

func promises(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	caps := []governor.Caps{{}, {Cycles: 0.05, Held: 0.1}, {Cycles: 1}, {Cycles: 0.5, Held: 0.02, Assist: 2 * ms}}[r.IntN(4)]
	d := newDriver(t, caps, policy.Skip)
	d.g.Processors = 1 + r.IntN(4)
	books := map[*memory]*ledger{}
	for i := range 1 + r.IntN(3) {
		m := d.add(pressure.Device(i), int64(r.IntN(2))*(50+r.Int64N(200)))
		books[m] = &ledger{}
	}
	if r.IntN(2) == 0 {
		own := d.add(pressure.Host, int64(r.IntN(2))*100)
		own.Soft = true
		gauge := d.add(pressure.Host, int64(r.IntN(2))*300)
		gauge.Gauge = true
		books[own], books[gauge] = &ledger{}, &ledger{}
	}
	one := func(a, b *memory) bool { return a == b || a.Space == pressure.Host && b.Space == pressure.Host }
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("program %d, %v, at %v: %s", seed, caps, d.now, fmt.Sprintf(format, args...))
	}

	var spent []hold // the work of cycles: from when they began
	waits := func(length time.Duration) {
		if d.hold(length); length > d.g.Caps().Assist {
			fail("one caller waits for %v", length)
		}
	}
	begin := func(why governor.Cause) {
		if d.g.Running {
			fail("two cycles at a time")
		}
		d.length = time.Duration(1+r.IntN(40)) * ms
		d.work = time.Duration(r.Int64N(int64(d.length)*int64(d.g.Processors))) + 1
		d.begin(why)
		if why.Trigger == policy.TriggerPolicy {
			spent = append(spent, hold{d.now, d.now + d.work})
		}
	}
	settle := func() {
		doomed, rested := make(map[*memory]int64), make(map[*memory]governor.Rest)
		for _, m := range d.memories {
			doomed[m], rested[m] = m.doomed, m.Rest
		}
		d.settle()
		of := d.run.Memory
		c, last := d.cycles[len(d.cycles)-1], d.p.told[len(d.p.told)-1]
		if c != last || len(d.p.told) != len(d.cycles) {
			fail("told of %d cycles of %d", len(d.p.told), len(d.cycles))
		}
		var freed int64
		for m, b := range books {
			b.live -= doomed[m]
			freed += doomed[m]
			b.after, b.allocated, b.freed = b.live, 0, 0
			if m.Rest.Until > d.now+2*time.Minute && m.Rest.Why != governor.Capped {
				fail("a rest until %v", m.Rest.Until)
			}
			if was := rested[m]; &m.Memory != of && was.Why != governor.Capped && was.Until > d.now+time.Minute && m.Rest != was || m.Gauge && m.Rest.Why == governor.Futile {
				fail("the rest %+v has become %+v", was, m.Rest)
			}
			if m.Rest.Why == governor.Crowded && !m.Soft {
				fail("a memory that can refuse has the rest %+v", m.Rest)
			}
			if m.Wake != 0 {
				fail("a cycle does not wake all")
			}
		}
		for i := range d.holds { // who is still held goes on, and each says so
			if h := &d.holds[i]; h.to > d.now {
				h.to = d.now
				d.g.LetGo(d.now)
			}
		}
		if c.Freed > freed {
			fail("the report says %d freed of %d", c.Freed, freed)
		}
	}
	obey := func(o governor.Order, asks *memory) {
		if n := len(d.p.asked); n > 0 {
			p := d.p.asked[n-1]
			var want ledger
			var top *memory
			for m := range books {
				if &m.Memory == d.g.Top {
					top = m
				}
			}
			for m, b := range books {
				if one(m, top) {
					want.after += b.after
					if m == top {
						want.live, want.allocated, want.freed = want.live+b.live, b.allocated, b.freed
					} else {
						want.live += b.after
					}
				}
			}
			if p.Sample.Live != want.live || p.LiveAfter != want.after || p.Allocated != want.allocated || p.Freed != want.freed || p.Running != d.g.Running {
				fail("the policy saw %+v\nwant %+v", p, want)
			}
			full := p.Sample.Pressure()
			for m, b := range books {
				if one(m, top) && m.Limit > 0 { // the part that has grown most is shown, with the headroom of the fullest
					full = max(full, float64(b.live)/float64(m.Limit))
				}
			}
			for m, b := range books {
				if !one(m, top) && m.Limit > 0 && float64(b.live)/float64(m.Limit) > full+1e-9 {
					fail("a fuller memory is not shown: %+v, but %+v", b, p)
				}
			}
		}
		if o.Hold && (asks != nil && (asks.Soft || asks.Gauge) || d.g.Answer.Action != policy.Block) {
			fail("held by %+v", d.g.Answer)
		}
		if o.Begin && (d.g.Running || asks != nil && asks.Gauge && o.Action == policy.Block) || d.g.Answer.Reason == governor.CappedReason && d.g.Answer.Wake != 0 {
			fail("ordered %+v, by %+v", o, d.g.Answer)
		}
		if o.Begin {
			begin(o.Cause)
		}
		if o.Hold {
			settle()
		}
	}
	pass := func(by time.Duration) {
		if d.g.Running && d.end <= d.now+by {
			settle()
		}
		d.now = max(d.now, d.now+by)
	}

	for range 600 {
		m := d.memories[r.IntN(len(d.memories))]
		b := books[m]
		d.p.Decision = policy.Decision{Action: policy.Action(r.IntN(3)), Reason: "drawn", Wake: r.Int64N(2) * r.Int64N(200*mib)}
		switch n := r.Int64N(8 * mib); r.IntN(12) {
		case 0, 1, 2:
			if m.Live+n >= m.Wake && m.Rest.Over(d.now, m.Live) {
				obey(d.g.Allocate(d.now, &m.Memory, n), m)
			}
			if d.g.Running && m.Soft && d.run.Memory == &m.Memory {
				waits(d.g.Assist(d.now, &d.run, d.run.Share(n)))
			}
			m.put(n)
			b.live, b.allocated = b.live+n, b.allocated+n
		case 3:
			m.drop(min(m.Live-m.garbage, n))
		case 4: // the program frees
			n = min(m.Live-m.garbage, n)
			m.Live -= n
			b.live, b.freed = b.live-n, b.freed+n
		case 5:
			obey(d.g.Sync(d.now, time.Duration(r.IntN(5))*ms), nil)
		case 6:
			pass(time.Duration(r.Int64N(int64(50 * ms))))
		case 7:
			if !d.g.Running {
				begin(governor.Cause{Trigger: policy.TriggerExplicit, Action: policy.Block, Memory: &m.Memory})
				settle()
			}
		case 8: // a soft memory is full
			if o := d.g.Refuse(d.now, &m.Memory, n); o.Begin {
				if !m.Soft || !m.Rest.Over(d.now, m.Live) || o.Hold {
					fail("a refusal of %+v orders %+v", m.Memory, o)
				}
				begin(o.Cause)
			}
		case 9:
			if was := d.g.Running; d.g.Due(d.now) != (d.g.Answer.Action != policy.Skip) || d.g.Running != was {
				fail("due by %+v", d.g.Answer)
			}
		case 10:
			if d.g.Running && r.IntN(2) == 0 {
				waits(d.g.GiveWay(d.now))
			}
		case 11:
			d.g.Quiet(d.now)
			if o, _ := d.g.Quiet(d.now); o.Begin { // nothing was allocated meanwhile
				o.Trigger = policy.TriggerPolicy // the cap holds for it, too
				begin(o.Cause)
			}
		}
	}
	if share := d.g.Caps().Cycles; share < 1 {
		for i := range spent { // from one that began to the next there is time enough for its work
			if i+1 < len(spent) && float64(spent[i+1].from-spent[i].from)*share*float64(d.g.Processors) < float64(spent[i].to-spent[i].from)-1 {
				fail("a cycle began %v after one that took %v", spent[i+1].from-spent[i].from, spent[i].to-spent[i].from)
			}
		}
	}
	for from := time.Duration(0); from < d.now; from += 50 * ms {
		if got := d.heldIn(from, from+time.Second); float64(got) > d.g.Caps().Held*float64(time.Second)+1 {
			fail("held for %v of the second from %v on", got, from)
		}
	}
}
