package gc

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestCollectorAgainstAModel runs random schedules against what they must come
// to: when the policy is asked and what it is shown, what each cycle finds and
// reports, and every object given back exactly once: while cycles run, while one
// is held in the middle of its walk, while policies change and panic, functions
// that give memory back panic, and the collector is closed.
func TestCollectorAgainstAModel(t *testing.T) {
	quiet(t)
	schedules(t, 400, func(rt *draw) {
		limit := oneOf(rt, int64(0), 60, 300)
		c, err := New(Config{Policy: policy.Spec{}.New(), Limit: limit, Caps: uncapped})
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		c.own()
		patient(c) // for the walk that is held
		m := &model{c: c, limit: limit, most: between(rt, uint64(1), 4)}
		m.setPolicy(rt)
		rt.repeat(map[string]func(*draw){
			"own":        m.own,
			"own again":  m.own, // more often than the rest
			"own more":   m.own,
			"release":    m.release,
			"drop":       m.drop,
			"sync":       m.sync,
			"due":        m.due,
			"collect":    m.collect,
			"natural":    m.natural,
			"hold":       m.hold,
			"set policy": m.setPolicy,
			"close":      m.close,
		}, m.check)
		atRest(t, c)
	})
}

// A model is what one goroutine knows of its collector. Between operations no
// cycle is under way.
type model struct {
	c       *Collector
	limit   int64
	most    uint64 // cycles, about: they take long
	objects []*object
	closed  bool
	running bool      // a cycle is held in its walk ...
	walked  []*object // ... of what is dead; the walk may have come past it

	policy *watching // nil: never
	points int       // that the policy has seen
	told   int       // cycles that the policy has seen
	wake   int64

	futile               int64 // live bytes when the limit could not be kept
	allocated, liveAfter int64 // gross bytes since the last cycle, and live then
	inexact              bool  // the two are not known: others ran beside the last cycle

	cycles    [triggers]uint64
	decisions [actions]uint64
	failures  uint64 // of policies
}

// An object is outside memory with its owner.
type object struct {
	bytes    int64
	owner    *thing // nil once dropped
	handle   Handle
	fate     *fate
	released bool // by hand
	old      bool // a cycle has begun since it was tracked
}

// A fate is what became of an object's memory. Unlike the object it may be
// referred to by the function that gives back.
type fate struct {
	given  atomic.Int32 // how often
	panics bool
}

// watching is a policy that says what it is told to and keeps what it sees.
type watching struct {
	next               policy.Decision
	panics, tellPanics bool
	points             []policy.Point
	cycles             []policy.Cycle
}

func (p *watching) Decide(at policy.Point) policy.Decision {
	p.points = append(p.points, at)
	if p.panics {
		panic("decide")
	}
	return p.next
}

func (p *watching) Observe(c policy.Cycle) {
	p.cycles = append(p.cycles, c)
	if p.tellPanics {
		panic("observe")
	}
}

func (p *watching) String() string { return "watching" }

// live returns the bytes that nobody has given back.
func (m *model) live() (sum int64) {
	for _, o := range m.objects {
		if o.fate.given.Load() == 0 {
			sum += o.bytes
		}
	}
	return sum
}

// byCycles returns what cycles have given back.
func (m *model) byCycles() (bytes int64, objects, panics uint64) {
	for _, o := range m.objects {
		if o.fate.given.Load() > 0 && !o.released {
			bytes += o.bytes
			objects++
			if o.fate.panics {
				panics++
			}
		}
	}
	return bytes, objects, panics
}

// A begun cycle has to find dead, and may find what is dropped beside it.
type begun struct {
	dead    []*object
	objects int // how many there were
}

func (m *model) begin() begun {
	b := begun{objects: len(m.objects)}
	for _, o := range m.objects {
		if o.owner == nil && o.fate.given.Load() == 0 {
			b.dead = append(b.dead, o)
		}
	}
	return b
}

