package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// ErrNoAdvice reports a workload on which no policy meets the conditions at any limit.
var ErrNoAdvice = errors.New("no policy keeps within the bound at any limit")

// A Question asks for advice on one workload.
type Question struct {
	Workload *sim.Workload
	Policies []Contender // that may be chosen; optima are ignored
	World    World       // its costs count
	// Lost is the largest share of the recorded time that may be lost; 0 is DefaultLost.
	Lost float64
	// Most is the largest limit that the memory allows, in bytes: see [Known]. 0: any.
	Most int64
	// Variants is the number of other worlds in which the limit must be enough. Their cycles take
	// 0.7 to 1.4 times as long. If World has a machine, their noise has other seeds. If not, their
	// predictions of waits are wrong by up to a half. 0 tries World alone.
	Variants int
	// Progress receives the share of the searches that have ended; nil = off. Calls may be
	// concurrent.
	Progress func(share float64)

	searches *searches
}

// searches counts the searches for a smallest limit that have ended.
type searches struct {
	total int // expected
	done  atomic.Int64
	tell  func(share float64)
}

func (s *searches) end() {
	if n := s.done.Add(1); s.tell != nil {
		s.tell(min(1, float64(n)/float64(s.total)))
	}
}

// DefaultLost is 1%: a smaller loss is hard to tell from the noise of a machine.
const DefaultLost = 0.01

// DefaultVariants is the number of other worlds that the commands try.
const DefaultVariants = 10

// Known returns the largest memory known for a recording, in bytes. That is the device, if its
// size is given. Otherwise it is the larger one of this machine's memory and the recorded
// program's.
func Known(device, machine, had int64) int64 {
	if device > 0 {
		return device
	}
	return max(machine, had)
}

// Had returns the most bytes that the recorded memory held or reserved at once.
func Had(t *trace.Trace) int64 {
	s := recording.StatsOf(t, sim.SpaceOf(t))
	return max(s.PeakHeld, s.PeakReserved)
}

// Advice is the answer to a [Question]: the policy that needs the smallest limit without a
// refusal and within the bound on lost time. Its JSON form has nanoseconds in _ns and bytes in
// _bytes.
type Advice struct {
	Trace     string        `json:"trace"`
	Policy    string        `json:"policy"`
	Limit     int64         `json:"limit_bytes"`          // to set: Most, rounded up
	Least     int64         `json:"least_limit_bytes"`    // smallest limit in the easiest world
	Most      int64         `json:"most_limit_bytes"`     // smallest limit in the hardest world
	Reachable int64         `json:"peak_reachable_bytes"` // no lower limit is enough
	Memory    int64         `json:"memory_bytes"`         // the largest limit that was tried; 0: any
	Cycle     time.Duration `json:"cycle_ns"`             // assumed length of a cycle
	Bound     float64       `json:"lost_bound"`           // share of the recorded time that may be lost
	Variants  int           `json:"variants"`             // other worlds that were tried
	Unmet     int           `json:"variants_unmet"`       // worlds in which no limit is enough
	Choice    Option        `json:"choice"`               // the policy under Limit
	Others    []Option      `json:"others"`               // the other policies under Limit, by increasing loss
}

// An Option is a policy under the advised limit.
type Option struct {
	Policy   string        `json:"policy"`
	Needs    int64         `json:"needs_limit_bytes"` // the smallest limit at which it loses no more than the choice; 0: none
	Exposed  time.Duration `json:"exposed_pause_ns"`
	P99      time.Duration `json:"p99_pause_ns"`
	Longest  time.Duration `json:"max_pause_ns"`
	Pauses   int           `json:"pauses"`
	Cycles   int           `json:"cycles"`
	Refusals int           `json:"refusals"`
	Failed   int           `json:"failed_allocs"`
	Slowed   time.Duration `json:"slowed_ns"`  // time that the program lost beside cycles, if the machine slows it down
	Lost     float64       `json:"lost_share"` // (exposed pause + slowed + 0.05 x collector time) / recorded time
	Held     float64       `json:"held_share"` // (exposed pause + slowed) / recorded time
	Core     float64       `json:"core_share"` // collector time / elapsed time: 1 is a core
}

