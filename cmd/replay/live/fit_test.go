package live

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// near reports whether got is within a share of want.
func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// same fails if the JSON of a fit is not the one that it was, to the last bit. The tests of fits check that it is right too.
func same(t *testing.T, want string, fit ...any) {
	t.Helper()
	text, err := json.Marshal(fit)
	if got := fmt.Sprintf("%.4x", sha256.Sum256(text)); runtime.GOARCH == "amd64" && (err != nil || got != want) { // others round otherwise
		t.Errorf("the fit is now %s: %s, %v", got, text, err)
	}
}

// A fit finds the machine of made-up cycles, their noise, and their stalls of 20 ms.
func TestFitFindsTheMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []observation
	for range 600 {
		o := observation{Gap: time.Duration(1e5 * math.Exp(8*r.Float64())), Tracked: r.IntN(5000), Objects: r.IntN(2000), Bytes: r.Int64N(1 << 30), Start: 3e5}
		length := 2e6 + 200*float64(o.Tracked) + 3000*float64(o.Objects) + 1e6*float64(o.Bytes)/(1<<30)
		length *= 0.9 + 0.2*r.Float64()
		if r.IntN(25) == 0 {
			length += 20e6
		}
		if r.IntN(2) == 0 {
			o.Working = time.Duration(1.75 * length)
		} else {
			o.Held = time.Duration(length)
		}
		all = append(all, o)
	}
	m, fit, err := fitMachine(16<<20, all)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "c46eead0", m, fit)
	if m.Stall.Share == 0 {
		t.Fatal("no stalls")
	}
	for name, c := range map[string]struct{ got, want, share float64 }{
		"cycle":    {float64(m.Cycle(0, 0, 0)), 2e6, 0.1},
		"tracked":  {m.Mark.PerObject, 200, 0.15},
		"freed":    {m.Settle.PerObject, 3000, 0.05},
		"start":    {float64(m.Start), 3e5, 0},
		"stretch":  {m.Stretch, 1.75, 0},
		"last":     {m.Noise[len(m.Noise)-1], 1.1, 0.05},
		"stalls":   {m.Stall.Share, 1. / 25, 0.5},
		"a stall":  {m.Stall.Length[len(m.Stall.Length)/2], 20e6, 0.05},
		"middle":   {m.Noise[len(m.Noise)/2], 1, 0.03},
		"cycles":   {float64(fit.Cycles), 300, 0},
		"together": {1 / fit.Total, 1.13, 0.05}, // 20 ms in 25 times 6.1
	} {
		if !near(c.got, c.want, c.share+1e-9) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if fit.Half > 0.08 || fit.Most > 0.2 {
		t.Errorf("%v", fit)
	}
	if _, _, err := fitMachine(0, all[:5]); err == nil {
		t.Error("five cycles are enough")
	}
	for i := range all { // the machine is fitted to cycles of 1 ms, and the others take twice as long
		all[i] = observation{Held: time.Duration(1+i%2) * time.Millisecond, Gap: time.Second}
	}
	if _, fit, err := fitMachine(0, all); err != nil || !near(fit.Total, 0.5, 0.01) || !near(fit.Half, 1, 0.01) || !near(fit.Most, 1, 0.01) {
		t.Errorf("of other cycles: %v, %v", fit, err)
	}
}

// The costs of allocations are found: 1 us, and 20 us and 5 us for each chunk if chunks are mapped. The ladder takes 300 us more.
func TestCostsOfAllocations(t *testing.T) {
	var p probe
	for i := range 100 {
		chunks := int64(i % 5)
		took := time.Microsecond
		if chunks > 0 {
			took += time.Duration(20+5*chunks) * time.Microsecond
		}
		p.allocs = append(p.allocs, allocation{took, chunks})
		p.ladders = append(p.ladders, allocation{took + 300*time.Microsecond, chunks})
	}
	var m sim.Machine
	if p.costs(&m); m.Alloc.Base != time.Microsecond || !near(float64(m.Map.Base), 20e3, 0.01) || !near(m.Map.PerObject, 5e3, 0.01) || !near(float64(m.Ladder), 301e3, 0.01) {
		t.Errorf("%+v", m)
	}
}

