package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// whim is a policy of the tests: it collects by a hash of what it sees, and
// asks to be left alone up to some level, as real policies do.
type whim struct {
	seed     uint64
	observed int
	actions  []policy.Action
}

func (p *whim) Decide(at policy.Point) policy.Decision {
	h := p.seed ^ uint64(at.Now)*0x9e3779b97f4a7c15 ^ uint64(at.Sample.Live)*0xbf58476d1ce4e5b9 ^ uint64(p.observed)<<7
	h ^= h >> 29
	h *= 0x94d049bb133111eb
	d := policy.Decision{Action: p.actions[h>>33%uint64(len(p.actions))]}
	if h>>60 < 8 {
		d.Wake = at.Sample.Live + int64(h>>50&0xff)
	}
	return d
}
func (p *whim) Observe(policy.Cycle) { p.observed++ }
func (p *whim) String() string       { return fmt.Sprintf("whim:%d", p.seed) }

// genTrace draws a small trace with drops, explicit frees and syncs.
func genTrace(t *random, explicit bool) *trace.Trace {
	return genEvents(t, explicit, between(t, 1, 60))
}

func genEvents(t *random, explicit bool, n int) *trace.Trace {
	tr := &trace.Trace{Name: "random"}
	var now int64
	var live []trace.Event
	for id := uint64(1); len(tr.Events) < n; id++ {
		now += between[int64](t, 0, 20)
		switch k := between(t, 0, 9); {
		case k < 5 || len(tr.Events) == 0:
			e := trace.Event{Time: now, ID: id, Kind: trace.Alloc, Bytes: between[int64](t, 0, 40)}
			tr.Record(e)
			live = append(live, e)
		case k < 8 && len(live) > 0:
			i := between(t, 0, len(live)-1)
			e := live[i]
			live = append(live[:i], live[i+1:]...)
			e.Time, e.Kind = now, trace.Drop
			if explicit && t.coin() {
				e.Kind = trace.Free
			}
			tr.Record(e)
		default:
			w := between[int64](t, 0, 30)
			tr.Record(trace.Event{Time: now, Kind: trace.Sync, Duration: time.Duration(w)})
			if t.coin() {
				now += w
			}
		}
	}
	return tr
}

