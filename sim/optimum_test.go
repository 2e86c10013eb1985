package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A priced path is one that the least is looked for of: of two that cost the same, the one with fewer cycles.
type priced struct{ cost, cycles int64 }

func (a priced) or(b priced) priced {
	if b.cost < a.cost || b.cost == a.cost && b.cycles < a.cycles {
		return b
	}
	return a
}

// naivePaths looks at every cycle that may come before another, as the comment of optimumOverlap says it. Price is what a cycle at point i costs
// after one before point k, or after the start if k is -1; T is the first point that does not fit after that.
func naivePaths(w *Workload, limit int64, price func(T, i int) int64) (best priced, ok bool) {
	n := len(w.points)
	ways := make([]priced, n+1) // to a cycle at the point before
	for i := range ways {
		ways[i] = priced{math.MaxInt64, 0}
	}
	ways[0], best = priced{}, priced{math.MaxInt64, 0}
	for k := range ways { // a cycle at point k-1
		if ways[k].cost == math.MaxInt64 {
			continue
		}
		kept, from := int64(0), 0
		if k > 0 {
			kept, from = w.points[k-1].dropped, k-1
		}
		T := from
		for T < n && w.points[T].top()-kept <= limit {
			T++
		}
		if k > 0 && T == k-1 {
			return best, false
		}
		if T == n {
			best = best.or(ways[k])
		}
		for i := k; i <= min(T, n-1); i++ {
			ways[i+1] = ways[i+1].or(priced{ways[k].cost + price(T, i), ways[k].cycles + 1})
		}
	}
	return best, best.cost < math.MaxInt64
}

// TestOptimaAgainstAllPaths: the bounds are the least cost over all paths, and of paths of that cost the one with the fewest cycles is taken.
func TestOptimaAgainstAllPaths(t *testing.T) {
	check(t, 1000, func(t *random) {
		w := genWorkload(t, t.coin())
		cfg := genConfig(t, w)
		if cfg.Limit <= 0 {
			return // there is nothing to find
		}
		share := some(t, CPUPrice, 0.5)
		want, ok := naivePaths(w, cfg.Limit, func(_, i int) int64 {
			p := &w.points[i]
			g := int64(cfg.Cost.Base)
			if p.sync {
				g = max(0, g-p.arg)
			}
			return g
		})
		blocking, err := optimumBlocking(w, cfg.Limit, cfg.Cost.Base)
		if ok != (err == nil) || ok && (int64(blocking.Exposed) != want.cost || len(blocking.steps) != int(want.cycles)) {
			t.Fatalf("blocking: %v with %d cycles, %v; want %+v, %v", blocking.Exposed, len(blocking.steps), err, want, ok)
		}
		least := int64(cfg.Cost.Base)
		hides := int64(float64(least) / (1 + cfg.Cost.Slowdown))
		want, ok = naivePaths(w, cfg.Limit, func(T, i int) int64 {
			full := int64(math.MaxInt64 / 4)
			if T < len(w.points) {
				full = w.points[T].time
			}
			for _, p := range w.points[:T] {
				if p.sync {
					full = max(full, p.time+p.arg)
				}
			}
			return max(0, w.points[i].time+hides-full) + int64(share*float64(least))
		})
		s, bound, err := optimumOverlap(w, cfg, share)
		if ok != (err == nil) || ok && int64(bound) != want.cost {
			t.Fatalf("overlap: a bound of %v, %v, want %+v, %v", bound, err, want, ok)
		}
		if !ok {
			return
		}
		costs := map[string]time.Duration{"best": 0, "blocking": 0}
		for name, steps := range map[string][]step{"best": s.steps, "blocking": blocking.steps} {
			r := runSchedule(w, name, schedule{steps: steps}, cfg)
			if costs[name] = r.ExposedPause; share > 0 {
				costs[name] += r.Slowed + time.Duration(share*float64(r.GCBusy))
			}
			if r.RefusalCollections > 0 {
				t.Fatalf("a schedule is refused: %+v", r)
			}
		}
		if costs["best"] > costs["blocking"] || costs["best"] < bound {
			t.Fatalf("the best schedule and that of blocking cycles cost %v, the bound is %v", costs, bound)
		}
	})
}

