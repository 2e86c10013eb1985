package sim

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
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

// reachable is the least that a cycle at a point can cost: of the objects that are not dropped.
func (p *point) reachable(c *Cost) int64 {
	return int64(c.Of(int64(p.allocs)-int64(p.frees)-int64(p.drops), 0))
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
			g := p.reachable(&cfg.Cost)
			if p.sync {
				g = max(0, g-p.arg)
			}
			return g
		})
		s, err := optimumBlocking(w, cfg.Limit, cfg.Cost)
		if ok != (err == nil) || ok && (int64(s.Exposed) != want.cost || len(s.steps) != int(want.cycles)) {
			t.Fatalf("blocking: %v with %d cycles, %v; want %+v, %v", s.Exposed, len(s.steps), err, want, ok)
		}
		least := int64(math.MaxInt64)
		for i := range w.points {
			least = min(least, w.points[i].reachable(&cfg.Cost))
		}
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
		best, bound, err := optimumOverlap(w, cfg, share)
		if ok != (err == nil) || ok && int64(bound) != want.cost {
			t.Fatalf("overlap: a bound of %v, %v, want %+v, %v", bound, err, want, ok)
		}
		if ok {
			bestOfThree(t, w, cfg, share, best, least)
		}
	})
}

// bestOfThree wants of three schedules the one that costs the least, of equal ones the one with the fewest cycles.
func bestOfThree(t *random, w *Workload, cfg Config, share float64, got schedule, least int64) {
	cost := func(steps []step) priced {
		r := runSchedule(w, "", schedule{steps: steps}, cfg)
		d := r.ExposedPause
		if share > 0 {
			d += r.Slowed + time.Duration(share*float64(r.GCBusy))
		}
		if r.RefusalCollections > 0 {
			t.Fatalf("a schedule is refused: %+v", r)
		}
		return priced{int64(d), int64(len(steps))}
	}
	far, _ := w.reaches(cfg.Limit)
	fee := int64(share * float64(least))
	slow := cfg.Cost.Slowdown
	low := newChain(w, far, int64(float64(least)/(1+slow)), fee)
	low.solve()
	want := cost(low.steps())
	blocking, _ := optimumBlocking(w, cfg.Limit, cfg.Cost)
	want = want.or(cost(blocking.steps))
	if share > 0 {
		fee += int64(slow / (1 + slow) * float64(least))
	}
	want = want.or(cost(newPaths(w, far, least, fee).solve()))
	if is := cost(got.steps); is.cost != want.cost || is.cycles > want.cycles {
		t.Fatalf("the schedule has %+v, want %+v", is, want)
	}
}

// TestEachWayIsTheBest: each way to a point is the best of all ways to those before it, of which each is as good as its neighbours say.
func TestEachWayIsTheBest(t *testing.T) {
	check(t, 300, func(t *random) {
		w := genWorkload(t, t.coin())
		limit := int64((1 + 2*t.Float64()) * float64(w.PeakReachable))
		far, err := w.reaches(limit)
		if err != nil || limit == 0 {
			return
		}
		g, fee := between[int64](t, 0, 60), some[int64](t, 1, 9)
		p := newPaths(w, far, g, fee)
		p.solve()
		for node := 1; node < len(far); node++ {
			at := w.points[node-1].time
			cheap, arrival := priced{math.MaxInt64, 0}, priced{math.MaxInt64, 0}
			arrive := func(k int) priced {
				return priced{p.way[k].exposed + max(0, p.way[k].end-at), int64(p.way[k].cycles)}
			}
			whole := func(k int) priced {
				a := arrive(k)
				full := int64(math.MaxInt64)
				if T := int(far[k/2]); T < len(w.points) {
					full = w.points[T].time
				}
				return priced{a.cost + max(0, at+g-full) + fee, a.cycles + 1}
			}
			for k := range 2 * node {
				if p.way[k].exposed != math.MaxInt64 && int(far[k/2]) >= node-1 {
					cheap, arrival = cheap.or(whole(k)), arrival.or(arrive(k))
				}
			}
			first, second := p.way[2*node], p.way[2*node+1]
			if (priced{first.exposed, int64(first.cycles)}) != cheap || whole(int(first.prev)) != cheap {
				t.Fatalf("node %d: the cheapest way is %+v, want %+v", node, first, cheap)
			}
			if second.exposed == math.MaxInt64 {
				second.prev = first.prev
			}
			if arrive(int(second.prev)) != arrival {
				t.Fatalf("node %d: the way %+v arrives for %+v, want %+v", node, second, arrive(int(second.prev)), arrival)
			}
			for _, x := range p.way[2*node : 2*node+2] {
				full := int64(math.MaxInt64)
				if T := int(far[x.prev/2]); T < len(w.points) {
					full = w.points[T].time
				}
				if x.exposed != math.MaxInt64 && (x.end != min(at+g, full) || x.exposed != whole(int(x.prev)).cost) {
					t.Fatalf("node %d: the way %+v ends at %d and costs %+v", node, x, min(at+g, full), whole(int(x.prev)))
				}
			}
		}
	})
}