func genWorkload(t *random, explicit bool) *Workload {
	w, err := Compile(genTrace(t, explicit), pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func genConfig(t *random, w *Workload) Config {
	cfg := Config{
		Limit:  int64((0.8 + t.Float64()*(4-0.8)) * float64(w.PeakReachable)),
		Cost:   Fixed(time.Duration(between[int64](t, 0, 40))),
		Ladder: Ladder{Factor: 2},
	}
	if t.coin() {
		cfg.Cost.PerTracked, cfg.Cost.PerFreed = 0.7, 1.3
	}
	if t.coin() {
		cfg.WaitNoise, cfg.Seed = 0.5, t.Uint64()
	}
	if t.coin() {
		cfg.Cost.Slowdown = (0 + t.Float64()*(2-0))
	}
	return cfg
}

func genWhim(t *random, actions ...policy.Action) func() *whim {
	seed := t.Uint64()
	return func() *whim { return &whim{seed: seed, actions: actions} }
}

func TestEnginesAgree(t *testing.T) {
	check(t, 100, func(t *random) {
		w := genWorkload(t, t.coin())
		cfg := genConfig(t, w)
		p := genWhim(t, policy.Skip, policy.Skip, policy.Overlap, policy.Block)
		fast, slow := &Log{KeepDecisions: true}, &Log{KeepDecisions: true}
		cfg.Log = fast
		a := Run(w, p(), cfg)
		cfg.Log = slow
		b := runEvents(w, p(), cfg)
		if a != b {
			t.Fatalf("per decision %+v\nper event    %+v", a, b)
		}
		if x, y := fmt.Sprintf("%+v", *fast), fmt.Sprintf("%+v", *slow); x != y {
			t.Fatalf("logs differ\n%s\n%s", x, y)
		}
	})
}

func TestConservation(t *testing.T) {
	check(t, 100, func(t *random) {
		tr := genTrace(t, false)
		w, err := Compile(tr, pressure.Host)
		if err != nil {
			t.Fatal(err)
		}
		cfg := genConfig(t, w)
		log := &Log{}
		cfg.Log = log
		r := Run(w, genWhim(t, policy.Skip, policy.Skip, policy.Overlap, policy.Block)(), cfg)

		var exposed, longest time.Duration
		for _, p := range log.Pauses {
			exposed += p.Length
			longest = max(longest, p.Length)
		}
		if exposed != r.ExposedPause || longest != r.MaxPause || r.Elapsed != r.Span+exposed+r.Slowed || r.Delay() != r.Elapsed-r.Span {
			t.Fatalf("pauses sum to %v, longest %v: %+v", exposed, longest, r)
		}
		var freed int64
		for _, c := range log.Cycles {
			freed += c.Freed
			if c.Freed < 0 || c.LiveAfter < 0 {
				t.Fatalf("cycle %+v", c)
			}
		}
		if freed > w.end.dropped {
			t.Fatalf("freed %d of %d dropped", freed, w.end.dropped)
		}
		if r.FailedAllocs == 0 && cfg.Limit > 0 && r.PeakLive > cfg.Limit {
			t.Fatalf("peak %d above the limit %d without a failure", r.PeakLive, cfg.Limit)
		}
		if cfg.Limit >= w.PeakReachable && r.FailedAllocs != 0 {
			t.Fatalf("%d failures though %d fits into %d", r.FailedAllocs, w.PeakReachable, cfg.Limit)
		}
		if r.MeanLive < r.MeanGarbage-1e-6 || r.MeanGarbage < -1e-6 || r.MeanLive > float64(r.PeakLive)+1e-6 {
			t.Fatalf("means %+v", r)
		}
	})
}

func TestSeriesEndsWithTheTotals(t *testing.T) {
	check(t, 100, func(t *random) {
		w := genWorkload(t, true)
		cfg := genConfig(t, w)
		log := &Log{}
		cfg.Log = log
		r := Run(w, genWhim(t, policy.Skip, policy.Block, policy.Overlap)(), cfg)
		levels := w.Series(log, r.Elapsed, 10)
		var peak int64
		for i, x := range levels {
			peak = max(peak, x.Live)
			if x.Garbage < 0 || x.Live < x.Garbage || i > 0 && x.At < levels[i-1].At {
				t.Fatalf("level %d of %v", i, levels)
			}
		}
		if n := len(w.ops); n > 0 && levels[len(levels)-1].At != time.Duration(w.ops[n-1].time)+r.Delay() {
			t.Fatalf("series ends at %v, the program was delayed by %v", levels[len(levels)-1].At, r.Delay())
		}
		if peak != r.PeakLive {
			t.Fatalf("series peaks at %d, run at %d", peak, r.PeakLive)
		}
	})
}

// TestASamplerKeepsTheEndsAndExtremesOfEachSlot: levels 10 ns apart, in slots of 100 ns.
func TestASamplerKeepsTheEndsAndExtremesOfEachSlot(t *testing.T) {
	var all []Level
	for i, live := range []int64{5, 9, 9, 5, 1, 1, 5, 4, 4, 3, 3, 3, 7, 3} {
		all = append(all, Level{At: time.Duration(i * 10), Live: live})
	}
	var got [][2]int64
	s := sampler{slot: 100}
	for _, l := range all {
		s.add(l)
	}
	for _, x := range s.flush() {
		got = append(got, [2]int64{int64(x.At), x.Live})
	}
	want := [][2]int64{{0, 5}, {10, 9}, {40, 1}, {90, 3}, {100, 3}, {120, 7}, {130, 3}}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// TestCompiledCounts: what a workload says of itself.
func TestCompiledCounts(t *testing.T) {
	tr := new(trace.Trace)
	for _, e := range []trace.Event{
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 10},
		{Time: 1, Kind: trace.Alloc, ID: 2, Bytes: 20},
		{Time: 2, Kind: trace.Alloc, ID: 3, Bytes: 30},
		{Time: 3, Kind: trace.Free, ID: 1, Aux: trace.FreeExplicit},
		{Time: 4, Kind: trace.Free, ID: 2, Aux: trace.FreeCycle}, // it was garbage
		{Time: 5, Kind: trace.Drop, ID: 3},
		{Time: 6, Kind: trace.Free, ID: 3, Aux: trace.FreeCycle}, // whose drop was seen
		{Time: 7, Kind: trace.Sync, Duration: 9},
	} {
		tr.Record(e)
	}
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	if w.Allocs != 3 || w.Drops != 3 || w.Syncs != 1 || w.AllocatedBytes != 60 || w.Wait != 9 || w.Span != 7 || w.PeakReachable != 60 {
		t.Errorf("%+v", w)
	}
	if r := Run(w, policy.Spec{}.New(), Config{}); math.Abs(r.MeanGarbage-(3*20+2*30)/7.0) > 1e-9 || r.PeakLive != 60 {
		t.Errorf("only the object that was freed by hand is no garbage: %+v", r)
	}
}
