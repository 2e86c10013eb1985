package sim

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestCompileRefuses: each fault of a trace, with the event that has it.
func TestCompileRefuses(t *testing.T) {
	alloc := func(id uint64, bytes int64) trace.Event { return trace.Event{Kind: trace.Alloc, ID: id, Bytes: bytes} }
	wait := func(d time.Duration) trace.Event { return trace.Event{Kind: trace.Sync, Duration: d} }
	other := trace.Event{Kind: trace.Alloc, ID: 1, Bytes: -1, Space: 5, Time: -9}
	for want, events := range map[string][]trace.Event{
		"event 2: time goes backwards: 4 ns after 5 ns":                                                 {{Time: 5, ID: 1}, other, {Time: 4, Kind: trace.Sync}},
		"event 0: allocation of -1 bytes after 0 in all is out of range":                                {alloc(1, -1)},
		"event 1: allocation of 2305843009213693948 bytes after 4 in all is out of range":               {alloc(1, 4), alloc(2, largest-3)},
		"event 2: object 7 is allocated twice":                                                          {other, alloc(7, 1), alloc(7, 1)},
		"event 0: a wait of -1 ns after 0 in all is out of range":                                       {wait(-1)},
		"event 2: a wait of 2305843009213693948 ns after 4 in all is out of range":                      {alloc(1, 1), wait(4), wait(largest - 3)},
		"event 0: drop of object 3, which is not there":                                                 {{Kind: trace.Drop, ID: 3}},
		"event 2: drop of object 3, which is not there":                                                 {alloc(3, 1), {Kind: trace.Free, ID: 3}, {Kind: trace.Drop, ID: 3}},
		"no allocations in host":                                                                        {wait(1), other},
		"event 3: allocation of 1 bytes after 2305843009213693951 in all is out of range, freed or not": {alloc(1, largest), {Kind: trace.Free, ID: 1}, wait(1), alloc(2, 1)},
	} {
		_, err := Compile(&trace.Trace{Name: "bad", Events: events}, pressure.Host)
		want, _, _ = strings.Cut(want, ", freed")
		if err == nil || err.Error() != "sim: bad: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	most := []trace.Event{alloc(1, 4), wait(largest - 4), alloc(2, largest-4), wait(4), {Kind: trace.Free, ID: 9}}
	if w, err := Compile(&trace.Trace{Events: most}, pressure.Host); err != nil || w.AllocatedBytes != largest || w.Wait != largest {
		t.Errorf("as many as there may be: %v", err)
	}
}

func TestSpaceOf(t *testing.T) {
	of := func(k trace.Kind, s pressure.Space, bytes int64) trace.Event {
		return trace.Event{Kind: k, Space: s, Bytes: bytes}
	}
	for want, events := range map[pressure.Space][]trace.Event{
		0:   nil,
		1:   {of(trace.Alloc, 1, 5), of(trace.Alloc, 2, 5)},
		3:   {of(trace.Alloc, 2, 5), of(trace.Alloc, 3, 3), of(trace.Alloc, 3, 3), of(trace.Free, 2, 5), of(trace.Reserve, 2, 9)},
		255: {of(trace.Alloc, 0, 5), of(trace.Alloc, 255, 6)},
	} {
		if got := SpaceOf(&trace.Trace{Events: events}); got != want {
			t.Errorf("the most bytes are in %v, want %v", got, want)
		}
	}
}

// TestDeathsThatWereSeen: a free that a cycle found is a drop, seen late, unless the drop was seen before.
func TestDeathsThatWereSeen(t *testing.T) {
	tr := &trace.Trace{Events: []trace.Event{
		{Kind: trace.Alloc, ID: 1}, {Kind: trace.Alloc, ID: 2}, {Kind: trace.Alloc, ID: 3}, {Kind: trace.Drop, ID: 1},
		{Kind: trace.Free, ID: 1, Aux: trace.FreeCycle}, {Kind: trace.Free, ID: 2, Aux: trace.FreeCycle}, {Kind: trace.Free, ID: 3, Aux: trace.FreeExplicit},
	}}
	if w, err := Compile(tr, pressure.Host); err != nil || w.SeenDeaths != 1 || w.Drops != 3 {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestLadderOf(t *testing.T) {
	for _, c := range []struct {
		ladder Ladder
		want   time.Duration
	}{{Ladder{}, 0}, {Ladder{Factor: 2.5}, 250}, {Ladder{Fixed: 7}, 7}, {Ladder{Fixed: 7, Factor: 2}, 7}} {
		if got := c.ladder.Of(100); got != c.want {
			t.Errorf("%v takes %d, want %d", c.ladder, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"1000001x": `sim: ladder "1000001x": want a factor from 0x to 1000000x`,
		"2":        `sim: ladder "2": want a duration like 20ms or a multiple of the cycle like 2x`,
	} {
		if _, err := ParseLadder(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if l, err := ParseLadder("0s"); err != nil || l != (Ladder{}) {
		t.Errorf("no ladder: %v, %v", l, err)
	}
}

// Each term of a cost, alone and with the others; halves are rounded.
func TestCostOf(t *testing.T) {
	for _, c := range []struct {
		cost Cost
		want time.Duration // of 4 objects, 3 of them dead
	}{
		{Cost{}, 0}, {Fixed(9), 9}, {Cost{PerMiB: 5}, 0}, {Cost{HeapMiB: 2}, 0}, {Cost{PerMiB: 5, HeapMiB: 2}, 10},
		{Cost{PerTracked: 2}, 8}, {Cost{PerFreed: 2}, 6}, {Cost{Base: 100, PerMiB: 5, HeapMiB: 2, PerTracked: 2, PerFreed: 0.5, Slowdown: 3}, 120},
	} {
		if got := c.cost.Of(4, 3); got != c.want {
			t.Errorf("%+v takes %d, want %d", c.cost, got, c.want)
		}
	}
}

// TestMachinesMadeOfOthers: of costs, of another machine at another time; and back.
func TestMachinesMadeOfOthers(t *testing.T) {
	cost := Cost{Base: 1000, PerMiB: 50, HeapMiB: 2, PerTracked: 3, PerFreed: 5, Slowdown: 0.5}
	m := MachineOf(cost, Ladder{Factor: 3})
	want := &Machine{About: "the base world's costs", Heap: 2 << 20, Mark: Linear{1000, 3, 50 * 1024}, Settle: Linear{PerObject: 5}, Ladder: 2200, Slowdown: 0.5, Sees: 0.5}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
	if got := MachineOf(cost, Ladder{Factor: 0.5}).Ladder; got != 0 {
		t.Errorf("a ladder shorter than its cycle takes %v beside it", got)
	}
	if got := m.Cycle(7, 4, 9); got != cost.Of(7, 4) {
		t.Errorf("a cycle takes %v, want %v", got, cost.Of(7, 4))
	}
	if got := m.Cost(); got != (Cost{Base: 1100, PerTracked: 3, PerFreed: 5, Slowdown: 0.5}) {
		t.Errorf("%+v", got)
	}
	full := &Machine{
		About: "x", Start: 10, Mark: Linear{20, 3, 4}, Sweep: Linear{30, 5, 6}, Settle: Linear{40, 7, 1 << 30}, Ladder: 50, Map: Linear{60, 9, 10}, Heap: 1 << 30,
		After: Curve{{1, 2}}, Stretch: 3, Slowdown: 4, Sees: 5, Cores: 6, IdleGap: 70, Alloc: Linear{80, 11, 12}, Waits: true, Elastic: true,
		Noise: Noise{1, 2}, Stall: Stall{0.5, []float64{1, 2}}, Pace: 90,
	}
	if got := full.Cycle(2, 3, 4); got != 10+(20+2*3+4)+(40+3*7+4) {
		t.Errorf("a cycle takes %d", got)
	}
	twice := *full
	twice.Start, twice.Mark, twice.Sweep, twice.Settle, twice.Ladder, twice.Pace = 20, Linear{40, 6, 8}, Linear{60, 10, 12}, Linear{80, 14, 2 << 30}, 100, 180
	got := full.Times(2)
	if !reflect.DeepEqual(got, &twice) {
		t.Errorf("%+v, want %+v", got, twice)
	}
	if got.Noise[0] = 7; full.Noise[0] != 1 {
		t.Error("a machine shares its noise with another")
	}
}

// A loaded source gives the numbers of a list, as fractions of 1.
type loaded []float64

func (l *loaded) Uint64() uint64 {
	x := (*l)[0]
	*l = (*l)[1:]
	return uint64(x * (1 << 53))
}

// TestDraws: what is drawn lies between two quantiles, as far from each as the number says.
func TestDraws(t *testing.T) {
	quantiles := []float64{1, 3, 11}
	for at, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.625: 5, 0.75: 7} {
		if got := Noise(quantiles).draw(rand.New(&loaded{at})); got != want {
			t.Errorf("noise at %v is %v, want %v", at, got, want)
		}
		stall := Stall{Share: 0.25, Length: quantiles}
		if got := stall.draw(rand.New(&loaded{0.2, at})); got != want {
			t.Errorf("a stall at %v is %v, want %v", at, got, want)
		}
		if got := stall.draw(rand.New(&loaded{0.25})); got != 0 {
			t.Errorf("a stall of %v that is not", got)
		}
	}
	for _, n := range []Noise{nil, {5}} {
		if got := n.draw(nil); got != 1 {
			t.Errorf("noise of %v is %v", n, got)
		}
	}
	if got := (&Stall{}).draw(nil); got != 0 {
		t.Errorf("a stall of %v that never is", got)
	}
	if got := draw([]float64{4, 8}, rand.New(&loaded{0.5})); got != 6 {
		t.Errorf("between 4 and 8: %v", got)
	}
}

// TestWaitNoise: expected waits are even around the true ones, the same for the same seed and time, and never below 0.
func TestWaitNoise(t *testing.T) {
	sum, least, most := 0.0, math.Inf(1), 0.0
	cfg := Config{WaitNoise: 0.5, Seed: 3}
	for at := range int64(2000) {
		w := float64(cfg.expect(at, 1000))
		sum, least, most = sum+w, min(least, w), max(most, w)
	}
	if sum /= 2000; least < 500 || least > 520 || most > 1500 || most < 1480 || sum < 970 || sum > 1030 {
		t.Errorf("from %v to %v, mean %v, of 1000", least, most, sum)
	}
	other := cfg
	other.Seed = 4
	if a := cfg.expect(7, 1000); a != cfg.expect(7, 1000) || a == other.expect(7, 1000) || a == cfg.expect(8, 1000) {
		t.Errorf("a wait of %v", a)
	}
	cfg.WaitNoise = 3
	for at := range int64(100) {
		if w := cfg.expect(at, 1000); w < 0 {
			t.Fatalf("a wait of %v", w)
		}
	}
	if w := (&Config{}).expect(1, 1000); w != 1000 {
		t.Errorf("without noise a wait of %v", w)
	}
	p := &noted{Policy: policy.Spec{}.New()}
	Run(sawtooth(t, 10), p, Config{WaitNoise: 0.5, Seed: 3})
	if want := (&Config{WaitNoise: 0.5, Seed: 3}).expect(9600, 300); p.points[len(p.points)-1].Wait != want {
		t.Errorf("told %+v, want a wait of %v", p.points, want)
	}
}

// TestWhatALearnerMeasures: a cycle is polled each 200 us, then more seldom, each ms at last. It begins at the last poll before its mark.
func TestWhatALearnerMeasures(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		cores          int
		took, from, to time.Duration
		polls          int
		begin          time.Duration
	}{
		{1, 1000 * us, 0, 900 * us, 4, 0},
		{2, 1500 * us, 300 * us, 1000 * us, 3, 200 * us},
		{0, 1500 * us, 400 * us, 1000*us + 1, 3, 400 * us},
		{5, 3000 * us, 0, 2200 * us, 10, 0},               // each 200 us up to 1.8 ms, then at 2,025
		{8, 20000 * us, 15000 * us, 18000 * us, 0, 0},     // each ms: see pollsOf
		{1, 3 * time.Second, 0, 2 * time.Second, 1000, 0}, // at most
	} {
		n := max(1, c.cores)
		for _, sees := range []float64{0, 1e9} {
			l := newLearner(c.cores, 3<<20, sees, 1)
			want := policy.NewExpectation(n)
			want.See(3<<20, 0)
			if l.Cost != want.Cost || l.Slowdown != 0 {
				t.Fatalf("before the first cycle it expects %v", l.Cost)
			}
			if c.polls == 0 {
				c.begin, c.polls = pollsOf(c.from, c.to)
			}
			m := policy.Measured{Processors: n, Scan: 3 << 20, Tracked: 70, Length: c.took - c.begin, Work: time.Duration(n) * (c.took - c.begin), Polls: c.polls}
			if sees > 0 {
				m.Waiting = c.polls * ((n + 3) / 4)
			}
			want.Learn(m)
			want.See(3<<20, 50)
			l.learn(c.took, c.from, c.to, 50, 20)
			if l.Cost != want.Cost || l.Work != want.Work || l.Slowdown != want.Slowdown {
				t.Errorf("%+v: expects %v, %v and %v, want %v, %v and %v", c, l.Cost, l.Work, l.Slowdown, want.Cost, want.Work, want.Slowdown)
			}
		}
	}
}

// pollsOf counts the polls of a mark, and says when the last one before it was.
func pollsOf(from, to time.Duration) (begin time.Duration, n int) {
	for t := time.Duration(0); t < to; {
		if t <= from {
			begin = t
		} else {
			n++
		}
		switch step := t / 8; {
		case step < 200*time.Microsecond:
			t += 200 * time.Microsecond
		case step > time.Millisecond:
			t += time.Millisecond
		default:
			t += step
		}
	}
	return begin, n
}

// TestObjective: what a run cost the program, and the one number for all.
func TestObjective(t *testing.T) {
	r := Result{ExposedPause: 1000, Slowed: 300, GCBusy: 2000}
	if r.Delay() != 1300 || r.Objective() != 1400 {
		t.Errorf("delay %d, objective %d", r.Delay(), r.Objective())
	}
}

// TestResultNames: the names in JSON are those of DESIGN.md, and stay.
func TestResultNames(t *testing.T) {
	text, err := json.Marshal(Result{"t", "p", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	want := `{"trace":"t","policy":"p","limit_factor":1,"limit_bytes":2,"cycle_ns":3,"ladder_ns":4,"collections":5,"refusal_collections":6,"failed_allocs":7,"exposed_pause_ns":8,` +
		`"max_pause_ns":9,"gc_busy_ns":10,"peak_live_bytes":11,"mean_live_bytes":12,"mean_garbage_bytes":13,"span_ns":14,"elapsed_ns":15}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// TestKeepReasons: of the decisions those that asked for a cycle are kept, and the last before each cycle.
func TestKeepReasons(t *testing.T) {
	for _, c := range []struct {
		log  Log
		want string
	}{
		{Log{}, ""}, {Log{KeepDecisions: true}, "a b C d e f G H i"}, {Log{KeepReasons: true}, "C e G H i"}, {Log{KeepDecisions: true, KeepReasons: true}, "a b C d e f G H i"},
	} {
		l := c.log
		for i, what := range strings.Fields("a b C d e f G H i") {
			d := policy.Decision{Reason: what}
			if strings.ToUpper(what) == what {
				d.Action = policy.Overlap
			}
			l.decide(time.Duration(i), &policy.Point{Request: int64(i)}, d)
			if strings.Contains("C e H", what) { // a cycle ends
				l.Cycles = append(l.Cycles, Collected{})
			}
		}
		var got []string
		for _, d := range l.Decisions {
			got = append(got, d.Reason)
			if d.Trace != time.Duration(d.Request) {
				t.Errorf("%q is at %v", d.Reason, d.Trace)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v keeps %q, want %q", c.log, got, c.want)
		}
	}
	var none *Log
	none.decide(0, &policy.Point{}, policy.Decision{})
	none.slow(1, 1)
}

// TestLatenciesAgainstTheirDefinition: a step that was due earlier counts from then.
func TestLatenciesAgainstTheirDefinition(t *testing.T) {
	check(t, 300, func(t *random) {
		w := genWorkload(t, t.coin())
		log := new(Log)
		Run(w, genWhim(t, policy.Skip, policy.Block)(), Config{Cost: Fixed(20), Log: log})
		at := func(t int64) float64 {
			sum := t
			for _, p := range log.Pauses {
				if int64(p.Trace) <= t {
					sum += int64(p.Length)
				}
			}
			return float64(sum)
		}
		begins, ends := []float64{at(0)}, []float64(nil)
		for _, p := range w.points {
			if p.sync {
				begins, ends = append(begins, at(p.time+p.arg)), append(ends, at(p.time+p.arg))
			}
		}
		if !slices.IsSorted(ends) {
			return // a wait that began within another
		}
		window := between(t, 0, 2*w.Span+1)
		var want []time.Duration
		for i, begin := range begins[:len(ends)] {
			a, b := i, i
			for a > 0 && begins[a-1] >= begin-float64(window)/2 {
				a--
			}
			for b < len(ends)-1 && begins[b] < begin+float64(window)/2 {
				b++
			}
			if b > a {
				begin = min(begin, begins[a]+(begins[b]-begins[a])*float64(i-a)/float64(b-a))
			}
			want = append(want, time.Duration(math.Round(ends[i]-begin)))
		}
		slices.Sort(want)
		if got := w.Latencies(log, window); !slices.Equal(got, want) {
			t.Fatalf("within %v %v, want %v", window, got, want)
		}
	})
}
