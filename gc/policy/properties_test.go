package policy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

const (
	ms = time.Millisecond
	kB = 1000
	MB = 1000 * kB
	GB = 1000 * MB
)

// grow is an allocation of request bytes at now with live bytes, after gross bytes since the last cycle left after.
func grow(now time.Duration, live, request, gross, after, limit int64) Point {
	return Point{
		Now: now, At: Allocation, Request: request, Allocated: gross, LiveAfter: after,
		Sample: pressure.Sample{Live: live, Reserved: live, Limit: limit},
	}
}

// alloc is an allocation of 1 byte at now with live of limit bytes.
func alloc(now time.Duration, live, limit int64) Point { return grow(now, live, 1, 0, 0, limit) }

// wait is a sync point with an unknown length.
func wait(now time.Duration, live, limit int64) Point {
	p := grow(now, live, 0, 0, 0, limit)
	p.At, p.WillBlock = Sync, true
	return p
}

// variants are the texts that properties of all policies are tested with: by name, scaled, and in other forms.
func variants() (specs []Spec) {
	for _, info := range List() {
		specs = append(specs, MustParse(info.Name), MustParse(cmp.Or(info.Scaled, info.Name)))
	}
	for _, text := range []string{"periodic:1ms", "threshold:0.1", "growth:0.25,min=1B", "cudajl:overlap=true", "sqrt:waits=true", "host:price=0", "host:overhead=0%", "pacer:share=0"} {
		specs = append(specs, MustParse(text))
	}
	return specs
}

// A world is a heap that obeys its policy, so that Points are consistent with
// each other as the collector's and the simulator's are.
type world struct {
	now              time.Duration
	live, garbage    int64
	allocated, freed int64 // since the last cycle
	liveAfter, limit int64
	running          bool
	started, dropped int64 // of the cycle under way: when, and what it will free
	cycles           uint64
	policy           Policy
	wake             int64
}

func (w *world) point(at PointKind, request int64) Point {
	return Point{
		Now: w.now, At: at, Request: request, WillBlock: at == Sync,
		Sample:    pressure.Sample{Live: w.live, Reserved: w.live, Limit: w.limit},
		Allocated: w.allocated, Freed: w.freed, LiveAfter: w.liveAfter,
		Cost: time.Millisecond, Running: w.running, Cycles: w.cycles,
	}
}

// settle ends a cycle that frees bytes.
func (w *world) settle(trigger Trigger, action Action, start, length time.Duration, bytes int64) {
	w.live -= bytes
	w.garbage -= bytes
	w.allocated, w.freed, w.liveAfter, w.running, w.wake = 0, 0, w.live, false, 0
	w.cycles++
	w.policy.Observe(Cycle{Start: start, Duration: length, Trigger: trigger, Action: action, Freed: bytes, LiveAfter: w.live, Limit: w.limit})
}

func (w *world) obey(d Decision) {
	switch {
	case d.Action == Block:
		start := w.now
		w.now += time.Millisecond
		w.settle(TriggerPolicy, Block, start, time.Millisecond, w.garbage)
	case d.Action == Overlap && !w.running:
		w.running, w.started, w.dropped = true, int64(w.now), w.garbage
	}
}

// TestAnyPoint asks every policy about points that make no sense together:
// none may panic, allocate, or wake below 0.
func TestAnyPoint(t *testing.T) {
	amount := func(r *draw) int64 { // often an end of the range
		return []int64{0, 1, math.MaxInt64 / 4, r.Int64N(math.MaxInt64 / 4), r.Int64N(1 << r.IntN(62))}[r.IntN(5)]
	}
	for _, spec := range variants() {
		t.Run(spec.String(), func(t *testing.T) {
			check(t, func(r *draw) {
				p := spec.New()
				for range 1 + r.IntN(8) {
					if r.IntN(2) == 0 {
						p.Observe(Cycle{
							Start: time.Duration(amount(r)), Duration: time.Duration(amount(r)),
							Exposed: time.Duration(amount(r)), Freed: amount(r),
							Trigger:   Trigger(r.IntN(4)),
							LiveAfter: amount(r), Limit: amount(r),
						})
					}
					at := Point{
						Now: time.Duration(amount(r)), At: PointKind(r.IntN(2)),
						Sample:  pressure.Sample{Live: amount(r), Reserved: amount(r), Limit: amount(r) * int64(r.IntN(2))},
						Request: amount(r), Wait: time.Duration(amount(r)), WillBlock: (r.IntN(2) == 0),
						Allocated: amount(r), Freed: amount(r), LiveAfter: amount(r),
						Cost: time.Duration(amount(r)), Running: (r.IntN(2) == 0),
					}
					d := p.Decide(at)
					switch {
					case d.Wake < 0 || d.Action > Block || d.Reason == "":
						r.Fatalf("%+v: %+v", at, d)
					case d.Action == Overlap && at.Running:
						r.Fatalf("a second cycle: %+v", d)
					}
				}
				if p.String() != spec.String() {
					r.Fatalf("calls itself %s after a while", p)
				}
			})
		})
	}
}

// TestTheLargestAmount that a point can hold: every policy answers.
func TestTheLargestAmount(t *testing.T) {
	for _, spec := range variants() {
		p := spec.New()
		for _, at := range []Point{grow(ms, math.MaxInt64, 0, 0, 0, 1), grow(2*ms, math.MaxInt64-1, 1, 0, 0, 1), grow(3*ms, math.MaxInt64-70, 70, 0, 0, 1), grow(4*ms, 1, 1, 0, 0, math.MaxInt64)} {
			if d := p.Decide(at); d.Wake < 0 || d.Reason == "" {
				t.Errorf("%s: %+v", spec, d)
			}
		}
	}
}

// TestOneBusyMomentIsNoWork: a cycle whose processor time is far too high, because other processes ran in it, changes nothing.
func TestOneBusyMomentIsNoWork(t *testing.T) {
	for busy := range 4 {
		e := NewExpectation(2)
		e.See(1<<20, 100)
		first, usual := e.Work, Measured{Length: e.Cost, Work: 2 * e.Work, Processors: 2, Scan: 1 << 20, Tracked: 100}
		for i := range 4 {
			m := usual
			if i == busy {
				m.Work *= 100
			}
			e.Learn(m)
			if e.See(1<<20, 100); i > 0 && e.Work.Round(time.Microsecond) != first.Round(time.Microsecond) {
				t.Errorf("of %d cycles number %d was busy: the next takes %v, want %v", i+1, busy, e.Work, first)
			}
		}
	}
}

// TestDecideAllocates: deciding and observing are free of allocation.
func TestDecideAllocates(t *testing.T) {
	for _, spec := range variants() {
		p := spec.New()
		now := time.Duration(0)
		if n := testing.AllocsPerRun(200, func() {
			now += ms
			p.Decide(grow(now, 900*MB, MB, 300*MB, 500*MB, GB))
			p.Decide(wait(now, 900*MB, GB))
			p.Observe(Cycle{Start: now, Duration: ms, Freed: MB, LiveAfter: 500 * MB, Limit: GB})
		}); n != 0 {
			t.Errorf("%s allocates %g times", spec, n)
		}
	}
}

// A draw is a test with random numbers.
type draw struct {
	*testing.T
	*rand.Rand
}

// check runs f with 100 seeds; a failure names its own.
func check(t *testing.T, f func(*draw)) {
	for range 100 {
		seed, done := rand.Uint64(), false
		func() {
			defer func() {
				if !done {
					t.Logf("seed %d", seed)
				}
			}()
			f(&draw{t, rand.New(rand.NewPCG(seed, 0))})
			done = true
		}()
	}
}
