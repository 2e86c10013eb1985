package auto

import (
	"fmt"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/pressure"
)

// A reading is the state of a process at one moment. Sizes are in bytes.
type reading struct {
	Outside int64    // resident outside the Go heap
	Total   int64    // resident in all
	Limit   int64    // of the process; 0 = none
	Objects int64    // in the Go heap, garbage included
	Live    int64    // the part of Objects that the last cycle kept
	GoFree  int64    // kept free by the Go runtime
	Kept    int64    // kept free by C's allocator; 0 if unknown
	Cycles  uint64   // of the Go collector, so far
	Freed   int64    // outside the Go heap by cycles, so far
	Futile  bool     // recent cycles have brought back almost nothing from outside the Go heap
	Due     [2]queue // finalizers, and cleanups

	// The judge fills these in.
	used int64 // Outside without Kept
	fell int64 // the most by which used fell from one reading to the next
}

// A queue counts finalizers or cleanups, so far.
type queue struct{ Queued, Run uint64 }

// The bounds of a judge.
const (
	parts     = 3
	partLen   = 4               // readings, or buckets, in a part of a window
	window    = parts * partLen // in which growth has to go on
	startUp   = 96              // readings at the start of a program, in which libraries fill caches
	startUpBy = 4               // the factor of the bounds of growth outside Go then
	queuesBy  = 2               // that of growth in the Go heap in the shortest window
	heldAfter = 10              // readings
	large     = 64 << 20        // bytes that are reported
	leastHeld = 16 << 20        // bytes that are reported once they have doubled
	share     = 0.2             // of the process's memory, for memory that is kept free
	near      = 0.95            // of the limit
	soon      = 300             // seconds: growth that doubles memory in that time is bad
)

// A scale is a window of buckets. A bucket holds the least values of its readings. Growth in the
// window counts as far as it is above every level before the window, if that exceeds both bounds.
// Otherwise the memory of a server that rises and falls with its load would seem to grow.
type scale struct {
	every   int // readings in a bucket
	least   int64
	share   float64 // of the level
	in      []reading
	outside int64 // the highest level before, less 1/1024 for each bucket since
	golang  int64 // that in the Go heap
	n       int
	found   gc.Finding
}

// A judge takes one reading each second and finds the worst fault. Make one with [newJudge]. One
// goroutine at a time uses it.
type judge struct {
	scales []*scale
	held   held
	before int64 // used at the last reading
	over   int   // readings in a row above the limit
	due    [2]queue
	stands [2]int // readings in a row in which a queue had entries and none ran
}

// newJudge returns a judge that has seen nothing.
func newJudge() *judge {
	return &judge{scales: []*scale{{every: 1, least: 2 * large, share: 0.05}, {every: 8, least: large, share: 0.1}, {every: 64, least: large, share: 0.2}}}
}

// see judges the process after one more reading. Held is above 0 when memory outside the Go heap
// should be reported, because it has stayed and cycles do not free it. Stayed is the time for which
// it has stayed. In the first 12 s the finding is zero unless something is wrong.
func (j *judge) see(r reading) (f gc.Finding, held int64, stayed time.Duration) {
	r.used = r.Outside - r.Kept
	r.fell, j.before = j.before-r.used, r.used
	for _, s := range j.scales {
		s.see(r)
	}
	held, stayed = j.held.see(r)
	if j.over++; r.Limit == 0 || r.Total <= r.Limit {
		j.over = 0
	}
	for i, q := range r.Due {
		if j.stands[i]++; q.Queued <= q.Run || q.Run != j.due[i].Run {
			j.stands[i] = 0
		}
	}
	j.due = r.Due
	f = gc.Finding{Level: verdict.Good, Verdict: verdict.Healthy, Next: verdict.Next[verdict.Healthy]}
	kept, keptFree := j.scales[0].kept()
	switch growth := j.growth(); {
	case max(j.stands[0], j.stands[1]) >= heldAfter:
		f = find(verdict.Bad, verdict.Blocked, "Finalizers or cleanups that are due have not run for 10 s: one of them blocks.")
	case growth.Verdict != "":
		f = growth
	case j.over > 1:
		f = find(verdict.Bad, verdict.OverLimit, "The process holds %v, and its limit is %v.", pressure.Bytes(r.Total), pressure.Bytes(r.Limit))
	case j.over == 0 && r.Limit > 0 && float64(r.Total) > near*float64(r.Limit):
		f = find(verdict.Watch, verdict.NearLimit, "The process holds %v of its limit of %v.", pressure.Bytes(r.Total), pressure.Bytes(r.Limit))
	case max(kept, keptFree) >= large && float64(max(kept, keptFree)) >= share*float64(r.Total):
		f = find(verdict.Watch, verdict.Retention, "Of %v resident, C's allocator has kept %v free for %d s, and Go's %v.",
			pressure.Bytes(r.Total), pressure.Bytes(kept), window, pressure.Bytes(keptFree))
	}
	if len(j.scales[0].in) < window && f.Level == verdict.Good {
		f = gc.Finding{} // it is too early to say
	}
	return f, held, stayed
}

// growth returns the worst growth of all scales, or the zero Finding.
func (j *judge) growth() (worst gc.Finding) {
	for _, s := range j.scales {
		if worst.Verdict == "" || s.found.Worse(worst) {
			worst = s.found
		}
	}
	return worst
}