// Advise answers a question. It replays the workload some hundred times, on all cores. It
// returns [ErrNoAdvice], or the error of the context.
func (q Question) Advise(ctx context.Context) (*Advice, error) {
	q.Lost = cmp.Or(q.Lost, DefaultLost)
	q.Policies = slices.DeleteFunc(slices.Clone(q.Policies), func(c Contender) bool { return Foresees(c.String()) })
	q.searches = &searches{total: 2*len(q.Policies) - 1 + q.Variants, tell: q.Progress} // one policy in the variants
	needs, err := q.each(ctx, len(q.Policies), func(i int) int64 { return q.smallest(q.Policies[i], q.World, q.suits) })
	if err != nil {
		return nil, err
	}
	least := int64(math.MaxInt64)
	for _, n := range needs {
		if n > 0 {
			least = min(least, n)
		}
	}
	tried := func(n int64) bool { return n > 0 && float64(n) <= near*float64(least) }
	for _, n := range needs {
		if tried(n) && n > least {
			q.searches.total += q.Variants
		}
	}
	var a *Advice
	best := -1
	for i, n := range needs {
		if !tried(n) {
			continue
		}
		b, err := q.vary(ctx, q.Policies[i], n)
		if err != nil {
			return nil, err
		}
		if a == nil || cmp.Or(cmp.Compare(b.Unmet, a.Unmet), cmp.Compare(b.Most, a.Most)) < 0 {
			a, best = b, i
		}
	}
	if a == nil {
		return nil, ErrNoAdvice
	}
	chosen := q.Policies[best]
	a.Limit = q.round(chosen, a.Most, needs[best])
	a.Choice = q.option(chosen, a.Limit)
	a.Choice.Needs = needs[best]
	lost := a.Choice.Lost
	noWorse := func(r *sim.Result) bool { return r.FailedAllocs == 0 && q.lost(r) <= lost }
	rest := slices.Delete(slices.Clone(q.Policies), best, best+1)
	needs, err = q.each(ctx, len(rest), func(i int) int64 { return q.smallest(rest[i], q.World, noWorse) })
	if err != nil {
		return nil, err
	}
	for i, p := range rest {
		o := q.option(p, a.Limit)
		o.Needs = needs[i]
		a.Others = append(a.Others, o)
	}
	slices.SortStableFunc(a.Others, func(x, y Option) int { return cmp.Compare(x.Lost, y.Lost) })
	return a, nil
}

// round rounds a limit up to one at which the policy is within the bounds too. With a little
// more memory a policy may start its cycles elsewhere and lose more. If no larger limit is
// within the bounds, round returns least, which is.
func (q *Question) round(c Contender, limit, least int64) int64 {
	for n, tries := roundUp(limit), 0; tries < 40 && (q.Most == 0 || n <= q.Most); n, tries = roundUp(n+1), tries+1 {
		if r, err := c.Run(q.Workload, q.World(n)); err == nil && q.suits(&r) {
			return n
		}
	}
	if r, err := c.Run(q.Workload, q.World(limit)); err == nil && q.suits(&r) {
		return limit
	}
	return least
}

// near is the largest limit, over the smallest one, of a policy that may still be chosen: it may
// need less in other worlds.
const near = 1.25

// vary finds the limits that a policy needs in other worlds. In the question's world it needs n.
func (q *Question) vary(ctx context.Context, c Contender, n int64) (*Advice, error) {
	cost := q.World(n).Cost
	a := &Advice{
		Trace: q.Workload.Name, Policy: c.String(), Least: n, Most: n, Reachable: q.Workload.PeakReachable,
		Memory: q.Most, Cycle: cost.Base, Bound: q.Lost, Variants: q.Variants,
	}
	needs, err := q.each(ctx, q.Variants, func(i int) int64 { return q.smallest(c, q.variant(i), q.suits) })
	for _, n := range needs {
		if n == 0 {
			a.Unmet++
			continue
		}
		a.Least, a.Most = min(a.Least, n), max(a.Most, n)
	}
	return a, err
}

// suits reports whether a policy may be advised, by a result at the limit.
func (q *Question) suits(r *sim.Result) bool {
	return r.RefusalCollections == 0 && r.FailedAllocs == 0 && q.lost(r) <= q.Lost
}

func (q *Question) lost(r *sim.Result) float64 {
	return float64(r.Objective()) / float64(max(1, r.Span))
}

