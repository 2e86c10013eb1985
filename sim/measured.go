package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
)

// A measured is the state of one run in the world of a [Machine]. It steps every event. Its times
// are in ns.
type measured struct {
	w        *Workload
	governor *governor.Governor
	account  governor.Memory
	run      governor.Run // the cycle under way
	ladder   governor.Ladder
	cfg      Config
	machine  *Machine
	memory   Memory
	mapped   int64 // chunks
	noise    *rand.Rand
	stalls   *rand.Rand          // apart from noise, which is the same without stalls
	learned  *policy.Expectation // as in a collector of package gc; nil: the policy is told the truth
	res      Result

	event   int // how many of the workload's have happened
	clock   clock
	device  device
	objects population
	pause   time.Duration // the last one; 0 if the program was not held
	cycle   *cycle        // under way; nil without one
	debt    float64       // the rest of the last cycle's sweep
	ended   float64       // when the last cycle settled
}

// A clock is virtual. It integrates the memory that is held over its time.
type clock struct {
	now           float64
	shift         float64 // by which pauses and slowdown have delayed the program
	slowed        float64 // part of shift
	live, garbage float64 // byte ns
}

// A device makes the program wait.
type device struct {
	ahead Runahead        // if waits are elastic
	leads int             // number of the workload's leads that have passed
	wait  int             // index of the next wait in the workload's ops
	waits []time.Duration // expected at each wait place
}

// A population is the objects of a run.
type population struct {
	number  int64              // handed out and not freed
	missing map[int32]struct{} // those whose allocation failed
	dropped []int32            // dropped and not freed, oldest first
	dead    int64              // bytes of them
}

// The phases of a cycle.
const (
	starting = iota // waits for the last one's sweep, and for its mark to begin
	marking
	settling
)

type cycle struct {
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
		w: w, cfg: cfg, machine: cfg.Machine, memory: cfg.Memory,
		ended: -1 << 62, // long ago
		noise: rand.New(rand.NewPCG(cfg.Seed, 1)), stalls: rand.New(rand.NewPCG(cfg.Seed, 2)),
		device: device{waits: make([]time.Duration, w.places)}, objects: population{missing: map[int32]struct{}{}},
	}
	if r.memory == nil {
		r.memory = &exactly{w: w, limit: cfg.Limit}
	}
	r.govern(p)
	if cfg.Told.Learned {
		r.learned = policy.NewExpectation(r.governor.Processors)
		r.learned.See(uint64(r.machine.Heap), 0)
	}
	r.res = newBase(w, p, cfg).res
	r.res.Cycle = r.machine.Cycle(0, 0, 0)
	r.res.Ladder = r.res.Cycle + r.machine.Ladder
	for i, o := range w.ops {
		before := r.clock.shift
		r.work(float64(o.time) + r.clock.shift)
		for ; r.device.leads < len(w.leads) && w.leads[r.device.leads].op <= i; r.device.leads++ {
			r.device.ahead.Measured(w.leads[r.device.leads].ahead)
		}
		r.cfg.Log.slow(o.time, time.Duration(r.clock.shift-before))
		n, ref := o.arg>>2, w.refs[i]
		switch o.arg & 3 {
		case opAlloc:
			r.alloc(ref, n, o.time)
		case opSync:
			r.sync(ref, n, o.time)
		case opDrop:
			if !r.gone(ref) {
				r.objects.dropped = append(r.objects.dropped, ref)
				r.objects.dead += n
			}
			r.event++
		case opFree:
			if !r.gone(ref) {
				r.memory.Free(ref)
				r.objects.number--
			}
			r.event++
		}
	}
	return r.finish()
}

// govern sets up the governor. Caps need the work of a cycle: on a machine that does not say it there
// are none.
func (r *measured) govern(p policy.Policy) {
	caps := uncapped
	if r.machine.Work > 0 {
		caps = governor.Caps{}
	}
	r.governor = governor.New(caps, p)
	r.governor.Processors, r.governor.Heap = max(1, r.machine.Cores), r.machine.Heap
	r.account.Space, r.account.Limit = r.w.Space, r.cfg.Told.limit(r.cfg.Limit)
	r.governor.Add(&r.account)
}

// gone reports whether an object that ends is missing, because its allocation failed, and forgets
// it.
func (r *measured) gone(object int32) bool {
	_, missing := r.objects.missing[object]
	delete(r.objects.missing, object)
	return missing
}

// work lets the program work until a time, which a cycle beside it delays. If the time is over, it
// returns at once.
func (r *measured) work(until float64) {
	left := until - r.clock.now
	if gap := float64(r.machine.IdleGap); gap > 0 && left > gap {
		r.pass(left, false)
		return
	}
	for left > 0 && r.cycle != nil && r.machine.Slowdown > 0 {
		did := min(left, r.cycle.left*max(1, r.machine.Stretch)/(1+r.machine.Slowdown))
		r.pass(did*(1+r.machine.Slowdown), true)
		r.clock.shift += did * r.machine.Slowdown
		r.clock.slowed += did * r.machine.Slowdown
		left -= did
	}
	r.pass(left, true)
}

