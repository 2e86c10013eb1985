package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A random is a test with random numbers of one seed.
type random struct {
	*testing.T
	*rand.Rand
}

// check runs f with many seeds. EAGERGC_TEST_SEED=n runs it with the one that a failure names.
func check(t *testing.T, times int, f func(*random)) {
	t.Helper()
	seed, free := strconv.ParseUint(os.Getenv("EAGERGC_TEST_SEED"), 10, 64)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run it again with EAGERGC_TEST_SEED=%d", seed)
		}
	})
	for range times {
		if free != nil {
			seed = rand.Uint64()
		}
		if f(&random{t, rand.New(rand.NewPCG(seed, 0))}); t.Failed() {
			return
		}
	}
}

// between returns a number from low to high, often one of the two.
func between[T ~int | ~int64 | ~uint32 | ~uint64](r *random, low, high T) T {
	switch r.IntN(10) {
	case 0:
		return low
	case 1:
		return high
	}
	return low + T(r.Uint64N(uint64(high-low)+1))
}

func (r *random) coin() bool { return r.IntN(2) == 0 }

func pick[T any](t *random, list ...T) T { return list[t.IntN(len(list))] }

// some returns 0, or one of the values.
func some[T int | int64 | float64 | time.Duration](t *random, values ...T) T {
	if t.coin() {
		return 0
	}
	return values[t.IntN(len(values))]
}

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
	tr, n := &trace.Trace{Name: "random"}, between(t, 1, 60)
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
		Limit: int64((0.8 + t.Float64()*3.2) * float64(w.PeakReachable)), Cost: Fixed(time.Duration(between[int64](t, 0, 40))), Ladder: Ladder{Factor: 2},
	}
	if t.coin() {
		cfg.WaitNoise, cfg.Seed = 0.5, t.Uint64()
	}
	if t.coin() {
		cfg.Cost.Slowdown = 2 * t.Float64()
	}
	return cfg
}

func genWhim(t *random, actions ...policy.Action) func() *whim {
	seed := t.Uint64()
	return func() *whim { return &whim{seed: seed, actions: actions} }
}

// sawtooth allocates n objects of 100 bytes, one each us, and drops each after half of that. After every tenth it waits for 300 ns.
func sawtooth(t testing.TB, n int) *Workload {
	t.Helper()
	tr := &trace.Trace{Name: "sawtooth"}
	for i := range n {
		now := int64(i) * 1000
		tr.Record(trace.Event{Time: now, ID: uint64(i), Kind: trace.Alloc, Bytes: 100})
		tr.Record(trace.Event{Time: now + 500, ID: uint64(i), Kind: trace.Drop})
		if i%10 == 9 {
			tr.Record(trace.Event{Time: now + 600, Kind: trace.Sync, Duration: 300})
		}
	}
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