// TestSchedulesStayAsGood: what the schedules of 2,000 workloads cost together, and how many cycles they have. Other sums mean that the search
// finds other schedules, of which lower ones are better, or that workloads are drawn in another way.
func TestSchedulesStayAsGood(t *testing.T) {
	r := &random{t, rand.New(rand.NewPCG(1, 0))}
	var exposed time.Duration
	cycles := 0
	for range 2000 {
		w := genWorkload(r, r.coin())
		cfg := Config{Limit: w.PeakReachable + r.Int64N(w.PeakReachable/3+1), Cost: Fixed(time.Duration(r.IntN(60))), Ladder: Ladder{Factor: 2}}
		if s, _, err := optimumOverlap(w, cfg, some(r, 0.5)); err == nil {
			exposed, cycles = exposed+s.Exposed, cycles+len(s.steps)
		}
	}
	if exposed != 10664 || cycles != 2209 {
		t.Errorf("%d ns and %d cycles", exposed, cycles)
	}
}

// TestSchedulesAgainstANaiveReplay: a schedule runs as its steps say, and where a cycle is under way at a step it is waited for.
func TestSchedulesAgainstANaiveReplay(t *testing.T) {
	check(t, 500, func(t *random) {
		w, events, _ := genStrayed(t)
		cfg := genConfig(t, w)
		var steps []step
		for i := range w.points {
			if t.IntN(3) == 0 {
				steps = append(steps, step{i, pick(t, policy.Overlap, policy.Block)})
			}
		}
		n := naiveOf(&cfg)
		n.policy, n.steps = policy.Spec{}.New(), append(steps, step{point: -1})
		sameButForMeans(t, runSchedule(w, "schedule", schedule{steps: steps}, cfg), n.run(events), "schedule")
	})
}

// TestOptimum: each optimum is a run of its schedule, not below its bound. Where there is none, the error says why, and the result what was
// asked for.
func TestOptimum(t *testing.T) {
	w := sawtooth(t, 200) // 220 points; 100 bytes reachable, one object each us
	for _, name := range Optima() {
		run := func(limit int64, most int, m *Machine) (Result, *Log, time.Duration, error) {
			defer func(was int) { mostPoints = was }(mostPoints)
			mostPoints = most
			log := new(Log)
			r, bound, err := Optimum(name, w, Config{Limit: limit, Cost: Cost{Base: 2500, Slowdown: 0.5}, Ladder: Ladder{Factor: 2}, Log: log, Machine: m})
			return r, log, bound, err
		}
		r, log, bound, err := run(1000, 220, nil)
		exposed, of := time.Duration(0), r.ExposedPause
		for _, p := range log.Pauses {
			exposed += p.Length
		}
		if name == "optimum-objective" {
			of = r.Delay() + r.GCBusy/20
		}
		if err != nil || r.Policy != name || r.FailedAllocs+r.RefusalCollections > 0 || r.PeakLive > 1000 || bound > of || r.Collections < 19 ||
			exposed != r.ExposedPause || len(log.Cycles) != r.Collections || bound == 0 != (name == "optimum-overlap") {
			t.Errorf("%s: %+v, bound %v, pauses of %v, %v", name, r, bound, exposed, err)
		}
		r, _, bound, err = run(99, 220, nil)
		if !errors.Is(err, ErrNoSchedule) || !strings.HasSuffix(err.Error(), ": 99 bytes, at point 0 of sawtooth (peak reachable 100)") || bound != 0 || r.Policy != name || r.LimitBytes != 99 || r.Cycle != 2500 {
			t.Errorf("%s: %+v, %v, %v", name, r, bound, err)
		}
		if r, _, bound, err := run(0, 220, nil); err != nil || bound != 0 || r.Collections != 0 || r.PeakLive != 20000 {
			t.Errorf("%s without a limit: %+v, %v, %v", name, r, bound, err)
		}
		if _, _, _, err := run(1000, 219, nil); !errors.Is(err, ErrTooLong) || !strings.HasSuffix(err.Error(), ": 220 allocations and waits, at most 219") {
			t.Errorf("%s: %v", name, err)
		}
		if r, _, _, err := run(0, 220, new(Machine)); err != errBaseOnly || r != (Result{}) {
			t.Errorf("%s with a machine: %+v, %v", name, r, err)
		}
	}
}
