package governor

import "time"

// A ration bounds the processor time of a gauge's cycles by the memory that they bring back. The
// price of memory alone would spend half a processor on a few MiB, and few users would.
//
// Cycles may first take a small share of the processor time that the program itself uses. If memory
// grows by half nevertheless, and cycles bring it back, then for some time only [Caps] and the price
// of memory bound them. After that time the small share counts again. It must prove too small once
// more: memory grows by half, or its mean is clearly above that of the time without bounds. Each
// cycle in a row that brings nothing back halves the share. Cycles of the runtime do not, because
// they cost nothing.
//
// Growth by half corresponds to GOGC=50. The memory limiter of the OpenTelemetry collector, too,
// doubles the time between cycles that bring nothing.
type ration struct {
	vain  int           // halvings of the share: 0 after a cycle that brought memory back, above mayKeep before the first
	until time.Duration // end of the time in which they are not bounded
	lasts time.Duration // length of that time
	clock time.Duration // processor time of the program when the last cycle began
	kept  int64         // bytes of the gauge that cycles leave
	found float64       // growth that the last cycle found, as a share of all memory
	seen  time.Duration // time of the last reading
	from  time.Duration // when bounds last came or went
	area  float64       // sum of bytes x time since then
	full  float64       // mean bytes in the last time without bounds
	prior float64       // mean bytes in the one before
	worth Worth
}

// A Worth is the memory that the cycles of a gauge bring back, and the share that they may take for it.
type Worth struct {
	Share  float64 // of the program's processor time that cycles may take
	Cycles int     // the last ones in a row that all brought memory back, or all did not
	Freed  int64   // bytes by which memory fell in them
}

// Worth returns the worth of cycles.
func (g *Gauge) Worth(at time.Duration) Worth {
	w := g.ration.worth
	w.Share = g.ration.now(at)
	return w
}

// Trims returns the share of the processor time that trims of C's allocator may take: as much as
// cycles, and at least half of LeastShare. If the allocator keeps the memory that cycles free, their
// full share is halved, at most mayKeep times. Trims then have the full share, because they end that.
func (w Worth) Trims() float64 {
	if w.Share >= fullShare/(1<<mayKeep) {
		return fullShare
	}
	return max(w.Share, LeastShare/2)
}

// LeastShare is the share of the program's processor time that cycles may take if the last one
// brought memory back.
const LeastShare = 0.02

const (
	fullShare = 1.0 // for a time, after memory had grown much and a cycle brought it back or ran callbacks
	mayKeep   = 2   // most halvings after a cycle that ran callbacks: the allocator may keep the memory
	mostVain  = 10  // most halvings
	fullVain  = 5   // halvings to take back after a time without bounds: fullShare / 2^5 is about LeastShare

	muchGrowth  = 0.5      // of all memory
	muchMissed  = 1.2      // times the mean bytes without bounds
	leastMissed = 16 << 20 // bytes beyond that

	firstTime   = time.Second // in which memory must also have grown by leastMissed
	firstEarned = 2 * time.Second
	mostEarned  = 64 * time.Second
	// Share of the processors, added to the program's use. Garbage of an idle program costs
	// memory, too.
	idleShare = 1.0 / 64
	// Part of the growth that counts as needed if a cycle ran callbacks and an allocator keeps the
	// memory: the gauge did not fall, or trims have given memory back before. If all of it counted,
	// garbage would grow by a little from cycle to cycle, and never by half.
	neededGrowth = 1.0 / 8
)

// clock returns the processor time of the program, plus idleShare of the time that has passed.
func (r *GaugeReading) clock(at time.Duration) time.Duration {
	return r.Processor + time.Duration(idleShare*float64(at))
}

// now returns the share of the program's processor time that cycles may take.
func (s *ration) now(at time.Duration) float64 {
	share := LeastShare
	if at < s.until {
		share = fullShare
	}
	return share / float64(int(1)<<s.vain)
}

