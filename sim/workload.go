package sim

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Workload is one space of a trace, reduced to the events that matter to a policy. It is
// immutable once compiled and safe for concurrent runs.
type Workload struct {
	Name  string
	Space pressure.Space

	PeakReachable  int64         // bytes: the most that any schedule must hold at once
	AllocatedBytes int64         // gross
	Span           time.Duration // from the first event to the last
	Wait           time.Duration // sum of the waits at syncs
	Allocs         int
	Drops          int // explicit frees included
	SeenDeaths     int // Drops known only from the cycle that found them, later than the true drop
	Syncs          int

	ops      []op    // every event
	refs     []int32 // of each event: the number of its object's allocation, or of its wait place
	sizes    []int64 // of objects
	leads    []lead  // how far the device was ahead, where the trace says so
	places   int     // where the program waits
	points   []point // allocations and syncs: where a policy is asked
	nextSync []int32 // nextSync[i] is the first sync at or after points[i]; len(points) if none
	monotone bool    // the program frees nothing itself, so net only grows
	netArea  float64 // integral of net over the span, in byte ns
	deadArea float64 // integral of dropped over the span, in byte ns
	end      totals  // after the last event
}

// A lead says how far the device was ahead before an op and those after it.
type lead struct {
	op    int
	ahead float64 // ns
}

// An op is one event: the low two bits of arg say which, the rest is bytes or ns.
type op struct{ time, arg int64 }

const (
	opAlloc = iota
	opDrop
	opFree
	opSync
)

// Totals are sums over the events before some moment. Net is the bytes allocated less those that
// the program freed itself.
type totals struct {
	gross   int64 // allocated bytes
	net     int64 // bytes
	dropped int64 // bytes
	wait    int64 // ns waited at syncs
	seq     int64 // number of events: it orders what happens at one time
}

// A point is an allocation or a sync, with the totals before it.
type point struct {
	totals
	time int64 // ns from the first event
	arg  int64 // bytes of an allocation, ns of a sync's wait
	sync bool
}

// top is the net once the point has passed.
func (p *point) top() int64 {
	if p.sync {
		return p.net
	}
	return p.net + p.arg
}

// SpaceOf returns the space of t that allocates the most bytes. Commands replay it by default.
func SpaceOf(t *trace.Trace) pressure.Space {
	var bytes [256]int64
	for _, e := range t.Events {
		if e.Kind == trace.Alloc {
			bytes[e.Space] += e.Bytes
		}
	}
	best := 0
	for s, n := range bytes {
		if n > bytes[best] {
			best = s
		}
	}
	return pressure.Space(best)
}

// Compile reduces one space of a trace to a Workload. An event counts if it is an allocation, drop
// or free in that space, or a sync. Time 0 is the first of them. An explicit free takes effect at
// once under every policy, unless a drop of the object comes before it: then a cycle frees the
// object. A free that a cycle found counts as a drop, if none was recorded. An error names the
// event at which times go backwards, a size is out of range, or the object of a drop does not
// exist.
func Compile(t *trace.Trace, space pressure.Space) (*Workload, error) {
	w := &Workload{Name: t.Name, Space: space, monotone: true}
	c := compiler{w: w, objects: make(map[uint64]object), places: make(map[uint32]int32)}
	if len(t.Events) > math.MaxInt32 {
		return nil, fmt.Errorf("sim: %s: %d events, at most %d can be replayed", t.Name, len(t.Events), math.MaxInt32)
	}
	for i, e := range t.Events {
		if e.Kind == trace.Mark && t.Label(e) == trace.AheadLabel {
			w.leads = append(w.leads, lead{len(w.ops), float64(e.Duration)})
		}
		if err := c.add(e); err != nil {
			return nil, fmt.Errorf("sim: %s: event %d: %w%s", t.Name, i, err, t.Lost())
		}
	}
	if w.Allocs == 0 {
		return nil, fmt.Errorf("sim: %s: no allocations in %v", t.Name, space)
	}
	c.finish()
	return w, nil
}

type compiler struct {
	w       *Workload
	objects map[uint64]object // those that are there and not dropped, by their ID
	places  map[uint32]int32  // where the program waits, by label
	at      totals
	start   int64 // of the first event, on the trace's clock
	last    int64 // time of the last event
}

// add adds an event, if it counts.
func (c *compiler) add(e trace.Event) error {
	step := c.release
	switch {
	case e.Kind == trace.Sync:
		step = c.sync
	case e.Space != c.w.Space:
		return nil
	case e.Kind == trace.Alloc:
		step = c.alloc
	case e.Kind != trace.Drop && e.Kind != trace.Free:
		return nil
	}
	if len(c.w.ops) == 0 {
		c.start = e.Time
	}
	t := e.Time - c.start
	if t < c.last {
		return fmt.Errorf("time goes backwards: %d ns after %d ns", e.Time, c.last+c.start)
	}
	c.w.netArea += float64(c.at.net) * float64(t-c.last)
	c.w.deadArea += float64(c.at.dropped) * float64(t-c.last)
	c.last = t
	return step(t, e)
}

