package gc

import (
	"testing"
	"time"
	"weak"
)

// atRest checks the accounts of a collector: what every test leaves behind has to add up, whatever it was about. Each test's
// collector is checked before it is closed. The memory of Own has to be what its owners hold, each byte that was found dead has
// to be credited once, each hold and each cycle has to be counted once by all who count.
func atRest(t testing.TB, c *Collector) {
	t.Helper()
	if c.strict { // a panic may have left anything behind
		return
	}
	for end := time.Now().Add(20 * time.Second); c.running() || c.releases.pending() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("at rest: a cycle runs: %v; releases that have not ended: %d", c.running(), c.releases.pending())
			return
		}
	}
	c.settling.Lock() // no cycle of the runtime's own is being settled, but for its end
	defer c.settling.Unlock()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		wrong := c.wrong(t)
		for _, g := range c.sources() {
			if gauge := g.gauge(); gauge != nil && wrong == "" {
				wrong = gauge.wrong()
			}
		}
		if wrong == "" {
			return
		}
		if time.Now().After(end) {
			t.Errorf("at rest: %s", wrong)
			return
		}
	}
}

// wrong says what does not add up. Others may be in the middle of something: it has to be right at last.
func (c *Collector) wrong(t testing.TB) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.own // which must not be made here: it would be watched
	var cycles, decisions, reasons, pauses uint64
	for _, n := range c.stats.Cycles {
		cycles += n
	}
	for _, n := range c.stats.Decisions {
		decisions += n
	}
	for _, n := range c.journal.reasons {
		reasons += *n
	}
	for _, n := range c.stats.Pauses {
		pauses += n
	}
	var work Work
	c.timeline.work.all(c.stepAt(c.Now()), func(_ int64, w *Work) { work.add(w) })
	counted := uint64(0)
	for _, n := range work.Cycles {
		counted += uint64(n)
	}
	gauges, owned := 0, false
	for _, g := range c.gates {
		if g.gauge() != nil {
			gauges++
		}
		if _, is := g.source.(*ownership); is {
			owned = true
		}
		switch {
		case !levels(g.past):
			return "a step of the timeline has levels outside of its least and its most"
		case g.yield.Load() != 0:
			return "bytes are credited to a cycle that has ended"
		case c.releases.dying(g) != 0:
			return "bytes are found dead and neither given back nor to be"
		}
	}
	for _, r := range c.registries {
		if _, is := r.(*gaugeWalk); is {
			gauges--
		}
	}
	switch {
	case cycles != c.settled.Load():
		return "cycles are not counted as they settle"
	case counted != cycles && c.timeline.shift < longestShift:
		return "the timeline has other cycles than the counts"
	case work.Held != c.stats.Exposed && c.timeline.shift < longestShift:
		return "the timeline has other pauses than the counts"
	case decisions != reasons:
		return "decisions are not counted by reason"
	case (pauses == 0) != (c.stats.MaxPause == 0) && c.stats.Exposed != 0 || c.stats.Exposed < c.stats.MaxPause || c.stats.Exposed > time.Duration(pauses)*c.stats.MaxPause:
		return "pauses do not add up"
	case work.Freed > c.stats.Freed:
		return "the timeline has freed more than the counts"
	case c.releases.finished < c.stats.Objects:
		return "objects were given back by no release that has ended"
	case gauges != 0:
		return "a gauge has a gate and no place among the registries, or the other way round"
	case c.throttle.until > c.Now()+time.Second:
		return "callers are held far into the future"
	}
	if owned {
		return o().wrong(t)
	}
	return ""
}

// levels reports whether the least and the most of each step are that.
func levels(past *stepRing[Level]) bool {
	for _, x := range past {
		if l := x.of; l.Least > min(l.First, l.Last) || l.Most < max(l.First, l.Last) {
			return false
		}
	}
	return true
}

// wrong: a gauge has been given so much, and has lost the rest. Each byte of that is credited to one cycle at most.
func (g *Gauge) wrong() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	lost := g.Allocated() - g.level.Load()
	switch {
	case lost < 0:
		return "a gauge reads more than it was ever given"
	case g.low > g.level.Load():
		return "the lowest level of a gauge is above its level"
	case g.fallen > lost:
		return "a gauge has fallen by more since the last mark than ever"
	case g.credited > lost || g.brought > lost:
		return "cycles are credited with more than a gauge has lost"
	}
	return ""
}

func (o *ownership) wrong(t testing.TB) string {
	sum := o.accounted.live.Load()
	o.mu.Lock()
	for _, l := range o.libraries {
		sum += l.live.Load()
	}
	o.mu.Unlock()
	if list := o.kinds.Load(); list != nil {
		for _, k := range *list {
			bytes, wrong := k.(interface{ audit() (int64, string) }).audit()
			if wrong != "" {
				return wrong
			}
			sum += bytes
		}
	}
	for _, r := range o.gate.c.registries {
		if _, is := r.(*tomb); is {
			return "" // whose dead a test puts in
		}
	}
	if owed := time.Duration(o.owed.Load()); owed >= leastAssist {
		return "callers owe what they would have been held for"
	}
	if live := o.live.Load(); live != sum {
		return "live is not what the owners hold"
	}
	return ""
}

// audit returns the bytes of all that is tracked, and what is wrong with the books of a registry.
func (r *WeakRegistry[W]) audit() (bytes int64, wrong string) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		defer s.mu.Unlock()
		used, free := 0, 0
		for n, c := range s.chunks {
			old := uint32(0)
			for i := range c.what {
				isWeak := c.weak[i] != (weak.Pointer[byte]{})
				if isWeak {
					old++
				}
				if c.gen[i]%2 == 0 {
					if isWeak {
						return 0, "a free slot has a weak pointer"
					}
					continue
				}
				used++
				bytes += c.what[i].bytes()
				y := c.what[i].young()
				if isWeak == (y != 0) {
					return 0, "an object is young and weak, or neither"
				}
				if y != 0 && s.young[y-1].index != uint32(n)<<chunkBits|uint32(i) {
					return 0, "an object is not where it is young"
				}
			}
			if old != c.old {
				return 0, "weak pointers are counted wrongly"
			}
		}
		for index := s.free; index != 0; free++ {
			c, i := s.at(index - 1)
			if c.gen[i]%2 != 0 {
				return 0, "a slot in use is free"
			}
			index = uint32(c.what[i].bits)
		}
		if used != s.used || used+free != len(s.chunks)*chunkLen {
			return 0, "slots are lost"
		}
	}
	return bytes, ""
}