// enough says whether there were cycles enough.
func (m *model) enough() bool {
	var n uint64
	for _, k := range m.cycles {
		n += k
	}
	return n >= m.most
}

// says draws what the policy says when it is asked next.
func (m *model) says(t *draw, among ...policy.Action) policy.Decision {
	if m.enough() && !m.running {
		among = []policy.Action{policy.Skip}
	}
	d := policy.Decision{
		Action: oneOf(t, among...),
		Wake:   oneOf(t, int64(0), 50, 150, math.MaxInt64),
	}
	if m.policy == nil {
		return policy.Decision{Wake: math.MaxInt64}
	}
	m.policy.next = d
	return d
}

// asked checks that the policy was asked once more, and what it was shown, and
// returns what came of it.
func (m *model) asked(t *draw, want policy.Point, live int64, d policy.Decision) policy.Decision {
	if p := m.policy; p != nil {
		if len(p.points) != m.points+1 {
			t.Fatalf("asked %d times, want once", len(p.points)-m.points)
		}
		at := p.points[m.points]
		for _, o := range m.walked { // counts as live until the cycle has ended
			if o.fate.given.Load() > 0 && !o.released {
				live += o.bytes
			}
		}
		want.Now, want.Wait, want.Cost, want.Work, want.Slowdown, want.Cycles = at.Now, at.Wait, at.Cost, at.Work, at.Slowdown, at.Cycles
		want.Sample.Live, want.Sample.Reserved, want.Sample.Limit = live, live, m.limit
		want.Running = m.running
		want.Allocated, want.LiveAfter, want.Freed = m.allocated, m.liveAfter, m.allocated+m.liveAfter-live
		if m.inexact {
			want.Allocated, want.LiveAfter, want.Freed = at.Allocated, at.LiveAfter, at.Freed
		}
		if at != want {
			t.Fatalf("asked with\n%+v, want\n%+v", at, want)
		}
		if p.panics {
			d = policy.Decision{}
			m.failures++
			m.policy = nil
		}
		m.points++
	}
	m.wake = d.Wake
	m.decisions[d.Action]++
	return d
}

// anything says that a number is not known.
const anything = -1

// settled checks a cycle that has ended: it has found all that it had to, and
// was told to the policy with its yield and the live bytes after it.
func (m *model) settled(t *draw, trigger policy.Trigger, action policy.Action, b begun, live int64) {
	var freed int64
	for _, o := range b.dead {
		if o.fate.given.Load() == 0 && (o.old || trigger != policy.TriggerNatural) {
			t.Fatalf("a %v cycle has not found an object of %d bytes", trigger, o.bytes)
		}
		if !o.released && o.fate.given.Load() > 0 {
			freed += o.bytes
		}
	}
	for _, o := range m.objects[:b.objects] {
		o.old = true
	}
	m.cycles[trigger]++
	m.allocated, m.liveAfter, m.inexact = 0, live, live == anything
	if !m.closed {
		m.wake = 0
	}
	p := m.policy
	if p == nil || m.closed {
		return
	}
	m.c.mu.Lock() // one that has let go of its callers may be about to tell
	told := p.cycles
	m.c.mu.Unlock()
	if len(told) <= m.told {
		t.Fatalf("the policy was not told of a %v cycle", trigger)
	}
	got := told[m.told]
	m.told++
	want := policy.Cycle{Start: got.Start, Duration: got.Duration, Work: got.Work, Exposed: got.Exposed, Trigger: trigger, Action: action, Freed: freed, LiveAfter: live, Limit: m.limit}
	if live == anything {
		want.Freed, want.LiveAfter = got.Freed, got.LiveAfter
	}
	if got != want || got.Duration <= 0 || got.Exposed > got.Duration {
		t.Fatalf("told of\n%+v, want\n%+v", got, want)
	}
	if p.tellPanics {
		m.failures++
		m.policy = nil
	}
}

