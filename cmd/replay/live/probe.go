package live

import (
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// A probe notes what the cycles and the allocations of a run take. Its times are
// of the collector's clock.
type probe struct {
	seen    []observation
	allocs  []allocation    // that no cycle has held
	ladders []allocation    // that one refusal has held, without its cycle
	paces   []time.Duration // what the cycles of the steady program took
	drops   []time.Duration // oldest first
	idle    spans           // when the program was held or waited
	work    Work
	chunks  func() int64 // that were put behind addresses so far; nil: none are
	mapped  int64        // of them, after the last allocation
	bytes   bool         // giving memory back takes time by its bytes
	policy  *prober
	known   int           // of its cycles that have been seen
	objects uint64        // given back by them
	end     time.Duration // of the last one
	sees    float64       // sum of the slowdowns that the collector has learned after each update
	updates int
}

// allocated notes an allocation that took so long, of which the program was held for
// pause. If one refusal has held it, and so one cycle, the rest is the ladder's.
func (p *probe) allocated(pause, took time.Duration) {
	a := allocation{took: took}
	if p.chunks != nil {
		n := p.chunks()
		a.chunks, p.mapped = n-p.mapped, n
	}
	if pause == 0 {
		p.allocs = append(p.allocs, a)
		return
	}
	if n, c := p.policy.ended(); n == p.known+1 && c.Trigger == policy.TriggerRefusal {
		a.took = max(0, pause-c.Duration)
		p.ladders = append(p.ladders, a)
	}
}

// An allocation is what one has taken.
type allocation struct {
	took   time.Duration
	chunks int64 // that were put behind addresses for it
}

// update notes the cycle that has ended since the last update. If there were several, it is
// not known how much each gave back.
func (p *probe) update(c *gc.Collector) {
	n, cycle := p.policy.ended()
	if n == p.known {
		return
	}
	stats := c.Stats()
	p.sees, p.updates = p.sees+stats.Slowdown, p.updates+1
	o := observation{
		Gap: cycle.Start - p.end, Objects: int(stats.Objects - p.objects), Start: -1,
	}
	if p.bytes {
		o.Bytes = cycle.Freed
	}
	o.Tracked = stats.Tracked + o.Objects
	o.Held = p.idle.within(int64(cycle.Start), int64(cycle.Start+cycle.Duration))
	o.Working = cycle.Duration - o.Held
	if found := int(stats.Objects); 0 < found && found < len(p.drops) {
		last, next := p.drops[found-1], p.drops[found] // the mark began between them
		if o.Working > 0 && next-last < closeDrops && next > cycle.Start {
			o.Start = max(0, (last+next)/2-cycle.Start)
		}
	}
	if n == p.known+1 && (cycle.Trigger == policy.TriggerPolicy || cycle.Trigger == policy.TriggerRefusal) {
		p.seen = append(p.seen, o)
	}
	p.known, p.objects, p.end = n, stats.Objects, cycle.Start+cycle.Duration
}

// closeDrops is how far apart two drops may be to say when a mark between them began.
const closeDrops = 200 * time.Microsecond
