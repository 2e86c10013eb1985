package live

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A calibration executes the programs that it has always executed, and requests cycles at the
// same moments of them. With others, machines could not be compared with earlier ones.
func TestCalibrationsAreComparable(t *testing.T) {
	sum := sha256.New()
	for seed := range uint64(4) {
		tr := pattern(seed, pressure.Device(1), 2*time.Second)
		recording.WriteText(sum, tr)
		w, err := sim.Compile(tr, pressure.Device(1))
		if err != nil {
			t.Fatal(err)
		}
		log := &sim.Log{KeepDecisions: true}
		rule := &prober{random: rand.New(rand.NewPCG(seed, 2))}
		sim.Run(w, rule, sim.Config{Limit: patternLimit, Cost: sim.Fixed(time.Millisecond), Log: log})
		n, last := rule.ended()
		fmt.Fprintln(sum, log.Cycles, log.Decisions, n, last, rule)
	}
	recording.WriteText(sum, beat(pressure.Device(1), time.Second))
	const want = "6bf3a4939531908d"
	if got := fmt.Sprintf("%.8x", sum.Sum(nil)); got != want && runtime.GOARCH == "amd64" { // others round otherwise
		t.Errorf("the programs and their cycles are now %s", got)
	}
}

// A calibration tells the cost of the heap from that of a cycle without one, the slowdown from
// work that computes, and the pace from the steady program.
func TestCalibrationMakesAMachine(t *testing.T) {
	of := func(length time.Duration) *probe {
		p := new(probe)
		for i := range 40 {
			p.seen = append(p.seen, observation{Held: length, Gap: time.Second, Start: time.Duration(i%2) * 1e5})
			p.allocs, p.ladders = append(p.allocs, allocation{took: 700}), append(p.ladders, allocation{took: 9000})
		}
		return p
	}
	computed, full := of(time.Hour), of(5*time.Millisecond)
	computed.work = Work{Alone: 1000, LostAlone: 100, Beside: 500, LostBeside: 150, Overlap: 300} // of the 150, 50 are the machine's
	full.paces = []time.Duration{3, 1, 2}
	cal := Calibration{Heap: 1 << 29, Memory: Memory{Waits: true}}
	m, fit, err := cal.machine(of(3*time.Millisecond), computed, full)
	if err != nil || fit.Cycles != 20 || !near(float64(m.Mark.Base+m.Start), 3e6, 1e-6) || !near(m.Mark.PerGiB, 4e6, 1e-6) || m.Start != 1e5 || m.Heap != 1<<29 ||
		m.Alloc.Base != 700 || m.Ladder != 9000 || m.Slowdown != 0.5 || m.Pace != 2 || !m.Waits || m.IdleGap != idleGap || m.Cores != runtime.GOMAXPROCS(0) {
		t.Errorf("%+v, %v, %v", m, fit, err)
	}
	if text := fit.String(); !strings.Contains(text, "of 20 cycles kept apart, half are within 0 % of what the model says and nine of ten within 0 %; all together took 1.00 times as long") {
		t.Error(text)
	}
	full.seen = full.seen[:minObservations-1]
	if _, _, err := cal.machine(full, full, full); err == nil {
		t.Error("too few cycles make a machine")
	}
	var count func(*node) int
	count = func(at *node) int {
		if at == nil {
			return 0
		}
		return 1 + count(at.left) + count(at.right)
	}
	nodes := 0
	for _, tree := range newBallast(10 << 20).trees {
		nodes += count(tree)
	}
	if nodes != 10<<20/nodeBytes {
		t.Errorf("a ballast of 10 MiB has %d nodes of %d bytes", nodes, nodeBytes)
	}
}

