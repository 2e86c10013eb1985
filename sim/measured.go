package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A measured is the state of one run in the world of a [Machine]. It steps every
// event. Its times are in ns.
type measured struct {
	w      *Workload
	policy policy.Policy
	cfg    Config
	*Machine
	memory Memory
	mapper mapper // is memory, or nil
	mapped int64  // chunks
	random *rand.Rand
	stalls *rand.Rand // another source, so that noise is the same with stalls and without
	res    Result

	event   int           // of the workload, that is under way
	wait    int           // of the workload: the wait that comes next, as far as looked for
	now     float64       // virtual clock
	shift   float64       // by which pauses and slowdown have delayed the program
	lead    Lead          // of the device, if waits are elastic
	leads   int           // of the workload's that are over
	pause   time.Duration // the last one; 0 if the program was not held when it was to be
	wake    int64         // ask at an allocation once live + request reaches this
	futile  int           // collections of the ladder in a row that freed too little
	waits   []float64
	learned *learner // tells the policy; nil: the policy is told the truth
	debt    float64  // the rest of the last cycle's sweep
	ended   float64  // when the last cycle settled
	totals  totals   // before the event
	last    totals   // when the last cycle settled
	after   int64    // live when the last cycle settled
	cycles  uint64
	missing map[int32]struct{} // objects whose allocation failed
	dropped []int32            // objects that were dropped and not freed, oldest first
	dead    int64              // bytes of them
	wanted  int64              // live + request of what did not fit since the last cycle ended; 0 = none
	cycle   *cycle             // under way; nil if there is none
	slowed  float64            // part of shift
	area    struct{ live, garbage float64 }
}

const longAgo = -1 << 62 // ns: before the first cycle

// The phases of a cycle.
const (
	starting = iota // waits for the last one's sweep, and for its mark to begin
	marking
	settling
)

type cycle struct {
	policy.Cycle
	phase int
	left  float64 // of the phase, with the program held
	noise float64
	after float64 // factor of its mark and of the time until that begins
	found int     // how many of dropped it frees
	begin float64
	mark  float64 // when its mark began ...
	done  float64 // ... and ended
	held  float64 // since when it holds the program; infinite if it does not
}

func runMeasured(w *Workload, p policy.Policy, cfg Config) Result {
	r := &measured{
		w: w, policy: p, cfg: cfg, Machine: cfg.Machine, memory: cfg.Memory,
		random: rand.New(rand.NewPCG(cfg.Seed, 1)), stalls: rand.New(rand.NewPCG(cfg.Seed, 2)), waits: make([]float64, w.places), missing: map[int32]struct{}{}, ended: longAgo,
	}
	if r.memory == nil {
		r.memory = &exactly{w: w, limit: cfg.Limit}
	}
	r.mapper, _ = r.memory.(mapper)
	if cfg.Told.Learned {
		r.learned = newLearner(r.Cores, r.Heap, r.Sees, cfg.Seed)
	}
	r.res = newBase(w, p, cfg).res
	r.res.Cycle = r.Cycle(0, 0, 0)
	r.res.Ladder = r.res.Cycle + r.Machine.Ladder
	for i, o := range w.ops {
		r.event = i
		before := r.shift
		r.work(float64(o.time) + r.shift)
		for ; r.leads < len(w.leads) && w.leads[r.leads].op <= i; r.leads++ {
			r.lead.Measured(w.leads[r.leads].ahead)
		}
		r.cfg.Log.slow(o.time, time.Duration(r.shift-before))
		n, ref := o.arg>>2, w.refs[i]
		switch o.arg & 3 {
		case opAlloc:
			r.alloc(ref, n, o.time)
		case opSync:
			r.sync(ref, n, o.time)
		case opDrop:
			r.totals.dropped += n
			r.totals.drops++
			if !r.gone(ref) {
				r.dropped = append(r.dropped, ref)
				r.dead += n
			}
		case opFree:
			r.totals.net -= n
			r.totals.frees++
			if !r.gone(ref) {
				r.memory.Free(ref)
			}
		}
	}
	return r.finish()
}

// gone reports whether an object whose end has come is missing: its allocation failed. Then it is missing no more.
func (r *measured) gone(object int32) bool {
	_, missing := r.missing[object]
	delete(r.missing, object)
	return missing
}

// work lets the program work until a time, which a cycle beside it delays. If the time is over, the program is late and goes on at once.
func (r *measured) work(until float64) {
	left := until - r.now
	if gap := float64(r.IdleGap); gap > 0 && left > gap {
		r.pass(left, false)
		return
	}
	for left > 0 && r.cycle != nil && r.Slowdown > 0 {
		did := min(left, r.cycle.left*max(1, r.Stretch)/(1+r.Slowdown))
		r.pass(did*(1+r.Slowdown), true)
		r.shift += did * r.Slowdown
		r.slowed += did * r.Slowdown
		left -= did
	}
	r.pass(left, true)
}