// The work of several programs is the sum of theirs: each stint counts once, with the time that a cycle overlapped.
func TestWorkAddsUp(t *testing.T) {
	cycles := []sim.Collected{{Cycle: policy.Cycle{Start: 10, Duration: 10}}, {Cycle: policy.Cycle{Start: 40, Duration: 10}}}
	stints := []stint{{0, 4, 1}, {4, 9, 2}, {9, 30, 3}, {31, 36, -1}, {36, 39, 5}} // the cycles run from 5 to 15 and from 35 to 45
	want := Work{Alone: 4, LostAlone: 1, Beside: 34, LostBeside: 9, Overlap: 14}
	var sum Work
	for _, s := range stints {
		one := workOf([]stint{s}, cycles, 5)
		sum.add(&one)
	}
	if all := workOf(stints, cycles, 5); all != want || sum != want {
		t.Errorf("%+v, and added up %+v, want %+v", all, sum, want)
	}
}

// The sweep of the last cycle is found, and is not part of the time until the mark starts.
func TestFitFindsTheSweep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all []observation
	for range 200 {
		o := observation{Gap: time.Duration(r.IntN(8)) * time.Millisecond}
		o.Start = 3e5 + max(0, 64e5-o.Gap)
		o.Held = 4*time.Millisecond + max(0, 64e5-o.Gap) + time.Duration(r.IntN(1e5))
		all = append(all, o)
	}
	m, fit, err := fitMachine(0, all)
	same(t, "64c31dbb", m, fit)
	if err != nil || m.Sweep.Base != 64e5 || m.Stretch != 1 || m.Start != 3e5 || !near(float64(m.Cycle(0, 0, 0)), 4e6, 0.05) {
		t.Errorf("%+v, %v", m, err)
	}
}

// The effect of the time since the last cycle on a mark is found. It is not a cost of the
// objects, though more are released after a longer time.
func TestFitFindsWhatTheGapDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	want := sim.Curve{{At: time.Millisecond, Factor: 0.9}, {At: 100 * time.Millisecond, Factor: 1.2}}
	var all []observation
	for range 800 {
		gap := time.Duration(between(r, 1e5, 3e8))
		o := observation{Gap: gap, Objects: int(between(r, 1, 20) * float64(gap) / 1e6), Start: -1}
		o.Held = time.Duration((4e6*want.Of(gap) + 500*float64(o.Objects)) * (0.97 + 0.06*r.Float64()))
		all = append(all, o)
	}
	m, fit, err := fitMachine(0, all)
	same(t, "d87c8fda", m, fit)
	if err != nil || fit.Half > 0.03 || !near(m.Settle.PerObject, 500, 0.05) {
		t.Fatalf("%+v, %v, %v", m, fit, err)
	}
	for _, gap := range []time.Duration{3e5, 1e6, 1e7, 1e8} {
		if got := float64(m.Cycle(0, 0, 0)) * m.After.Of(gap); !near(got, 4e6*want.Of(gap), 0.04) {
			t.Errorf("after %v a cycle takes %v", gap, time.Duration(got))
		}
	}
}