// pass lets time go by. A cycle is slower while the program works.
func (r *measured) pass(d float64, working bool) {
	if d <= 0 {
		return
	}
	rate := 1.0
	if working && r.machine.Stretch > 1 {
		rate = 1 / r.machine.Stretch
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
		r.clock.now += d
		r.clock.live += float64(r.memory.Live()) * d
		r.clock.garbage += float64(r.objects.dead) * d
	}
}

// hold keeps the program until the cycle under way has ended, and extra after that. If more is set,
// it prolongs the last pause.
func (r *measured) hold(extra float64, at int64, more bool) {
	begin := r.clock.now
	if r.cycle != nil {
		r.cycle.held = begin
	}
	for r.cycle != nil {
		r.pass(r.cycle.left, false)
	}
	r.pass(extra, false)
	if !more {
		r.pause = 0
	}
	e := r.clock.now - begin
	if e <= 0 {
		return
	}
	r.clock.shift += e
	r.device.ahead.Pause(e)
	d := time.Duration(e)
	if l := r.cfg.Log; l != nil {
		if r.pause == 0 {
			l.Pauses = append(l.Pauses, Pause{At: time.Duration(begin), Trace: time.Duration(at), seq: int64(r.event)})
		}
		l.Pauses[len(l.Pauses)-1].Length += d
	}
	r.pause += d
	r.res.ExposedPause += d
	r.res.MaxPause = max(r.res.MaxPause, r.pause)
}

func (r *measured) alloc(object int32, z, at int64) {
	if live := r.memory.Live(); live+z >= r.account.Wake && r.account.Rest.Over(time.Duration(r.clock.now), live) {
		r.look()
		if r.obey(r.governor.Allocate(time.Duration(r.clock.now), &r.account, z), at) {
			r.hold(0, at, false)
		}
	}
	if !r.admit(object, z, at) {
		r.res.FailedAllocs++
		r.objects.missing[object] = struct{}{}
		r.event++
	}
	r.res.PeakLive = max(r.res.PeakLive, r.memory.Live())
	r.pass(r.machine.Alloc.Of(1, z), true)
}

// take hands out the bytes of an object if they fit, and counts them.
func (r *measured) take(object int32, z int64) bool {
	before := r.memory.Live()
	if !r.memory.Alloc(object, z) {
		return false
	}
	r.account.Allocated += r.memory.Live() - before
	r.objects.number++
	r.event++
	return true
}

// admit takes the bytes: after the cycle under way if they do not fit, and then by the ladder. The
// ladder climbs again as long as its cycles free enough.
func (r *measured) admit(object int32, z, at int64) bool {
	if r.take(object, z) {
		r.pass(r.mapTime(), true)
		return true
	}
	r.refuse(z)
	if r.cycle != nil {
		r.hold(0, at, false)
		if r.take(object, z) {
			r.hold(r.mapTime(), at, true)
			return true
		}
	}
	for round := 1; ; round++ {
		r.refuse(z)
		freed := r.climb(z, at)
		if r.take(object, z) {
			r.hold(r.mapTime(), at, true)
			return true
		}
		if !governor.ClimbsAgain(round, freed, z) {
			return false
		}
	}
}

func (r *measured) refuse(z int64) {
	r.read()
	r.governor.Refuse(time.Duration(r.clock.now), &r.account, z)
}

// mapTime is how long it takes to map the chunks that the memory has mapped since the last call.
func (r *measured) mapTime() float64 {
	before := r.mapped
	if r.mapped = r.memory.Mapped(); r.mapped == before {
		return 0
	}
	return r.machine.Map.Of(r.mapped-before, 0)
}

// climb runs the ladder's cycle and returns the bytes that it freed.
func (r *measured) climb(z, at int64) int64 {
	extra := float64(r.machine.Ladder + r.ladder.Rest())
	r.res.RefusalCollections++
	if r.machine.Waits && r.machine.Elastic {
		extra += r.queued()
	}
	before := r.objects.dead
	r.begin(policy.TriggerRefusal, policy.Block)
	r.hold(extra, at, false)
	freed := before - r.objects.dead
	r.ladder.Collected(r.machine.Cycle(0, 0, 0), freed, z)
	return freed
}

// queued is how long the device still works on its queue: all up to the end of the next wait.
func (r *measured) queued() float64 {
	r.device.wait = max(r.device.wait, r.event)
	for r.device.wait < len(r.w.ops) && r.w.ops[r.device.wait].arg&3 != opSync {
		r.device.wait++
	}
	if r.device.wait == len(r.w.ops) {
		return 0
	}
	o := r.w.ops[r.device.wait]
	return max(0, float64(o.time+o.arg>>2)+r.clock.shift-r.device.ahead.held+r.device.ahead.Late()-r.clock.now)
}