func (m *model) own(t *draw) {
	bytes := between(t, 0, oneOf(t, int64(100), 9))
	among := []policy.Action{policy.Skip, policy.Overlap, policy.Block}
	if m.full(bytes) {
		if m.enough() {
			t.Skip("a cycle too many")
		}
		among = []policy.Action{policy.Skip, policy.Block} // a cycle beside Own may end in time, or not
	}
	panics := between(t, 0, 9) == 0
	m.ownAs(t, &fate{panics: panics}, bytes, func() {}, among...)
}

// full says whether more bytes pass the limit.
func (m *model) full(bytes int64) bool { return m.limit > 0 && m.live() > m.limit-bytes }

// ownAs owns an object whose memory is given back with do.
func (m *model) ownAs(t *draw, f *fate, bytes int64, do func(), among ...policy.Action) *object {
	live, b := m.live(), m.begin()
	d := m.says(t, among...)
	o := &object{bytes: bytes, owner: new(thing), fate: f}
	o.handle = ownFunc(m.c, o.owner, bytes, func() {
		defer f.given.Add(1) // counts as live until then
		do()
		if f.panics {
			panic("release")
		}
	})
	if !m.closed && live+bytes >= m.wake {
		d = m.asked(t, policy.Point{At: policy.Allocation, Request: bytes}, live, d)
		switch {
		case m.running || d.Action == policy.Skip:
		case d.Action == policy.Overlap: // the object may be counted before or after its end
			m.c.Wait()
			m.settled(t, policy.TriggerPolicy, policy.Overlap, b, anything)
		case d.Action == policy.Block:
			m.settled(t, policy.TriggerPolicy, policy.Block, b, m.live())
			live, b = m.live(), m.begin()
		}
	}
	if m.limit > 0 && live > m.limit-bytes && (m.futile == 0 || live-m.futile >= m.limit/8) {
		if !m.closed {
			m.settled(t, policy.TriggerRefusal, policy.Block, b, m.live())
		}
		if m.futile = 0; m.full(bytes) {
			m.futile = m.live()
		}
	}
	m.objects = append(m.objects, o)
	m.allocated += bytes
	return o
}

// pick draws an object, whatever has become of it.
func (m *model) pick(t *draw) *object {
	if len(m.objects) == 0 {
		t.Skip("nothing owned")
	}
	return m.objects[between(t, 0, len(m.objects)-1)]
}

func (m *model) drop(t *draw) { m.pick(t).owner = nil }

// release gives an object back by hand, which only works if nobody has. Of a
// dead one beside a cycle nobody knows.
func (m *model) release(t *draw) { m.releaseBeside(t, m.running) }

func (m *model) releaseBeside(t *draw, cycle bool) {
	o := m.pick(t)
	given := o.fate.given.Load()
	ok := givesBack(o.handle)
	if ok && given > 0 || !ok && given == 0 && !(cycle && o.owner == nil) {
		t.Fatalf("Release of memory that was given back %d times: %v", given, ok)
	}
	o.released = o.released || ok
	runtime.KeepAlive(o.owner)
	o.owner = nil
}

// givesBack calls Release, which hands a panic of the function that it calls on.
func givesBack(h Handle) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	return h.Release()
}

func (m *model) sync(t *draw) {
	live, b := m.live(), m.begin()
	d := m.says(t, policy.Skip, policy.Overlap, policy.Block)
	beside := 0
	if d.Action != policy.Skip && !m.closed && !m.running && len(m.objects) > 0 {
		beside = between(t, 0, 3)
	}
	m.c.Sync(nil, func() error {
		for range beside {
			m.releaseBeside(t, true)
			m.drop(t)
		}
		return nil
	})
	if m.closed {
		return
	}
	d = m.asked(t, policy.Point{At: policy.Sync, WillBlock: true}, live, d)
	if d.Action == policy.Skip || m.running {
		return
	}
	m.c.Wait()
	if beside > 0 {
		m.settled(t, policy.TriggerPolicy, d.Action, b, anything)
	} else {
		m.settled(t, policy.TriggerPolicy, d.Action, b, m.live())
	}
}

