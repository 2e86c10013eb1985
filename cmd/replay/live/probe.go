package live

import (
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// A probe notes the lengths of the cycles and allocations of a run. Its times are on the
// collector's clock.
type probe struct {
	seen    []observation
	allocs  []allocation    // that no cycle has held
	ladders []allocation    // held by one refusal; without its cycle
	paces   []time.Duration // lengths of the cycles of the steady program
	drops   []time.Duration // oldest first
	idle    spans           // when the program was held or waited
	work    Work
	chunks  func() int64 // mapped so far; nil: none are
	mapped  int64        // chunks after the last allocation
	bytes   bool         // the cost of a release depends on its bytes
	policy  *prober
	known   int           // cycles noted
	objects uint64        // released by them
	end     time.Duration // of the last one
}

// allocated notes the length of an allocation, and for how long it was held. If one refusal held
// it, there was one cycle, and the rest of the pause was the ladder's.
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

// An allocation is the cost of one allocation.
type allocation struct {
	took   time.Duration
	chunks int64 // that it mapped
}

// update notes the cycle that has ended since the last update. It ignores several cycles,
// because their shares of the released objects are unknown.
func (p *probe) update(c *gc.Collector) {
	n, cycle := p.policy.ended()
	if n == p.known {
		return
	}
	stats := c.Stats()
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
		last, next := p.drops[found-1], p.drops[found] // the mark started between them
		if o.Working > 0 && next-last < closeDrops && next > cycle.Start {
			o.Start = max(0, (last+next)/2-cycle.Start)
		}
	}
	if n == p.known+1 && (cycle.Trigger == policy.TriggerPolicy || cycle.Trigger == policy.TriggerRefusal) {
		p.seen = append(p.seen, o)
	}
	p.known, p.objects, p.end = n, stats.Objects, cycle.Start+cycle.Duration
}

// closeDrops is the largest distance of two drops that date the mark between them.
const closeDrops = 200 * time.Microsecond