// pass lets time go by. A cycle comes along more slowly while the program works.
func (r *measured) pass(d float64, working bool) {
	if d <= 0 {
		return
	}
	rate := 1.0
	if working && r.Stretch > 1 {
		rate = 1 / r.Stretch
	}
	for d > 0 && r.cycle != nil {
		part := min(d, r.cycle.left/rate)
		r.tick(part)
		r.cycle.left -= part * rate
		if d -= part; r.cycle.left <= 1e-6 {
			r.next()
		}
	}
	r.debt = max(0, r.debt-d*rate)
	r.tick(d)
}

func (r *measured) tick(d float64) {
	if d > 0 {
		r.now += d
		r.area.live += float64(r.memory.Live()) * d
		r.area.garbage += float64(r.dead) * d
	}
}

// hold keeps the program until the cycle under way has ended, and extra after
// that. What it would have waited anyway is over.
func (r *measured) hold(extra float64, at int64) {
	begin := r.now
	if r.cycle != nil {
		r.cycle.held = begin
	}
	for r.cycle != nil {
		r.pass(r.cycle.left, false)
	}
	r.pass(extra, false)
	r.pause = 0
	r.paused(begin, r.now-begin, at)
}

func (r *measured) prolong(d float64, at int64) {
	begin := r.now
	r.pass(d, false)
	r.paused(begin, d, at)
}

// paused notes that the program was held for e ns: a pause, or more of the one before it.
func (r *measured) paused(begin, e float64, at int64) {
	if e <= 0 {
		return
	}
	r.shift += e
	r.lead.Pause(e)
	d := time.Duration(e)
	if l := r.cfg.Log; l != nil {
		if r.pause == 0 {
			l.Pauses = append(l.Pauses, Pause{At: time.Duration(begin), Trace: time.Duration(at), seq: r.totals.seq()})
		}
		l.Pauses[len(l.Pauses)-1].Length += d
	}
	r.pause += d
	r.res.ExposedPause += d
	r.res.MaxPause = max(r.res.MaxPause, r.pause)
}

func (r *measured) alloc(object int32, z, at int64) {
	if r.memory.Live()+z >= r.wake {
		d := r.ask(policy.Point{At: policy.Allocation, Request: z}, at)
		if r.obey(d) {
			r.hold(0, at)
		}
	}
	if !r.admit(object, z, at) {
		r.res.FailedAllocs++
		r.missing[object] = struct{}{}
	}
	r.res.PeakLive = max(r.res.PeakLive, r.memory.Live())
	r.totals.gross += z
	r.totals.net += z
	r.totals.allocs++
	r.pass(r.Alloc.Of(1, z), true)
}

// admit takes the bytes: after the cycle under way if they do not fit, and then by
// the ladder. The ladder climbs again as long as its cycles free enough.
func (r *measured) admit(object int32, z, at int64) bool {
	if r.memory.Alloc(object, z) {
		r.pass(r.mapping(), true)
		return true
	}
	r.wanted = r.memory.Live() + z
	if r.cycle != nil {
		r.hold(0, at)
		if r.memory.Alloc(object, z) {
			r.prolong(r.mapping(), at)
			return true
		}
	}
	for range maxRounds {
		r.wanted = r.memory.Live() + z
		freed := r.climb(z, at)
		if r.memory.Alloc(object, z) {
			r.prolong(r.mapping(), at)
			return true
		}
		if freed < z {
			break
		}
	}
	return false
}

// mapping is how long it takes to map what the memory has mapped since the last call.
func (r *measured) mapping() float64 {
	if r.mapper == nil {
		return 0
	}
	before := r.mapped
	r.mapped = r.mapper.Mapped()
	if r.mapped == before {
		return 0
	}
	return r.Map.Of(r.mapped-before, 0)
}

// How the ladder of a pool goes on: pool.climb and pool.backOff.
const (
	maxRounds  = 3
	maxBackOff = float64(256 * time.Millisecond)
	maxDouble  = 3
)

// climb runs the ladder's cycle and returns the bytes that it freed.
func (r *measured) climb(z, at int64) int64 {
	extra := float64(r.Machine.Ladder)
	if r.futile > 0 {
		extra += min(maxBackOff, float64(r.Cycle(0, 0, 0))*float64(int64(1)<<min(r.futile-1, maxDouble)))
	}
	r.res.RefusalCollections++
	if r.Waits && r.Elastic {
		extra += r.queued()
	}
	before := r.dead
	r.begin(policy.TriggerRefusal, policy.Block)
	r.hold(extra, at)
	freed := before - r.dead
	if r.futile++; freed >= z {
		r.futile = 0
	}
	return freed
}

// queued is how long the device still works on its queue: all up to the end of the
// next wait.
func (r *measured) queued() float64 {
	r.wait = max(r.wait, r.event)
	for r.wait < len(r.w.ops) && r.w.ops[r.wait].arg&3 != opSync {
		r.wait++
	}
	if r.wait == len(r.w.ops) {
		return 0
	}
	o := r.w.ops[r.wait]
	return max(0, float64(o.time+o.arg>>2)+r.shift-r.lead.held+r.lead.Late()-r.now)
}