func (m *model) due(t *draw) {
	d := m.says(t, policy.Skip, policy.Overlap, policy.Block)
	due := m.c.Due()
	if m.closed {
		d = policy.Decision{}
	} else {
		d = m.asked(t, policy.Point{At: policy.Sync}, m.live(), d)
	}
	if due != (d.Action != policy.Skip) {
		t.Fatalf("due: %v, but the policy said %v", due, d.Action)
	}
}

func (m *model) collect(t *draw) {
	if m.enough() {
		t.Skip("a cycle too many")
	}
	b := m.begin()
	trigger := oneOf(t, policy.TriggerExplicit, policy.TriggerRefusal)
	got := m.c.Collect(trigger)
	if m.closed {
		if got != (policy.Cycle{}) {
			t.Fatalf("a closed collector has collected: %+v", got)
		}
		return
	}
	m.settled(t, trigger, policy.Block, b, m.live())
	if last := m.c.Stats().Last; got != last {
		t.Fatalf("Collect returned\n%+v, the last cycle was\n%+v", got, last)
	}
}

// natural has the runtime collect by itself. What is young may be missed.
func (m *model) natural(t *draw) {
	if m.enough() {
		t.Skip("a cycle too many")
	}
	for range between(t, 1, 2) {
		b := m.begin()
		m.c.Stats() // takes the lock: the race detector does not know that what was read so far comes before the cycle
		runtime.GC()
		m.c.Reap()
		for m.c.Stats().Cycles[policy.TriggerNatural] == m.cycles[policy.TriggerNatural] { // somebody else has begun to
			runtime.Gosched()
		}
		m.settled(t, policy.TriggerNatural, policy.Overlap, b, m.live())
		for range min(3, len(m.objects)) {
			m.drop(t)
		}
	}
}

func (m *model) setPolicy(t *draw) {
	m.policy = &watching{panics: between(t, 0, 9) == 0, tellPanics: between(t, 0, 9) == 0}
	m.points, m.told = 0, 0
	m.c.SetPolicy(m.policy)
	if !m.closed {
		m.wake = 0
	}
}

func (m *model) close(t *draw) {
	if between(t, 0, 3) != 0 {
		t.Skip("not yet")
	}
	m.c.Close()
	m.closed, m.wake = true, math.MaxInt64
}

// hold stops a cycle in the middle of its walk and does something meanwhile.
func (m *model) hold(t *draw) {
	if m.closed || m.full(1) || m.enough() {
		t.Skip("no cycle")
	}
	walking, proceed := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(proceed) })
	defer goOn()
	stop := m.ownAs(t, new(fate), 1, func() { close(walking); <-proceed }, policy.Skip)
	stop.owner = nil
	first, exposed := m.begin(), m.c.Stats().Exposed
	waiting := []chan held{m.collects()}
	select {
	case <-walking:
	case <-waiting[0]:
		t.Fatal("a cycle has not found what was dropped before it")
	}
	m.running = true
	m.walked = slices.DeleteFunc(slices.Clone(first.dead), func(o *object) bool { return o == stop })
	closing := make(chan held, 1)
	for range between(t, 0, 6) {
		switch what := oneOf(t, "own", "release", "drop", "due", "set policy", "collect", "close"); {
		case what == "own" && !m.full(50):
			m.ownAs(t, new(fate), 50, func() {}, policy.Skip, policy.Overlap)
		case what == "release":
			m.release(t)
		case what == "drop":
			m.drop(t)
		case what == "due":
			m.due(t)
		case what == "set policy":
			m.setPolicy(t)
		case what == "collect" && len(waiting) < 2:
			waiting = append(waiting, m.collects())
		case what == "close" && !m.closed:
			go func() { m.c.Close(); closing <- held{} }()
			m.c.awaitClosed()
			m.closed, m.wake = true, math.MaxInt64
		}
		m.check(t)
	}
	for _, w := range append(waiting, closing) {
		select {
		case <-w:
			t.Fatal("somebody has not waited for the cycle under way")
		default:
		}
	}
	second := m.begin()
	goOn()
	m.running, m.walked = false, nil
	var took time.Duration
	for i, w := range waiting {
		got := <-w
		if (got.cycle == policy.Cycle{}) != (i > 0 && m.closed) {
			t.Fatalf("Collect %d beside a cycle, closed %v: %+v", i, m.closed, got)
		}
		took += got.took
	}
	if m.closed {
		<-closing
	}
	if all := m.c.Stats().Exposed - exposed; all > took {
		t.Fatalf("callers were held for %v, but it took them %v", all, took)
	}
	m.settledBoth(t, first, second, len(waiting) > 1 && !m.closed)
}