// see takes a reading. If a time without bounds has ended, see notes the mean of that time. It also
// takes back halvings, because cycles then followed each other at once, and prove little. A gauge that
// was barren stays so.
func (s *ration) see(at time.Duration, level int64) {
	if s.seen < s.until && at >= s.until {
		s.prior, s.full, s.area, s.from = s.full, s.mean(), 0, s.seen
		s.vain = max(min(s.vain, mayKeep+1), s.vain-fullVain)
	}
	s.area += float64(level) * float64(at-s.seen)
	s.seen = at
}

func (s *ration) mean() float64 { return s.area / float64(max(1, s.seen-s.from)) }

// missed reports whether the gauge has held clearly more since the bounds returned than without them.
func (s *ration) missed() bool {
	return s.until > 0 && s.seen-s.until >= firstEarned && s.mean() > muchMissed*s.full+leastMissed
}

// growth returns by how much the gauge is above the bytes that cycles leave, as a share of all memory.
// Alone is the number of bytes by which the gauge falls without cycles. They do not count as growth.
// The Go heap counts with twice its live bytes, which is about its size with GOGC=100.
func (s *ration) growth(r *GaugeReading, alone int64) float64 {
	return float64(r.Level-s.kept-alone) / float64(s.kept+2*r.Heap)
}

// allows reports whether a cycle may begin. Work is its expected processor time, divided by the
// number of processors. A cycle may begin if the share pays for its work, or if memory has grown by
// half. In the first second it must also have grown by 16 MiB, because programs that end soon gain
// little by less.
func (s *ration) allows(at time.Duration, r *GaugeReading, work time.Duration, alone int64) bool {
	share := s.now(at)
	grown := s.growth(r, alone) >= muchGrowth && (at >= firstTime || r.Level-s.kept >= leastMissed)
	return grown || share >= fullShare || share*float64(r.clock(at)-s.clock) >= float64(work)
}

// begin notes that a cycle begins.
func (s *ration) begin(at time.Duration, r *GaugeReading, alone int64) {
	s.clock, s.found = r.clock(at), s.growth(r, alone)
}

// learn takes a judged cycle. Brought says whether it brought memory back.
func (s *ration) learn(o *outcome, at time.Duration, r *GaugeReading, brought bool) {
	kept := max(0, o.high-o.freed)
	if o.ran > 0 && (!brought || r.Trimmed > 0) && kept > s.kept {
		kept = s.kept + int64(neededGrowth*float64(kept-s.kept))
	}
	s.kept = kept
	if !o.asked && !(brought && o.ran > 0) {
		return
	}
	if brought != (s.vain == 0) {
		s.worth = Worth{}
	}
	s.worth.Cycles++
	s.worth.Freed += o.freed
	switch s.vain++; {
	case brought:
		s.vain = 0
	case o.ran > 0:
		s.vain = min(s.vain, mayKeep)
	}
	s.vain = min(s.vain, mostVain)
	fell := 0.0
	if brought {
		fell = float64(o.freed) / float64(s.kept+2*r.Heap)
	}
	if o.ran > 0 {
		fell = max(fell, s.found) // an allocator may have kept the memory
	}
	if fell < muchGrowth && !(o.ran > 0 && s.missed()) || o.began < s.until {
		return
	}
	// If the gauge held more in the last time without bounds than in the one before, the larger share did
	// not help. The next such time is then as short as the first.
	s.lasts = min(2*s.lasts, mostEarned)
	if s.lasts == 0 || s.full > muchMissed*s.prior {
		s.lasts = firstEarned
	}
	s.until, s.area, s.from = at+s.lasts, 0, s.seen
}

// A swing is memory that the program frees by itself and takes again. A fall of the gauge by no
// more than that after a cycle proves nothing.
type swing struct {
	high  int64 // highest level since a callback last ran or a cycle was judged
	ran   int64 // callbacks so far, at that time
	bytes int64 // largest recent fall from such a level
}

// see takes a reading. Falls while a cycle is judged do not count, because they may be its effect.
func (s *swing) see(r *GaugeReading, judging bool) {
	if judging || r.Ran != s.ran {
		s.high, s.ran = r.Level, r.Ran
	}
	s.high = max(s.high, r.Level)
	s.bytes = max(s.bytes, s.high-r.Level)
}

// fade forgets a part of the largest fall. It is called for each judged cycle.
func (s *swing) fade() { s.bytes -= s.bytes / 16 }