// smallest is minLimit, or 0 if there is no such limit.
func (q *Question) smallest(c Contender, world World, ok func(*sim.Result) bool) int64 {
	n, err := minLimit(q.Workload, c, world, q.Most, ok)
	if err != nil {
		return 0
	}
	return n
}

// variant returns another world. Its cost is 0.7 to 1.4 times the question's, in steps of equal
// ratio, and each world has a seed of its own.
func (q *Question) variant(i int) World {
	f := 0.7 * math.Pow(2, float64(i)/float64(max(1, q.Variants-1)))
	return func(limit int64) sim.Config {
		cfg := q.World(limit)
		cfg.Seed += uint64(i + 1)
		if cfg.Machine != nil {
			cfg.Machine = cfg.Machine.Times(f)
			return cfg
		}
		cfg.Cost.Base = times(f, cfg.Cost.Base)
		cfg.Ladder.Fixed = times(f, cfg.Ladder.Fixed)
		cfg.WaitNoise = 0.5
		return cfg
	}
}

func times(f float64, d time.Duration) time.Duration { return time.Duration(f * float64(d)) }

func (q *Question) option(c Contender, limit int64) Option {
	cfg := q.World(limit)
	cfg.Log = new(sim.Log)
	r, err := c.Run(q.Workload, cfg)
	if err != nil {
		panic(err) // only an optimum has no run
	}
	return Option{
		Policy: c.String(), Exposed: r.ExposedPause, P99: recording.Percentile(cfg.Log.Lengths(), 99), Longest: r.MaxPause, Pauses: len(cfg.Log.Pauses),
		Cycles: r.Collections + r.RefusalCollections, Refusals: r.RefusalCollections, Failed: r.FailedAllocs,
		Lost: q.lost(&r), Slowed: r.Slowed, Held: float64(r.Delay()) / float64(max(1, r.Span)), Core: float64(r.GCBusy) / float64(max(1, r.Elapsed)),
	}
}

// each calls f for 0 to n-1 on all cores.
func (q *Question) each(ctx context.Context, n int, f func(int) int64) ([]int64, error) {
	out := make([]int64, n)
	var cores errgroup.Group
	cores.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		cores.Go(func() error {
			if ctx.Err() == nil {
				out[i] = f(i)
				q.searches.end()
			}
			return context.Cause(ctx)
		})
	}
	return out, cores.Wait()
}

// roundUp rounds a number of bytes up to three digits of its unit.
func roundUp(n int64) int64 {
	unit := int64(1)
	for n/unit >= 1024 {
		unit *= 1024
	}
	digits := 100.0
	switch {
	case n >= 100*unit:
		digits = 1
	case n >= 10*unit:
		digits = 10
	}
	return max(n, int64(math.Ceil(math.Ceil(float64(n)/float64(unit)*digits)/digits*float64(unit))))
}

// minLimit returns the smallest limit, in bytes, at which ok holds for the result of running w
// under c in a world. It bisects between the peak of the reachable bytes, below which nothing
// completes, and all allocated bytes. If most is not 0, it is an upper bound too. It stops at
// 1/1000 of the limit. It assumes that a condition that holds at a limit holds at larger ones,
// which is nearly true for policies.
func minLimit(w *sim.Workload, c Contender, world World, most int64, ok func(*sim.Result) bool) (int64, error) {
	holds := func(limit int64) (bool, error) {
		r, err := c.Run(w, world(limit))
		return err == nil && ok(&r), err
	}
	low, high := w.PeakReachable, max(w.PeakReachable, w.AllocatedBytes)
	if most > 0 {
		high = min(high, most)
	}
	if low > high {
		return 0, fmt.Errorf("%s: %d bytes are reachable, which is more than %d", w.Name, low, high)
	}
	if yes, err := holds(low); yes || err != nil {
		return low, err
	}
	if yes, err := holds(high); err != nil {
		return 0, err
	} else if !yes {
		return 0, fmt.Errorf("%s under %v: the condition fails even at %d bytes", w.Name, c, high)
	}
	for float64(high-low) > math.Max(1, 1e-3*float64(low)) {
		mid := low + (high-low)/2
		yes, err := holds(mid)
		if err != nil {
			return 0, err
		}
		if yes {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}