// sync waits for the device. It has worked on while the program was held, if
// waits are elastic.
func (r *measured) sync(place int32, w, at int64) {
	d := r.ask(policy.Point{At: policy.Sync, Wait: time.Duration(r.waits[place]), WillBlock: true}, at)
	hold := r.obey(d)
	wait := float64(w)
	if left := r.lead.Wait(wait); r.Elastic {
		wait = left
		r.shift -= float64(w) - wait
	}
	r.pass(wait, false)
	if old := r.waits[place]; old == 0 {
		r.waits[place] = wait
	} else {
		r.waits[place] = old + (wait-old)/4 // as gc.WaitPlace learns
	}
	r.totals.wait += w
	r.totals.syncs++
	if hold {
		r.hold(0, at)
	}
}

func (r *measured) ask(p policy.Point, at int64) policy.Decision {
	p.Now = time.Duration(r.now)
	p.Sample = pressure.Sample{Space: r.w.Space, Live: r.memory.Live(), Reserved: r.memory.Reserved(), Limit: r.cfg.Told.limit(r.cfg.Limit)}
	p.Allocated = r.totals.gross - r.last.gross
	p.Freed = (r.totals.gross - r.totals.net) - (r.last.gross - r.last.net)
	p.LiveAfter, p.Cycles, p.Running = r.after, r.cycles, r.cycle != nil
	p.Cost, p.Slowdown = r.Cycle(r.tracked(), 0, 0), r.Slowdown
	r.learned.tell(&p)
	p.Cost = r.cfg.Told.cost(p.Cost)
	d := r.policy.Decide(p)
	r.wake = d.Wake
	r.cfg.Log.decide(time.Duration(at), &p, d)
	return d
}

func (r *measured) tracked() int64 {
	return int64(r.totals.allocs) - int64(r.totals.frees) - int64(r.totals.drops) + int64(len(r.dropped)) - int64(len(r.missing))
}

// obey starts what a policy asks for, and reports whether the program is to be held.
func (r *measured) obey(d policy.Decision) (hold bool) {
	if d.Action != policy.Skip && r.cycle == nil {
		r.res.Collections++
		r.begin(policy.TriggerPolicy, d.Action)
	}
	return d.Action == policy.Block
}

func (r *measured) begin(trigger policy.Trigger, action policy.Action) {
	c := &cycle{
		Cycle: policy.Cycle{Start: time.Duration(r.now), Trigger: trigger, Action: action},
		noise: r.Noise.draw(r.random), after: r.After.Of(time.Duration(r.now - r.ended)), begin: r.now, held: math.Inf(1),
	}
	c.left = r.debt + c.noise*c.after*float64(r.Start)
	r.cycle, r.debt = c, 0
	if c.left <= 0 {
		r.next()
	}
}

// next ends the phase that has nothing left.
func (r *measured) next() {
	c := r.cycle
	switch c.phase {
	case starting:
		c.mark = r.now
		c.found = len(r.dropped)
		c.left = c.noise*c.after*r.Mark.Of(r.tracked(), r.Heap) + r.Stall.draw(r.stalls)
	case marking:
		c.done = r.now
		var bytes int64
		for _, object := range r.dropped[:c.found] {
			bytes += r.w.sizes[object]
		}
		c.left = c.noise * r.Settle.Of(int64(c.found), bytes)
		r.debt = r.Sweep.Of(0, r.Heap)
	default:
		r.settle()
		return
	}
	if c.phase++; c.left <= 0 {
		r.next()
	}
}

// settle frees what the cycle has found and tells the policy.
func (r *measured) settle() {
	c := r.cycle
	r.cycle = nil
	before := r.memory.Live()
	for _, object := range r.dropped[:c.found] {
		r.dead -= r.w.sizes[object]
		r.memory.Free(object)
	}
	r.dropped = r.dropped[c.found:]
	r.cycles++
	r.ended = r.now
	r.after, r.last = r.memory.Live(), r.totals
	c.Duration = time.Duration(r.now - c.begin)
	c.Exposed = time.Duration(max(0, r.now-c.held))
	c.Wanted, r.wanted = r.wanted, 0
	c.Freed, c.LiveAfter, c.Limit = before-r.after, r.after, r.cfg.Told.limit(r.cfg.Limit)
	r.res.GCBusy += c.Duration
	if r.learned != nil {
		r.learned.learn(c.Duration, time.Duration(c.mark-c.begin), time.Duration(c.done-c.begin), r.tracked(), int64(c.found))
	}
	if l := r.cfg.Log; l != nil {
		l.Cycles = append(l.Cycles, Collected{Cycle: c.Cycle, seq: r.totals.seq()})
	}
	r.policy.Observe(c.Cycle)
	r.wake = 0
}

func (r *measured) finish() Result {
	r.res.Elapsed, r.res.Slowed = time.Duration(math.Round(r.now)), time.Duration(math.Round(r.slowed))
	if r.now > 0 {
		r.res.MeanLive, r.res.MeanGarbage = r.area.live/r.now, r.area.garbage/r.now
	}
	return r.res
}