// sync waits for the device. It has worked on while the program was held, if waits are elastic.
func (r *measured) sync(place int32, w, at int64) {
	r.look()
	hold := r.obey(r.governor.Sync(time.Duration(r.clock.now), r.device.waits[place]), at)
	wait := float64(w)
	if left := r.device.ahead.Wait(wait); r.machine.Elastic {
		wait = left
		r.clock.shift -= float64(w) - wait
	}
	r.pass(wait, false)
	r.device.waits[place] = governor.NextWait(r.device.waits[place], time.Duration(wait))
	r.event++
	if hold {
		r.hold(0, at, false)
	}
}

// look takes the readings that the governor needs, of memory and costs.
func (r *measured) look() {
	r.read()
	c := &r.governor.Costs
	c.Cost, c.Slowdown = r.machine.Cycle(r.objects.number, 0, 0), r.machine.Slowdown
	if r.learned != nil {
		c.Cost, c.Slowdown = r.learned.Cost, r.governor.Progress()
	}
	c.Cost = r.cfg.Told.cost(c.Cost)
	c.Work = time.Duration(r.machine.Work * float64(c.Cost))
}

func (r *measured) read() {
	r.account.Live, r.account.Reserved = r.memory.Live(), r.memory.Reserved()
}

// obey starts the cycle of an order, and reports whether the program is to be held.
func (r *measured) obey(o governor.Order, at int64) (hold bool) {
	r.cfg.Log.decide(time.Duration(at), &r.governor.Asked, r.governor.Answer)
	if o.Begin {
		r.res.Collections++
		r.begin(policy.TriggerPolicy, o.Action)
	}
	return o.Hold
}

func (r *measured) begin(trigger policy.Trigger, action policy.Action) {
	r.read()
	r.run = r.governor.Began(time.Duration(r.clock.now), governor.Cause{Trigger: trigger, Action: action, Memory: &r.account})
	c := &cycle{
		noise: r.machine.Noise.draw(r.noise), after: r.machine.After.Of(time.Duration(r.clock.now - r.ended)), begin: r.clock.now, held: math.Inf(1),
	}
	c.left = r.debt + c.noise*c.after*float64(r.machine.Start)
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
		c.mark = r.clock.now
		c.found = len(r.objects.dropped)
		c.left = c.noise*c.after*r.machine.Mark.Of(r.objects.number, r.machine.Heap) + r.machine.Stall.draw(r.stalls)
	case marking:
		c.done = r.clock.now
		var bytes int64
		for _, object := range r.objects.dropped[:c.found] {
			bytes += r.w.sizes[object]
		}
		c.left = c.noise * r.machine.Settle.Of(int64(c.found), bytes)
		r.debt = r.machine.Sweep.Of(0, r.machine.Heap)
	default:
		r.settle()
		return
	}
	if c.phase++; c.left <= 0 {
		r.next()
	}
}

// settle frees the objects that the cycle has found and tells the policy.
func (r *measured) settle() {
	c := r.cycle
	r.cycle = nil
	before := r.memory.Live()
	for _, object := range r.objects.dropped[:c.found] {
		r.objects.dead -= r.w.sizes[object]
		r.memory.Free(object)
	}
	r.objects.dropped = r.objects.dropped[c.found:]
	r.ended = r.clock.now
	r.objects.number -= int64(c.found)
	r.account.Freed = before - r.memory.Live()
	r.read()
	took := time.Duration(r.clock.now - c.begin)
	r.res.GCBusy += took
	if r.learned != nil {
		length, n, heap := took-time.Duration(c.mark-c.begin), r.governor.Processors, uint64(r.machine.Heap)
		r.learned.Learn(policy.Measured{Length: length, Work: time.Duration(n) * length, Processors: n, Scan: heap, Tracked: int(r.objects.number) + c.found})
		r.learned.See(heap, int(r.objects.number))
	}
	r.governor.Cycles++
	r.run.Duration, r.run.Exposed = took, time.Duration(max(0, r.clock.now-c.held))
	r.run.Processor = time.Duration(r.machine.Work * float64(took) * float64(r.governor.Processors))
	report := r.governor.Settled(time.Duration(r.clock.now), &r.run)
	if l := r.cfg.Log; l != nil {
		l.Cycles = append(l.Cycles, Collected{Cycle: report, seq: int64(r.event)})
	}
}

func (r *measured) finish() Result {
	r.res.Elapsed, r.res.Slowed = time.Duration(math.Round(r.clock.now)), time.Duration(math.Round(r.clock.slowed))
	if r.clock.now > 0 {
		r.res.MeanLive, r.res.MeanGarbage = r.clock.live/r.clock.now, r.clock.garbage/r.clock.now
	}
	return r.res
}