// largest is the largest number that an op can carry.
const largest = math.MaxInt64 >> 2

func (c *compiler) alloc(t int64, e trace.Event) error {
	if e.Bytes < 0 || e.Bytes > largest-c.at.gross {
		return fmt.Errorf("allocation of %d bytes after %d in all is out of range", e.Bytes, c.at.gross)
	}
	if _, ok := c.objects[e.ID]; ok {
		return fmt.Errorf("object %d is allocated twice", e.ID)
	}
	number := int32(c.w.Allocs)
	c.objects[e.ID] = object{e.Bytes, number}
	c.w.sizes = append(c.w.sizes, e.Bytes)
	c.w.points = append(c.w.points, point{totals: c.at, time: t, arg: e.Bytes})
	c.op(t, e.Bytes, opAlloc, number)
	c.at.gross += e.Bytes
	c.at.net += e.Bytes
	c.w.Allocs++
	c.w.PeakReachable = max(c.w.PeakReachable, c.at.net-c.at.dropped)
	return nil
}

func (c *compiler) sync(t int64, e trace.Event) error {
	w := int64(e.Duration)
	if w < 0 || w > largest-c.at.wait {
		return fmt.Errorf("a wait of %d ns after %d in all is out of range", w, c.at.wait)
	}
	place, ok := c.places[e.Aux]
	if !ok {
		place = int32(len(c.places))
		c.places[e.Aux] = place
	}
	c.w.points = append(c.w.points, point{totals: c.at, time: t, arg: w, sync: true})
	c.op(t, w, opSync, place)
	c.at.wait += w
	c.w.Syncs++
	return nil
}

// An object is live: its bytes, and the number of its allocation.
type object struct {
	bytes  int64
	number int32
}

func (c *compiler) op(t, n int64, which int64, ref int32) {
	c.w.ops = append(c.w.ops, op{t, n<<2 | which})
	c.w.refs = append(c.w.refs, ref)
	c.at.seq++
}

// release takes a drop, or a free that no drop came before.
func (c *compiler) release(t int64, e trace.Event) error {
	o, ok := c.objects[e.ID]
	if !ok {
		if e.Kind == trace.Free { // of an object whose drop was seen
			return nil
		}
		return fmt.Errorf("drop of object %d, which is not there", e.ID)
	}
	delete(c.objects, e.ID)
	c.w.Drops++
	if e.Kind == trace.Free && e.Aux == trace.FreeExplicit {
		c.op(t, o.bytes, opFree, o.number)
		c.at.net -= o.bytes
		c.w.monotone = false
		return nil
	}
	if e.Kind == trace.Free {
		c.w.SeenDeaths++
	}
	c.op(t, o.bytes, opDrop, o.number)
	c.at.dropped += o.bytes
	return nil
}

func (c *compiler) finish() {
	w, sum := c.w, &c.at
	w.places, w.end, w.Span = len(c.places), *sum, time.Duration(c.last)
	w.AllocatedBytes, w.Wait = sum.gross, time.Duration(sum.wait)
	w.nextSync = make([]int32, len(w.points)+1)
	next := int32(len(w.points))
	w.nextSync[next] = next
	for i, p := range slices.Backward(w.points) {
		if p.sync {
			next = int32(i)
		}
		w.nextSync[i] = next
	}
}

// firstTop returns the first allocation in [i, j) whose top is at least bytes, or j. There must be
// no sync in [i, j).
func (w *Workload) firstTop(i, j int, bytes int64) int {
	if !w.monotone {
		for i < j && w.points[i].top() < bytes {
			i++
		}
		return i
	}
	if i >= j || w.points[j-1].top() < bytes {
		return j
	}
	step := 1 // gallop: decisions are often close together
	for i+step < j && w.points[i+step-1].top() < bytes {
		i += step
		step <<= 1
	}
	return i + sort.Search(min(step, j-i), func(k int) bool { return w.points[i+k].top() >= bytes })
}

// firstTime returns the first point in [i, j) at or after time t, or j.
func (w *Workload) firstTime(i, j int, t int64) int {
	if i >= j || w.points[j-1].time < t {
		return j
	}
	return i + sort.Search(j-i, func(k int) bool { return w.points[i+k].time >= t })
}

// maxTop returns the largest top of the points in [i, j), or 0.
func (w *Workload) maxTop(i, j int) int64 {
	if w.monotone && i < j {
		return w.points[j-1].top()
	}
	var most int64
	for ; i < j; i++ {
		most = max(most, w.points[i].top())
	}
	return most
}
