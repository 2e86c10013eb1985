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

// TestMachineStepByStep walks the machine's world by hand: a mark begins after 10 ns and
// takes 100, settling 5 for each object, the ladder 50 more; waits are elastic.
//
//	t    event     now  what happens                                           live
//	0    alloc 60    0                                                           60
//	10   drop 60    10
//	20   alloc 30   20  the policy blocks: 115 ns, to 135                        30
//	50   sync 100  165  115 ns held are 100 of the wait: it is over; 15 later
//	300  sync 40   315  nothing was learned; takes 40: that is expected now
//	400  sync 80   415  expected 40; now 40 + 40/4
//	500  sync 40   515  expected 50
func TestMachineStepByStep(t *testing.T) {
	tr := &trace.Trace{Name: "machine"}
	for _, e := range []trace.Event{
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 60},
		{Time: 10, Kind: trace.Drop, ID: 1},
		{Time: 20, Kind: trace.Alloc, ID: 2, Bytes: 30},
		{Time: 50, Kind: trace.Sync, Duration: 100},
		{Time: 300, Kind: trace.Sync, Duration: 40},
		{Time: 400, Kind: trace.Sync, Duration: 80},
		{Time: 500, Kind: trace.Sync, Duration: 40},
	} {
		tr.Record(e)
	}
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	log := &Log{KeepDecisions: true}
	m := &Machine{Start: 10, Mark: Linear{Base: 100}, Settle: Linear{PerObject: 5}, Ladder: 50, Elastic: true}
	got := Run(w, &script{actions: []policy.Action{policy.Skip, policy.Block, policy.Skip, policy.Skip, policy.Skip, policy.Skip}}, Config{Limit: 100, Machine: m, Log: log})
	if got.Collections != 1 || got.ExposedPause != 115 || got.MaxPause != 115 || got.GCBusy != 115 || got.PeakLive != 60 {
		t.Errorf("%+v", got)
	}
	type seen struct{ now, wait time.Duration }
	want := []seen{{0, 0}, {20, 0}, {165, 0}, {315, 0}, {415, 40}, {515, 50}}
	for i, d := range log.Decisions {
		if i >= len(want) || d.Now != want[i].now || d.Wait != want[i].wait {
			t.Errorf("point %d is at %v and expects a wait of %v, want %+v", i, d.Now, d.Wait, want)
		}
	}
	if len(log.Cycles) != 1 || log.Cycles[0].Freed != 60 || log.Cycles[0].Start != 20 || log.Cycles[0].Duration != 115 || log.Cycles[0].LiveAfter != 0 {
		t.Errorf("cycles %+v", log.Cycles)
	}
}

func TestParseLadder(t *testing.T) {
	for text, want := range map[string]Ladder{"2x": {Factor: 2}, "0x": {}, "0.5x": {Factor: 0.5}, "20ms": {Fixed: 20 * time.Millisecond}, "1000000x": {Factor: 1e6}} {
		got, err := ParseLadder(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := ParseLadder(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	for _, text := range []string{"", "x", "-1x", "1000001x", "NaNx", "2", "-5ms", "two"} {
		if got, err := ParseLadder(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// A cycle takes longer or shorter by how long ago the last one ended.
func TestACycleDependsOnTheLastOne(t *testing.T) {
	c := Curve{{At: time.Millisecond, Factor: 0.5}, {At: 100 * time.Millisecond, Factor: 1.5}}
	for d, want := range map[time.Duration]float64{
		0: 0.5, time.Millisecond: 0.5, 10 * time.Millisecond: 1, 100 * time.Millisecond: 1.5, math.MaxInt64: 1.5,
	} {
		if got := c.Of(d); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %v: %v, want %v", d, got, want)
		}
	}
	if got := (Curve)(nil).Of(5); got != 1 {
		t.Errorf("no curve: %v", got)
	}
}

// A stall takes as long on a machine that is slower.
func TestStallsOfAMachine(t *testing.T) {
	m := &Machine{Mark: Linear{Base: 100}, Stall: Stall{Share: 0.5, Length: []float64{5, 7}}}
	slow, r := m.Times(2), rand.New(rand.NewPCG(1, 2))
	stalled := 0
	for range 1000 {
		if d := slow.Stall.draw(r); d != 0 {
			stalled++
			if d < 5 || d > 7 {
				t.Fatalf("a stall of %v", d)
			}
		}
	}
	if stalled < 400 || stalled > 600 {
		t.Errorf("%d of 1000 stall", stalled)
	}
}

// TestTheLadderOfAMachineBacksOff: beside 60 of 100 bytes that are reachable, collections free 5 bytes each where 46 are wanted. Each after
// the first that frees too little waits for one cycle more, then two, four, and eight at most; one that frees enough ends that.
func TestTheLadderOfAMachineBacksOff(t *testing.T) {
	tr := &trace.Trace{Name: "futile"}
	id := uint64(1)
	alloc := func(bytes int64) {
		tr.Record(trace.Event{Kind: trace.Alloc, ID: id, Bytes: bytes})
		id++
	}
	drop := func(id uint64) { tr.Record(trace.Event{Kind: trace.Drop, ID: id}) }
	alloc(60)
	for i := range 7 {
		alloc(5)
		drop(id - 1)
		if i == 6 {
			drop(1)
		}
		alloc(46)
	}
	alloc(60) // does not fit beside 46
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	log := new(Log)
	r := Run(w, policy.Spec{}.New(), Config{Limit: 100, Machine: &Machine{Mark: Linear{Base: 100}, Ladder: 50}, Log: log})
	var got []time.Duration
	for _, p := range log.Pauses {
		got = append(got, p.Length)
	}
	want := []time.Duration{150, 250, 350, 550, 950, 950, 950, 150}
	if !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v: %+v", got, want, r)
	}
}

// TestASweepIsPaidOff: a cycle waits for what is left of the last one's sweep, which goes on beside the program. The mark takes 100 ns, the
// sweep 1,000.
func TestASweepIsPaidOff(t *testing.T) {
	tr := &trace.Trace{Name: "sweep"}
	for _, at := range []int64{0, 300, 5000} { // of program between the cycles
		tr.Record(trace.Event{Time: at, Kind: trace.Sync, Duration: 0})
	}
	tr.Record(trace.Event{Time: 5000, Kind: trace.Alloc, ID: 1, Bytes: 1})
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	log := new(Log)
	block := []policy.Action{policy.Block, policy.Block, policy.Block, policy.Skip}
	Run(w, &script{actions: block}, Config{Limit: 100, Machine: &Machine{Mark: Linear{Base: 100}, Sweep: Linear{Base: 1000}}, Log: log})
	var got []time.Duration
	for _, c := range log.Cycles {
		got = append(got, c.Duration)
	}
	if want := []time.Duration{100, 100 + 700, 100}; !slices.Equal(got, want) {
		t.Errorf("cycles take %v, want %v", got, want)
	}
}

// TestWasted: a cycle is in vain that frees less than a hundredth of what was live.
func TestWasted(t *testing.T) {
	cycle := func(freed, left int64) Collected {
		return Collected{Cycle: policy.Cycle{Freed: freed, LiveAfter: left}}
	}
	l := Log{Cycles: []Collected{cycle(0, 0), cycle(0, 1), cycle(99, 9901), cycle(100, 9900), cycle(100, 9950), cycle(5, 5)}}
	if n := l.Wasted(); n != 3 {
		t.Errorf("%d cycles were in vain, want those of 0 of 1, 99 of 10,000 and 100 of 10,050", n)
	}
}