// TestTree: the least of a range, wherever that begins and however wide it is.
func TestTree(t *testing.T) {
	check(t, 200, func(t *random) {
		n := between(t, 1, 40)
		widest := between(t, 1, n)
		tree, keys := newTree(n, widest), make([]leaf, n)
		for range 100 {
			i := t.IntN(n)
			if keys[i] = (leaf{}); t.coin() {
				keys[i] = leaf{int64(t.IntN(5)), int32(t.IntN(3)), int32(i) + 1}
				tree.set(i, pathCost{keys[i].exposed, keys[i].cycles})
			} else {
				tree.clear(i)
			}
			lo := t.IntN(n)
			hi := min(n, lo+t.IntN(widest+1))
			want := priced{math.MaxInt64, 0}
			for _, k := range keys[lo:hi] {
				if k.number > 0 {
					want = want.or(priced{k.exposed, int64(k.cycles)})
				}
			}
			got := tree.least(lo, hi)
			if got.number == 0 {
				got.exposed = math.MaxInt64
			} else if keys[got.way()] != got || int(got.way()) < lo || int(got.way()) >= hi {
				t.Fatalf("%+v is no leaf of %d to %d", got, lo, hi)
			}
			if (priced{got.exposed, int64(got.cycles)}) != want {
				t.Fatalf("the least of %d to %d is %+v, want %+v", lo, hi, got, want)
			}
		}
	})
}