// What a probe notes of cycles is what the log of the run has: their lengths and the times between
// them. Cycles of refusals hold the program. Others do not, unless the machine is very busy.
func TestProbeNotesTheCycles(t *testing.T) {
	worked := 0
	for tries := 0; worked == 0 && tries < 20; tries++ {
		rule := &prober{gap: time.Hour, beside: true} // with refusals alone
		limit := int64(12 << 20)
		if tries > 0 {
			rule.gap, limit = time.Millisecond, 128<<20
		}
		log, p := new(sim.Log), &probe{policy: rule, bytes: true}
		got, err := Run(t.Context(), steady(300), Config{Policy: rule, Limit: limit, Space: pressure.Device(0), Memory: Memory{Direct: true, Touch: 1}, Speed: 1, Log: log, probe: p})
		if err != nil || !slices.IsSorted(p.drops) || len(p.drops) != 297 {
			t.Fatalf("%d drops, %v", len(p.drops), err)
		}
		var exposed, longest, busy time.Duration
		for _, pause := range log.Pauses {
			exposed, longest = exposed+pause.Length, max(longest, pause.Length)
		}
		for _, c := range log.Cycles {
			if c.Trigger <= policy.TriggerRefusal {
				busy += c.Duration
			}
		}
		if n := got.Collections + got.RefusalCollections; exposed != got.ExposedPause || longest != got.MaxPause || n == 0 || got.Cycle != got.GCBusy/time.Duration(n) || n+got.Natural == len(log.Cycles) && busy != got.GCBusy || n+got.Natural-len(log.Cycles) > 1 { // one may be under way at the end
			t.Errorf("%+v and %d cycles of the runtime, logged %v, %v, %v, %d", got.Result, got.Natural, exposed, longest, busy, len(log.Cycles))
		}
		last, logged := time.Duration(0), map[[2]time.Duration]bool{} // by the gap before, and the length
		for _, c := range log.Cycles {
			logged[[2]time.Duration{c.Start - last, c.Duration}], last = true, c.Start+c.Duration
		}
		objects := 0
		for i, o := range p.seen {
			objects += o.Objects
			length := o.Held + o.Working
			if !logged[[2]time.Duration{o.Gap, length}] || o.Held < 0 || o.Working < 0 || o.Start > length || o.Tracked < o.Objects || o.Tracked > 300 || o.Bytes%(1<<20) != 0 {
				t.Errorf("cycle %d: %+v", i, o)
			}
			if 4*o.Working > o.Held {
				worked++
			}
		}
		for _, a := range append(p.allocs, p.ladders...) {
			if a.took < 0 || a.took > got.Elapsed || a.chunks != 0 {
				t.Errorf("an allocation: %+v", a)
			}
		}
		if n := len(p.ladders); tries == 0 && (worked > 0 || objects < 200 || n == 0) || objects > int(got.Stats.Objects) || n > got.RefusalCollections || len(p.allocs)+n > 300 || len(p.allocs)+len(log.Pauses) < 280 {
			t.Errorf("the program worked in %d of %d cycles, which released %d of %d objects; %d allocations and %d ladders, %d refusals, %d pauses",
				worked, len(p.seen), objects, got.Stats.Objects, len(p.allocs), n, got.RefusalCollections, len(log.Pauses))
		}
	}
	if worked == 0 {
		t.Error("no cycle ran beside the program")
	}
}

// A heard sink keeps the events of a run.
type heard struct {
	trace.Trace
	begin time.Time
	mu    sync.Mutex
}

func (h *heard) Record(e trace.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Events = append(h.Events, e)
}
func (h *heard) Now() time.Duration { return time.Since(h.begin) }
func (h *heard) Label(text string) uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Labels = append(h.Labels, text)
	return uint32(len(h.Labels) - 1)
}

// filled memory counts the bytes that are written.
type filled struct {
	*chunks
	bytes *int64
	err   error
}

func (f filled) Fill(_ uintptr, _ []byte, n int64, _ uint32) error { *f.bytes += n; return f.err }