// settledBoth checks the cycle that was held and, if one was asked for, the next.
func (m *model) settledBoth(t *draw, first, second begun, both bool) {
	live, held := m.live(), map[*object]bool{}
	for _, o := range first.dead {
		held[o] = true
	}
	rest := begun{objects: second.objects}
	for _, o := range second.dead {
		if !held[o] {
			rest.dead = append(rest.dead, o)
			if both {
				live += o.bytes
			}
		}
	}
	m.settled(t, policy.TriggerExplicit, policy.Block, first, live)
	if both {
		m.settled(t, policy.TriggerExplicit, policy.Block, rest, m.live())
	}
}

// held is a call of Collect that had to wait.
type held struct {
	cycle policy.Cycle
	took  time.Duration
}

// collects runs Collect on a goroutine of its own.
func (m *model) collects() chan held {
	done := make(chan held, 1)
	go func() {
		began := m.c.Now()
		cycle := m.c.Collect(policy.TriggerExplicit)
		done <- held{cycle, m.c.Now() - began}
	}()
	return done
}

func (c *Collector) awaitClosed() {
	for closed := false; !closed; runtime.Gosched() {
		c.mu.Lock()
		closed = c.closed
		c.mu.Unlock()
	}
}

// check compares everything that is counted.
func (m *model) check(t *draw) {
	tracked := 0
	for _, o := range m.objects {
		given := o.fate.given.Load()
		if given > 1 || o.owner != nil && given > 0 {
			t.Fatalf("an object of %d bytes, reachable %v, was given back %d times", o.bytes, o.owner != nil, given)
		}
		if given == 0 {
			tracked++
		}
	}
	s, own := m.c.Stats(), m.c.own()
	if got, want := own.live.Load(), m.live(); got != want {
		t.Fatalf("%d bytes live, want %d", got, want)
	}
	if s.Decisions != m.decisions || s.Cycles != m.cycles {
		t.Fatalf("decisions %v, cycles %v, want %v and %v", s.Decisions, s.Cycles, m.decisions, m.cycles)
	}
	if running := m.c.running(); running != m.running {
		t.Fatalf("a cycle is under way: %v", running)
	}
	policy := "never"
	if m.policy != nil {
		policy = "watching"
	}
	if got := m.c.Policy(); got != policy {
		t.Fatalf("policy %s, want %s", got, policy)
	}
	if m.running {
		return // some of what follows is under way, too
	}
	if got := cleanupsOf[func()](own).Len(); got != tracked {
		t.Fatalf("%d objects tracked, want %d", got, tracked)
	}
	freed, objects, panics := m.byCycles()
	if s.Freed != freed || s.Objects != objects || s.Failures != m.failures+panics {
		t.Fatalf("freed %d bytes of %d objects with %d failures, want %d, %d and %d", s.Freed, s.Objects, s.Failures, freed, objects, m.failures+panics)
	}
	if err := m.c.Err(); (err != nil) != (s.Failures > 0) {
		t.Fatalf("%d failures, error %v", s.Failures, err)
	}
}