func (s *scale) see(r reading) {
	if s.n%s.every == 0 {
		if s.in = append(s.in, r); len(s.in) > window {
			s.in = s.in[1:]
		}
	} else {
		last := &s.in[len(s.in)-1]
		last.Outside, last.Objects = min(last.Outside, r.Outside), min(last.Objects, r.Objects)
		last.used, last.fell = min(last.used, r.used), max(last.fell, r.fell)
		last.Freed, last.Live, last.Cycles, last.Futile = r.Freed, r.Live, r.Cycles, last.Futile && r.Futile
	}
	if s.n++; s.n%s.every == 0 {
		s.found = s.growth()
	}
}

// growth finds memory that has grown in each part of the window although cycles ran.
func (s *scale) growth() gc.Finding {
	if len(s.in) < window {
		return gc.Finding{}
	}
	byOutside, byGo := int64(1), int64(1)
	if length := window * s.every; s.n < length+min(length, startUp) {
		// The window holds readings of the start. Under load, libvips takes 200 MiB in the first 12 s,
		// and 70 to 95 MiB more in the next minutes.
		byOutside = startUpBy
	}
	if s.every == 1 {
		// Requests queue up for some seconds. In Prometheus they took 24 MiB/s.
		byGo = queuesBy
	}
	outside, golang := s.rise(byOutside, &s.outside, func(r reading) int64 { return r.used }), s.rise(byGo, &s.golang, func(r reading) int64 { return r.Objects })
	first, last := s.in[0], s.in[window-1]
	// With GOGC=100 the last cycle may have kept as little as half of what is reachable now.
	if kept := last.Live - first.Live; kept < golang/4 {
		golang = 0 // it may be garbage
	}
	futile, fell := 0, int64(0)
	for _, r := range s.in {
		fell = max(fell, r.fell)
		if r.Futile {
			futile++
		}
	}
	recent := last.Cycles > s.in[window-partLen-1].Cycles // garbage of the last part has had its cycle
	if (last.Cycles-first.Cycles < parts || !recent) && futile < window/2 {
		outside = 0
	}
	if outside <= fell {
		outside = 0 // chance decides how soon after a cycle a reading comes
	}
	if s.every == 1 && outside <= last.Freed-first.Freed {
		outside = 0 // it may be garbage: the shortest window has few cycles
	}
	grown, level, what, text := outside, last.Outside, verdict.OutsideGrowth, "Memory outside the Go heap grows by %v/s, and cycles free nothing of it: now %v."
	if golang > outside {
		grown, level, what, text = golang, last.Objects, verdict.GoGrowth, "What the program can reach in the Go heap grows by %v/s: now %v."
	}
	if grown == 0 {
		return gc.Finding{}
	}
	rate := grown / int64(s.every*(window-partLen))
	urgency := verdict.Watch
	if rate*soon >= level || last.Limit > 0 && last.Total+rate*soon > last.Limit {
		urgency = verdict.Bad
	}
	return find(urgency, what, text, pressure.Bytes(rate), pressure.Bytes(level))
}

// rise returns by how much the parts' least levels have grown from the first part to the last, above
// the highest level before. It is 0 if a part has not grown, or if the growth is less than the bounds
// times factor.
func (s *scale) rise(factor int64, before *int64, of func(reading) int64) int64 {
	var low [parts]int64
	for i, r := range s.in {
		if p := i / partLen; i%partLen == 0 || of(r) < low[p] {
			low[p] = of(r)
		}
	}
	was := *before
	*before = max(was-was/1024, low[0])
	all, bound := low[2]-max(low[0], was), factor*max(s.least, int64(s.share*float64(low[2])))
	if all < bound || min(low[1]-low[0], low[2]-low[1]) < all/4 {
		return 0
	}
	return all
}

// kept returns the least memory that the allocators kept free in the window. For Go it leaves out as
// much as the live heap, because GOGC may need that.
func (s *scale) kept() (c, golang int64) {
	if len(s.in) < window {
		return 0, 0
	}
	c, golang = s.in[0].Kept, s.in[0].GoFree-s.in[0].Live
	for _, r := range s.in {
		c, golang = min(c, r.Kept), min(golang, r.GoFree-r.Live)
	}
	return c, max(0, golang)
}

// A held follows memory that no cycle frees. It is reported once it has stayed for 10 s, and again
// each time that it has doubled, as a leak does. A small amount is reported only after it has
// doubled. Memory that falls in between belongs to work in progress.
type held struct {
	levels [heldAfter]int64 // at the last readings
	n      int              // readings since cycles stopped freeing memory
	first  int64            // bytes when it had stayed for 10 s
	said   int64            // bytes at the last report
}

func (h *held) see(r reading) (bytes int64, stayed time.Duration) {
	if !r.Futile {
		*h = held{}
		return 0, 0
	}
	h.levels[h.n%heldAfter] = r.Outside
	h.n++
	least := h.levels[0]
	for _, l := range h.levels {
		least = min(least, l)
	}
	if h.n < heldAfter {
		return 0, 0
	}
	if h.n == heldAfter {
		h.first = least
	}
	if least < 2*h.said || least < large && least < max(leastHeld, 2*h.first) {
		return 0, 0
	}
	h.said = least
	return least, time.Duration(h.n) * time.Second
}

func find(level, what, format string, args ...any) gc.Finding {
	return gc.Finding{Level: level, Verdict: what, Reason: fmt.Sprintf(format, args...), Next: verdict.Next[what], See: verdict.Guide + "is-it-the-gc"}
}