// A run does what its trace says of one space: it allocates, frees and waits in the same order,
// and it writes as much of each object as Touch says. Waits take half of the time at twice the speed.
func TestRunDoesWhatTheTraceSays(t *testing.T) {
	tr := &trace.Trace{Name: "said", Labels: []string{"", "a", "b", "a mark"}}
	var want []string
	r := rand.New(rand.NewPCG(1, 2))
	say := func(e trace.Event, label string) {
		if tr.Record(e); e.Space != pressure.Device(1) {
			want = append(want, fmt.Sprintln(e.Kind, e.Bytes, label))
		}
	}
	for i := range 300 {
		e := trace.Event{Time: int64(i) * 20_000, Kind: trace.Alloc, ID: uint64(i), Bytes: 512 + 512*r.Int64N(200), Space: pressure.Device(i % 5 / 4)}
		say(e, "")
		if e.Kind = trace.Free; i%3 == 0 { // at once
			say(e, "")
		} else if e.Kind = trace.Drop; i%3 == 1 {
			tr.Record(e)
		}
		if i%30 == 29 {
			say(trace.Event{Time: e.Time, Kind: trace.Sync, Duration: 2 * time.Millisecond, Aux: uint32(1 + i/30%2)}, tr.Labels[1+i/30%2])
			tr.Record(trace.Event{Time: e.Time, Kind: trace.Mark, Aux: 3})
		}
	}
	for touch, most := range map[int64]int64{100: 240 * 100, -1: 1 << 40} {
		var bytes, all int64
		var longest time.Duration
		to, waits := &heard{begin: time.Now()}, 0
		var shares []float64
		log := &sim.Log{KeepDecisions: true}
		cfg := Config{Space: pressure.Device(0), Speed: 2, Memory: Memory{Upstream: filled{chunks: new(chunks), bytes: &bytes}, Space: pressure.Device(2), Touch: touch}, Recorder: to, Log: log,
			Wait:     func(d time.Duration) error { waits++; longest = max(longest, d); return nil },
			Progress: func(share float64) { shares = append(shares, share) }}
		out, err := Run(t.Context(), tr, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range to.Events {
			switch {
			case e.Kind == trace.Alloc:
				all += e.Bytes
				fallthrough
			case e.Kind == trace.Free && e.Aux == trace.FreeExplicit, e.Kind == trace.Sync:
				if e.Kind != trace.Sync && e.Space != pressure.Device(2) {
					t.Fatalf("%+v", e)
				}
				label := ""
				if e.Kind == trace.Sync {
					label = to.Trace.Label(e)
				}
				got = append(got, fmt.Sprintln(e.Kind, e.Bytes, label))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("it did %v, want %v", got, want)
		}
		if bytes != min(all, most) {
			t.Errorf("%d bytes are written, want %d of %d", bytes, most, all)
		}
		if waits == 0 || waits > 10 || longest > time.Millisecond || longest < time.Millisecond/2 || out.Elapsed < time.Duration(tr.Events[len(tr.Events)-1].Time)/2 {
			t.Errorf("%d waits of up to %v, in %v", waits, longest, out.Elapsed)
		}
		if decided := out.Stats.Decisions; len(log.Decisions) == 0 || len(log.Decisions) != int(decided[0]+decided[1]+decided[2]) {
			t.Errorf("%d decisions, %v", len(log.Decisions), decided)
		}
		if n := len(shares); n != 7 || !slices.IsSorted(shares) || shares[0] != 0 || shares[n-1] < 0.8 || shares[n-1] > 1 {
			t.Errorf("progress %v", shares)
		}
		broken := errors.New("broken")
		cfg.Wait = func(time.Duration) error { return broken }
		if _, err := Run(t.Context(), tr, cfg); !errors.Is(err, broken) || !strings.Contains(err.Error(), "live: said: step ") {
			t.Errorf("a device that fails: %v", err)
		}
		cfg.Memory.Upstream = filled{new(chunks), &bytes, broken}
		if _, err := Run(t.Context(), tr, cfg); !errors.Is(err, broken) {
			t.Errorf("memory that fails: %v", err)
		}
	}
}

// The clock never ends work or a wait early, but for computed work, which is a number of turns. An
// app's own program has a limit of one and a half times what is reachable.
func TestClock(t *testing.T) {
	const soon = 20 * time.Millisecond
	computes := false
	for tries := 0; !computes && tries < 20; tries++ {
		k := clock{start: time.Now(), speed: 4}
		if k.scaled(int64(soon)) != soon/4 {
			t.Errorf("%v at four times the speed", k.scaled(int64(soon)))
		}
		for _, until := range []time.Duration{soon, soon + time.Millisecond, soon, 3 * soon} {
			if k.work(until); k.now() < until {
				t.Errorf("work until %v ended at %v", until, k.now())
			}
			if k.wait(until + soon/2); k.now() < until+soon/2 {
				t.Errorf("a wait until %v ended at %v", until+soon/2, k.now())
			}
		}
		k.rate = 1e-6
		until := k.now() + idleGap - time.Millisecond
		k.work(until)
		computes = k.now() < until
	}
	if !computes {
		t.Error("a few turns take milliseconds")
	}
	if app, limit, err := (&Calibration{Like: steady(30)}).program(1, 0); err != nil || limit != 6<<20 || len(app.Events) != len(steady(30).Events) {
		t.Errorf("an app of %d events has a limit of %d bytes, %v", len(app.Events), limit, err)
	}
}

// The means of a run are those of its simulation.
func TestMeansAreThoseOfTheSimulation(t *testing.T) {
	tr := &trace.Trace{Name: "means"}
	for i := range int64(8) {
		e := trace.Event{Time: 1e9 + i*20e6, Kind: trace.Alloc, ID: uint64(i), Bytes: (1 + i) << 20}
		tr.Record(e)
		if e.Kind = trace.Drop; i%2 == 1 {
			tr.Record(e)
		}
		tr.Record(trace.Event{Time: e.Time, Kind: trace.Sync, Duration: 20 * time.Millisecond})
	}
	tr.Record(trace.Event{Time: 1e9 + 160e6, Kind: trace.Alloc, ID: 8})
	w, err := sim.Compile(tr, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := sim.Run(w, policy.Spec{}.New(), sim.Config{Limit: 1 << 40})
	for tries := 0; ; tries++ { // a busy machine may stretch one interval more than another
		got, err := Run(t.Context(), tr, Config{Speed: 1, Memory: Memory{Direct: true}})
		if err == nil && near(got.MeanLive, want.MeanLive, 0.05) && near(got.MeanGarbage, want.MeanGarbage, 0.05) && near(float64(got.Elapsed), float64(want.Elapsed), 0.1) {
			return
		}
		if tries == 20 {
			t.Fatalf("%+v, %v, simulated %+v", got.Result, err, want)
		}
	}
}

// A machine that is read from a recording is that of the recorded run: a cycle of 2 ms and 1 us for
// each object, which takes 1.5 times as long beside work, and a ladder of 40 us.
func TestRecordingHasItsMachine(t *testing.T) {
	tr := &trace.Trace{Meta: map[string]string{MetaHeap: "4096"}, Labels: []string{"", gc.PauseLabel, gc.ProcessorsLabel, gc.SlowdownLabel}}
	r := rand.New(rand.NewPCG(1, 2))
	at, id, next := int64(1000), uint64(0), uint64(0)
	for i := range 90 {
		for n := r.IntN(2000); n > 0; n-- {
			id++
			tr.Record(trace.Event{Time: at, Kind: trace.Alloc, ID: id, Bytes: 512})
			at += 100
		}
		at += 5e7
		dead := id - uint64(r.IntN(100)) // the last ones live on
		length := time.Duration(2e6 + 1000*max(0, int64(dead)-int64(next)))
		cycle := trace.Event{Time: at, Kind: trace.Cycle, Aux: uint32(policy.TriggerRefusal)}
		switch i % 3 {
		case 0: // a refusal
			tr.Record(trace.Event{Time: at - 20, Kind: trace.Refuse, Bytes: 1, Aux: uint32(pool.StepReap), Duration: 10_000})
			tr.Record(trace.Event{Time: at - 10, Kind: trace.Refuse, Bytes: 1, Aux: uint32(pool.StepCollect), Duration: length + 30_000})
			tr.Record(trace.Event{Time: at, Kind: trace.Mark, Aux: 1, Duration: length})
		case 1: // in a wait
			tr.Record(trace.Event{Time: at - 1000, Kind: trace.Sync, Duration: length + 2000})
			cycle.Aux = uint32(policy.TriggerPolicy)
		case 2: // beside the program, or by the runtime, which does not count
			if cycle.Aux = uint32(policy.TriggerPolicy); i%6 == 5 {
				cycle.Aux = uint32(policy.TriggerNatural)
			}
			length = length * 3 / 2
		}
		cycle.Duration = length
		tr.Record(cycle)
		at += int64(length)
		for ; next < dead; next++ {
			tr.Record(trace.Event{Time: at, Kind: trace.Free, ID: next + 1, Bytes: 512, Aux: trace.FreeCycle})
		}
		tr.Record(trace.Event{Time: at, Kind: trace.Mark, Aux: 2, Bytes: 3})
		tr.Record(trace.Event{Time: at, Kind: trace.Mark, Aux: 3, Bytes: int64(i) * 1000})
	}
	m, fit, err := FitRecording(tr, 0)
	if err != nil || m.Heap != 4096 || m.Cores != 3 || m.Slowdown != 0.089 || m.Ladder != 40_000 || m.Stretch != 1.5 || fit.Cycles != 37 || fit.Most > 0.02 ||
		!near(m.Mark.PerObject+m.Settle.PerObject+m.Settle.PerGiB*512/(1<<30), 1000, 0.05) || !near(float64(m.Cycle(0, 0, 0)), 2e6, 0.03) {
		m.Noise = nil
		t.Errorf("%+v, %+v, %v", m, fit, err)
	}
}