// Calibrate finds the costs of pointers, objects and slow memory. On a busy machine it cannot
// tell in which part of a cycle each costs.
func TestCalibrate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	slow := Memory{Upstream: slowRelease{}, Direct: true, Touch: 1}
	m, fit, err := Calibrate(t.Context(), Calibration{Heap: 8 << 20, Memory: slow, Time: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	pointers := m.Start + m.Mark.Base + m.Sweep.Base
	object := m.Mark.PerObject + m.Sweep.PerObject + m.Settle.PerObject
	if pointers <= 0 || object < float64(20*time.Microsecond) || m.Alloc.Base <= 0 || m.Heap != 8<<20 || m.Pace < m.Start || fit.Cycles < minObservations/2 || fit.Most <= 0 {
		t.Errorf("%+v, %+v", m, fit)
	}
	cal := Calibration{Heap: 8 << 20, Memory: slow, Time: time.Millisecond}
	now, err := Pace(t.Context(), cal, m)
	if err != nil || now <= 0 {
		t.Errorf("cycles take %v times as long as when calibrated; %v", now, err)
	}
	if pace, err := Pace(t.Context(), cal, new(sim.Machine)); pace != 1 || err != nil {
		t.Errorf("without a pace to go by: %v, %v", pace, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Calibrate(ctx, Calibration{}); err == nil {
		t.Error("a cancelled calibration went on")
	}
}

// The head of a recording is the part before a time, counted from the first event.
func TestHead(t *testing.T) {
	tr := steady(30)
	first := time.Duration(tr.Events[0].Time)
	for d, want := range map[time.Duration]int{0: len(tr.Events), time.Nanosecond: 1, 50 * time.Microsecond: 1, 50*time.Microsecond + 1: 2, time.Hour: len(tr.Events)} {
		if got := Head(tr, d); len(got.Events) != want || time.Duration(got.Events[0].Time) != first {
			t.Errorf("%v: %d events, want %d", d, len(got.Events), want)
		}
	}
	if got := Head(&trace.Trace{}, time.Second); len(got.Events) != 0 {
		t.Errorf("of nothing: %v", got.Events)
	}
}

// Computed work takes about the recorded time if nothing runs beside it. Time that it loses is
// part of the time of the run.
func TestComputedWork(t *testing.T) {
	var got Report
	for range 20 { // on a busy machine a run may be late from end to end, and then it has nothing to compute
		var err error
		got, err = Run(t.Context(), steady(100), Config{Space: pressure.Device(0), Memory: Memory{Direct: true}, Speed: 1, Compute: true})
		if err != nil || got.Elapsed < got.Span*9/10 || got.Work.Beside != 0 {
			t.Fatalf("took %v of %v, %+v, %v", got.Elapsed, got.Span, got.Work, err)
		}
		if got.Work.Alone > 0 {
			return
		}
	}
	t.Errorf("it never computed: took %v of %v, %+v", got.Elapsed, got.Span, got.Work)
}

// A device does queued work during a pause, so that the next wait is shorter: at most half as
// long as recorded, in half of all waits.
func TestElasticWaitsAreShorterAfterAPause(t *testing.T) {
	tr := steady(200) // twenty waits of 1 ms
	cfg := Config{Limit: 6 << 20, Space: pressure.Device(0), Memory: Memory{Upstream: slowRelease{}, Direct: true}, Speed: 1}
	var launched time.Duration
	cfg.Launch = func(d time.Duration) error { launched += d; return nil }
	short := func() int64 {
		waits := &shortWaits{begin: time.Now()}
		cfg.Recorder = waits
		if _, err := Run(t.Context(), tr, cfg); err != nil {
			t.Fatal(err)
		}
		return waits.n.Load()
	}
	if n := short(); n >= 10 || launched > 0 {
		t.Errorf("rigid: %d short waits, %v launched", n, launched)
	}
	cfg.Elastic = true
	limit := cfg.Limit
	for tries := 1; ; tries++ { // without a limit the device has work from end to end
		cfg.Limit, cfg.Speed, launched = 0, 0.25/float64(tries), 0 // on a busy machine a fast run is late
		short()
		if span := float64(tr.Events[len(tr.Events)-1].Time) / cfg.Speed; near(float64(launched), span, 0.1) {
			break
		} else if tries == 12 {
			t.Fatalf("%v launched, in %v", launched, time.Duration(span))
		}
	}
	cfg.Limit, cfg.Speed = limit, 1
	for end := time.Now().Add(time.Minute); ; {
		launched = 0
		n := short()
		if n >= 10 && launched >= 10*time.Millisecond {
			return
		}
		if time.Now().After(end) { // not all runs are late from end to end
			t.Fatalf("elastic: %d short waits, %v launched", n, launched)
		}
	}
}

// shortWaits counts waits of half a millisecond at most.
type shortWaits struct {
	begin time.Time
	n     atomic.Int64
}

func (w *shortWaits) Record(e trace.Event) {
	if e.Kind == trace.Sync && e.Duration <= time.Millisecond/2 {
		w.n.Add(1)
	}
}
func (w *shortWaits) Label(string) uint32 { return 0 }
func (w *shortWaits) Now() time.Duration  { return time.Since(w.begin) }

// slowRelease takes 30 us to take memory back.
type slowRelease struct{ pool.Host }

func (s slowRelease) Release(addr uintptr, bytes int64, stream uint32) error {
	for end := time.Now().Add(30 * time.Microsecond); time.Now().Before(end); {
	}
	return s.Host.Release(addr, bytes, stream)
}
