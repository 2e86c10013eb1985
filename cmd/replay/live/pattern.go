package live

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A made-up program has phases. A phase keeps a number of small objects, makes garbage of about
// one size at one rate, drops it after a while, and waits now and then. All of these are drawn
// evenly on a logarithmic scale. A phase lasts long enough for caches and cores to reach a
// steady state.
const (
	patternLimit = 1 << 30 // of its pool
	patternPhase = 150 * time.Millisecond
	patternKept  = 4000      // objects at most
	keptSize     = 4 << 10   // bytes
	patternLife  = 256 << 20 // bytes of garbage that are reachable for a while, at most
)

func pattern(seed uint64, space pressure.Space, d time.Duration) *trace.Trace {
	b := builder{t: &trace.Trace{Name: "calibration", Labels: []string{"", "wait"}}, space: space, random: rand.New(rand.NewPCG(seed, 1))}
	for b.now < d {
		b.phase(b.now + patternPhase)
	}
	return b.t
}

// beat is a steady program: it does the same all the time.
func beat(space pressure.Space, d time.Duration) *trace.Trace {
	b := builder{t: &trace.Trace{Name: "pace"}, space: space}
	for ; b.now < d; b.now += beatEvery {
		b.fresh = b.drop(append(b.fresh, b.alloc(beatSize)), len(b.fresh)-beatLife)
	}
	return b.t
}

const (
	beatEvery = 500 * time.Microsecond
	beatSize  = 64 << 10
	beatLife  = 16 // objects
)

type builder struct {
	t           *trace.Trace
	space       pressure.Space
	random      *rand.Rand
	now         time.Duration
	id          uint64
	kept, fresh []object
}

type object struct {
	id    uint64
	bytes int64
}

func (b *builder) phase(end time.Duration) {
	r := b.random
	every := time.Duration(between(r, 10e3, 3e6))
	size := between(r, 512, 4<<20)
	keep := int(between(r, 1, patternKept))
	life := int(min(between(r, 1, 500), patternLife/(2*size)))
	steps, wait := int(between(r, 5, 500)), time.Duration(between(r, 10e3, 20e6))
	for n := 1; b.now < end; n++ {
		b.now += every
		if len(b.kept) < keep {
			b.kept = append(b.kept, b.alloc(keptSize))
		} else {
			b.fresh = append(b.fresh, b.alloc(int64(size*between(r, 0.5, 2))))
		}
		b.fresh = b.drop(b.fresh, len(b.fresh)-life)
		b.kept = b.drop(b.kept, len(b.kept)-keep)
		if n%steps == 0 {
			b.t.Record(trace.Event{Time: int64(b.now), Kind: trace.Sync, Duration: wait, Aux: 1})
			b.now += wait
		}
	}
}

func (b *builder) alloc(bytes int64) object {
	b.id++
	b.t.Record(trace.Event{Time: int64(b.now), Kind: trace.Alloc, ID: b.id, Bytes: bytes, Space: b.space})
	return object{b.id, bytes}
}

// drop drops the first n objects, and returns the others.
func (b *builder) drop(all []object, n int) []object {
	for ; n > 0; n-- {
		b.t.Record(trace.Event{Time: int64(b.now), Kind: trace.Drop, ID: all[0].id, Bytes: all[0].bytes, Space: b.space})
		all = all[1:]
	}
	return all
}

// between returns a random number, evenly distributed on a logarithmic scale.
func between(r *rand.Rand, least, most float64) float64 {
	return least * math.Exp(r.Float64()*math.Log(most/least))
}

// A prober is the policy of a calibration. It requests cycles in rhythms. The cycles of a rhythm
// start about the same time after one another, and either all hold the program or all run beside
// it. In some rhythms there is no request, and cycles come from refusals. A rhythm lasts long
// enough for caches and cores to reach a steady state.
type prober struct {
	random *rand.Rand    // nil: there is one rhythm
	gap    time.Duration // between two cycles of this rhythm
	beside bool          // the cycles of this rhythm do not hold the program
	until  time.Duration // when this rhythm may end
	least  int           // cycles that it still has at least
	last   time.Duration // when the last cycle ended

	mu    sync.Mutex
	count int          // cycles so far
	cycle policy.Cycle // the last of them
}

const (
	rhythmTime   = 200 * time.Millisecond
	rhythmCycles = 4
	leastGap     = 100e3 // ns
	mostGap      = 300e6 // ns; also the length of a rhythm without requests
)

// Decide requests a cycle if the gap of the rhythm has passed.
func (p *prober) Decide(at policy.Point) policy.Decision {
	if p.random != nil && at.Now >= p.until && p.least <= 0 {
		p.gap, p.until, p.least = mostGap, at.Now+rhythmTime, rhythmCycles
		p.beside = p.random.IntN(2) > 0
		if p.random.IntN(8) > 0 {
			p.gap = time.Duration(between(p.random, leastGap, mostGap))
		}
	}
	switch {
	case at.Running || at.Now-p.last < p.gap:
		return policy.Decision{Reason: "not yet"}
	case p.beside:
		return policy.Decision{Action: policy.Overlap, Reason: "calibration"}
	case at.At == policy.Allocation:
		return policy.Decision{Action: policy.Block, Reason: "calibration"}
	}
	return policy.Decision{Reason: "holds at allocations"}
}

// Observe starts the next gap.
func (p *prober) Observe(c policy.Cycle) {
	p.least--
	p.last = c.Start + c.Duration
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.cycle = p.count+1, c
}

// ended returns the number of cycles so far and the last of them. It is safe for concurrent use.
func (p *prober) ended() (int, policy.Cycle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count, p.cycle
}

func (p *prober) String() string { return "calibration" }
