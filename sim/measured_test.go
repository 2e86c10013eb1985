package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A machine made of the base world's costs gives the base world's results where
// nothing but refusals collects. Times differ: in a machine's world the program does
// nothing else while it waits.
func TestMachineOfTheBaseWorldIsTheBaseWorld(t *testing.T) {
	w := sawtooth(t, 2000)
	cfg := Config{Limit: w.PeakReachable * 3 / 2, Cost: Fixed(10 * time.Millisecond), Ladder: Ladder{Factor: 2}}
	want := Run(w, policy.Spec{}.New(), cfg)
	cfg.Machine = MachineOf(cfg.Cost, cfg.Ladder)
	got := Run(w, policy.Spec{}.New(), cfg)
	got.MeanLive, got.MeanGarbage, got.Elapsed, got.GCBusy = want.MeanLive, want.MeanGarbage, want.Elapsed, want.GCBusy
	if got != want {
		t.Errorf("%+v\nbase %+v", got, want)
	}
}

// Each element alone moves what it is about.
func TestElementsOfAMachine(t *testing.T) {
	w := sawtooth(t, 2000) // 100 bytes each us, a wait of 300 ns after every tenth
	run := func(m Machine, text string) Result {
		m.Mark.Base = 2 * time.Microsecond
		return Run(w, policy.MustParse(text).New(), Config{Limit: 5000, Machine: &m, Seed: 7})
	}
	const beside = "threshold:0.5,overlap=true"
	never, overlap := run(Machine{}, "never"), run(Machine{}, beside)
	for name, ok := range map[string]bool{
		"ladder":      run(Machine{Ladder: time.Microsecond}, "never").ExposedPause == never.ExposedPause+time.Duration(never.RefusalCollections)*time.Microsecond,
		"start":       run(Machine{Start: time.Microsecond}, "never").MaxPause == never.MaxPause+time.Microsecond,
		"settle":      run(Machine{Settle: Linear{PerObject: 10}}, "never").ExposedPause > never.ExposedPause,
		"tracked":     run(Machine{Mark: Linear{PerObject: 10}}, "never").ExposedPause > never.ExposedPause,
		"sweep":       run(Machine{Sweep: Linear{Base: time.Second}}, "never").MaxPause > time.Millisecond,
		"after":       run(Machine{After: Curve{{At: 1, Factor: 2}}}, "never").ExposedPause == 2*never.ExposedPause,
		"noise":       run(Machine{Noise: Noise{1, 3}}, "never").MaxPause > never.MaxPause,
		"stall":       run(Machine{Stall: Stall{1, []float64{1e6, 1e6}}}, "never").ExposedPause == never.ExposedPause+time.Duration(never.RefusalCollections)*time.Millisecond,
		"some stall":  run(Machine{Stall: Stall{0.2, []float64{1e6, 2e6}}}, "never").ExposedPause < never.ExposedPause+time.Duration(never.RefusalCollections)*time.Millisecond,
		"stretch":     run(Machine{Stretch: 3}, beside).GCBusy > overlap.GCBusy,
		"no stretch":  run(Machine{Stretch: 3}, "never").GCBusy == never.GCBusy,
		"slowdown":    run(Machine{Slowdown: 1}, beside).Elapsed > overlap.Elapsed,
		"slowed":      run(Machine{Slowdown: 1}, beside).Slowed > 0 && overlap.Slowed == 0,
		"alloc":       run(Machine{Alloc: Linear{Base: 10 * time.Microsecond}}, "never").Elapsed > 2*never.Elapsed,
		"elastic":     run(Machine{Elastic: true}, "never").Elapsed < never.Elapsed,
		"waits":       run(Machine{Elastic: true, Waits: true}, "never").ExposedPause > run(Machine{Elastic: true}, "never").ExposedPause,
		"idle gap":    run(Machine{Stretch: 3, IdleGap: 1}, beside).GCBusy < run(Machine{Stretch: 3}, beside).GCBusy,
		"same seed":   run(Machine{Noise: Noise{1, 3}}, beside) == run(Machine{Noise: Noise{1, 3}}, beside),
		"nothing off": overlap.Collections > 0 && never.RefusalCollections > 0 && never.FailedAllocs == 0,
	} {
		if !ok {
			t.Errorf("%s is not as it should be", name)
		}
	}
}

// What is dropped before a mark begins is found.
func TestDropsCountUntilTheMarkBegins(t *testing.T) {
	w := sawtooth(t, 1000)
	run := func(start time.Duration) *Log {
		log := new(Log)
		Run(w, policy.MustParse("threshold:0.5,overlap=true").New(), Config{Limit: 5000, Machine: &Machine{Start: start, Mark: Linear{Base: 10}}, Log: log})
		return log
	}
	soon, late := run(1).Cycles[0], run(5 * time.Microsecond).Cycles[0]
	if late.Freed != soon.Freed+500 {
		t.Errorf("freed %d, and %d where a mark begins 5 us later", soon.Freed, late.Freed)
	}
}

// An allocation that fails is missing from then on, and its drop frees nothing.
func TestFailedAllocationsAreMissing(t *testing.T) {
	w := sawtooth(t, 100)
	r := Run(w, policy.Spec{}.New(), Config{Limit: 50, Machine: new(Machine)})
	if r.FailedAllocs != 100 || r.PeakLive != 0 {
		t.Errorf("%+v", r)
	}
}

// A stubborn memory lets an allocation in only after so many collections.
type stubborn struct {
	exactly
	wants int
}

func (m *stubborn) Alloc(object int32, bytes int64) bool {
	if object > 1 && m.wants > 0 {
		m.wants--
		return false
	}
	return m.exactly.Alloc(object, bytes)
}

// TestEachRefusalTellsWhatWasWanted: a policy is told with each cycle of the ladder how much would have been live.
func TestEachRefusalTellsWhatWasWanted(t *testing.T) {
	tr := &trace.Trace{Name: "refused"}
	for id := range uint64(2) {
		tr.Record(trace.Event{Kind: trace.Alloc, ID: id, Bytes: 30})
		tr.Record(trace.Event{Kind: trace.Drop, ID: id})
	}
	tr.Record(trace.Event{Kind: trace.Alloc, ID: 2, Bytes: 50})
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &noted{Policy: policy.Spec{}.New()}
	r := Run(w, p, Config{Machine: &Machine{Mark: Linear{Base: 10}}, Memory: &stubborn{exactly{w: w}, 2}})
	if r.FailedAllocs != 0 || len(p.told) != 2 || p.told[0].Wanted != 60+50 || p.told[1].Wanted != 50 || p.told[0].Freed != 60 {
		t.Errorf("told %+v: %+v", p.told, r)
	}
}