// TestSchedulesAgainstANaiveReplay: a schedule runs as its steps say, and where a cycle is under way at a step it is waited for.
func TestSchedulesAgainstANaiveReplay(t *testing.T) {
	check(t, 500, func(t *random) {
		tr, events := genStrayed(t)
		w, err := Compile(tr, 3)
		if err != nil {
			t.Fatal(err)
		}
		cfg := genConfig(t, w)
		var steps []step
		for i := range w.points {
			if t.IntN(3) == 0 {
				steps = append(steps, step{i, pick(t, policy.Overlap, policy.Block)})
			}
		}
		got := runSchedule(w, "schedule", schedule{steps: steps}, cfg)
		n := naiveOf(&cfg)
		n.policy, n.steps = policy.Spec{}.New(), append(steps, step{point: -1})
		want := n.run(events)
		want.Trace, want.Policy = "strayed", "schedule"
		if math.Abs(got.MeanLive-want.MeanLive) < 1e-6 && math.Abs(got.MeanGarbage-want.MeanGarbage) < 1e-6 {
			want.MeanLive, want.MeanGarbage = got.MeanLive, got.MeanGarbage
		}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// TestOptimum: each optimum is a run of its schedule, and a bound below what it is the least of; where there is none the error says why, and
// the result what was asked for.
func TestOptimum(t *testing.T) {
	w := sawtooth(t, 200) // 100 bytes reachable, one each us
	cfg := Config{Limit: 1000, Cost: Cost{Base: 2500, PerTracked: 1, Slowdown: 0.5}, Ladder: Ladder{Factor: 2}}
	for _, name := range Optima() {
		cfg.Log = new(Log)
		r, bound, err := Optimum(name, w, cfg)
		exposed := time.Duration(0)
		for _, p := range cfg.Log.Pauses {
			exposed += p.Length
		}
		of := map[string]time.Duration{"optimum-blocking": r.ExposedPause, "optimum-overlap": r.ExposedPause, "optimum-objective": r.Objective()}[name]
		if err != nil || r.Policy != name || r.FailedAllocs+r.RefusalCollections > 0 || r.PeakLive > cfg.Limit || bound > of || r.Collections < 19 {
			t.Errorf("%s: %+v, bound %v, %v", name, r, bound, err)
		}
		if exposed != r.ExposedPause || len(cfg.Log.Cycles) != r.Collections {
			t.Errorf("%s: the log has pauses of %v and %d cycles: %+v", name, exposed, len(cfg.Log.Cycles), r)
		}
		if name != "optimum-overlap" && bound == 0 {
			t.Errorf("%s: its bound is 0", name)
		}
		small := cfg
		small.Limit, small.Log = 99, nil
		r, bound, err = Optimum(name, w, small)
		if !errors.Is(err, ErrNoSchedule) || !strings.HasSuffix(err.Error(), ": 99 bytes, at point 0 of sawtooth (peak reachable 100)") || bound != 0 || r.Policy != name || r.LimitBytes != 99 || r.Cycle != 2500 {
			t.Errorf("%s: %+v, %v, %v", name, r, bound, err)
		}
		none := cfg
		none.Limit = 0
		if r, bound, err := Optimum(name, w, none); err != nil || bound != 0 || r.Collections != 0 || r.PeakLive != 20000 {
			t.Errorf("%s without a limit: %+v, %v, %v", name, r, bound, err)
		}
		was := mostPoints
		mostPoints = 219
		if _, _, err := Optimum(name, w, cfg); !errors.Is(err, ErrTooLong) || !strings.HasSuffix(err.Error(), ": 220 allocations and waits, at most 219") {
			t.Errorf("%s: %v", name, err)
		}
		mostPoints = 220
		if _, _, err := Optimum(name, w, cfg); err != nil {
			t.Error(err)
		}
		mostPoints = was
		none.Machine = new(Machine)
		if r, _, err := Optimum(name, w, none); err != errBaseOnly || r != (Result{}) {
			t.Errorf("%s with a machine: %+v, %v", name, r, err)
		}
	}
	defer func() {
		if p := recover(); p != "sim: no optimum best" {
			t.Errorf("an unknown one: %v", p)
		}
	}()
	Optimum("best", w, cfg)
}

// TestSearchesOfAWorkload: each finds what a look at one point after the other finds.
func TestSearchesOfAWorkload(t *testing.T) {
	check(t, 300, func(t *random) {
		w, err := Compile(genEvents(t, t.coin(), 200), pressure.Host)
		if err != nil {
			t.Fatal(err)
		}
		i := t.IntN(len(w.points) + 1)
		j := i + t.IntN(len(w.points)-i+1)
		sync := slices.IndexFunc(w.points[i:], func(p point) bool { return p.sync })
		if sync < 0 {
			sync = len(w.points) - i
		}
		if got := w.nextSync[i]; int(got) != i+sync {
			t.Fatalf("the next wait from %d is %d, want %d", i, got, i+sync)
		}
		top, at := int64(t.IntN(int(w.AllocatedBytes+2))), int64(t.IntN(int(w.Span+2)))
		most, first, later := int64(0), j, j
		for k := j - 1; k >= i; k-- {
			p := &w.points[k]
			if most = max(most, p.top()); p.top() >= top {
				first = k
			}
			if p.time >= at {
				later = k
			}
		}
		if got := w.maxTop(i, j); got != most {
			t.Fatalf("the most of %d to %d is %d, want %d", i, j, got, most)
		}
		if got := w.firstTop(i, j, top); got != first {
			t.Fatalf("from %d to %d, %d bytes are first there at %d, want %d", i, j, top, got, first)
		}
		if got := w.firstTime(i, j, at); got != later {
			t.Fatalf("from %d to %d, %d ns are first over at %d, want %d", i, j, at, got, later)
		}
	})
}
