package pool

import (
	"fmt"
	"sync/atomic"
)

// A tracker counts the bytes that one space holds. The zero value is ready and has counted nothing.
// Its methods are lock-free, do not allocate and are safe for concurrent use. Counters that
// different callers write lie on cache lines of their own. Callers that count often use a shard.
//
// A tracker may be part of a larger one: its reserved bytes then count there, too, and a limit
// bounds the reserved bytes of the larger one. Set Within before the first use.
//
// A count that falls below zero panics: something was given back twice.
type tracker struct {
	Within *tracker // nil = not part of another

	live gauge
	_    pad
	held gauge // reserved
	_    pad
	gross
}

type pad [64]byte

// gross counts what went through a tracker, in both directions.
type gross struct {
	allocated, allocs atomic.Int64
	_                 pad
	frees             atomic.Int64
}

// A gauge is a level with the highest level it had.
type gauge struct {
	now, peak atomic.Int64
}

// Reserve counts bytes as taken from the upstream if reserved does not pass limit by it, and
// reports whether it did. Callers ask first and go to the upstream after, so reserved bytes are
// never above limit. A limit of 0 means no limit.
func (t *tracker) Reserve(bytes, limit int64) bool {
	if t.Within != nil {
		if !t.Within.Reserve(bytes, limit) {
			return false
		}
		limit = 0
	}
	return t.held.tryAdd(bytes, limit)
}

// Headroom returns how many bytes may still be reserved under limit: less than 0 if the limit has
// fallen below the reserved bytes.
func (t *tracker) Headroom(limit int64) int64 {
	for t.Within != nil {
		t = t.Within
	}
	return limit - t.Reserved()
}

// Release counts bytes as given back to the upstream. Callers count after the upstream has taken
// them.
func (t *tracker) Release(bytes int64) {
	t.held.sub("reserved", bytes)
	if t.Within != nil {
		t.Within.Release(bytes)
	}
}

// Live returns the bytes that are handed out, those included that shards hold ready.
func (t *tracker) Live() int64 { return t.live.now.Load() }

// Reserved returns the bytes that are taken from the upstream.
func (t *tracker) Reserved() int64 { return t.held.now.Load() }

// Allocated returns the gross bytes handed out, from the start.
func (t *tracker) Allocated() int64 { return t.allocated.Load() }

// Counts sets what t counts. The numbers are read one after the other while others count on, so
// they agree with each other only at rest.
func (t *tracker) Counts(s *Stats) {
	s.Live, s.LivePeak = t.Live(), t.live.peak.Load()
	s.Reserved, s.ReservedPeak = t.Reserved(), t.held.peak.Load()
	s.Frees, s.Allocated, s.Allocs = t.frees.Load(), t.allocated.Load(), t.allocs.Load()
	s.Freed = s.Allocated - s.Live
}

// ResetPeaks sets the peaks to the present levels.
func (t *tracker) ResetPeaks() {
	t.live.peak.Store(t.live.now.Load())
	t.held.peak.Store(t.held.now.Load())
}

func (g *gauge) tryAdd(bytes, limit int64) bool {
	mustNotBeNegative("taken", bytes)
	for {
		now := g.now.Load()
		if limit > 0 && bytes > limit-now {
			return false
		}
		if g.now.CompareAndSwap(now, now+bytes) {
			g.raise(now + bytes)
			return true
		}
	}
}

func (g *gauge) sub(what string, bytes int64) {
	mustNotBeNegative("given back", bytes)
	if now := g.now.Add(-bytes); now < 0 {
		panic(fmt.Sprintf("pool: %s fell to %d bytes when %d were given back", what, now, bytes))
	}
}

func (g *gauge) raise(level int64) {
	for {
		peak := g.peak.Load()
		if level <= peak || g.peak.CompareAndSwap(peak, level) {
			return
		}
	}
}

func mustNotBeNegative(what string, bytes int64) {
	if bytes < 0 {
		panic(fmt.Sprintf("pool: %d bytes %s", bytes, what))
	}
}

// A shard counts for a tracker. One goroutine at a time uses it; its owner guards it with a lock.
// It takes some bytes in advance and gives them back late, so that most calls touch no shared
// memory. Therefore the tracker's live bytes are too high by the bytes that its shards hold ready,
// at most 2 x Slack each. They are never too low, and Settle makes them exact. The peak of live is
// exact while only one shard is in use, and otherwise wrong by at most these bytes.
type shard struct {
	tracker *tracker
	Slack   int64 // bytes taken in advance; 0 = none

	ready, least  int64 // bytes taken and not handed out; their minimum since the last exchange
	bytes, n, out int64 // not yet counted: bytes handed out, how often, how often given back
}

// Take counts bytes as handed out.
func (s *shard) Take(bytes int64) {
	if s.ready < bytes {
		s.exchange(bytes + s.Slack)
		s.tracker.live.raise(s.tracker.live.now.Load() - s.Slack)
	}
	s.ready -= bytes
	s.least = min(s.least, s.ready)
	s.bytes += bytes
	s.n++
}

// Give counts bytes as given back; any shard of the tracker will do.
func (s *shard) Give(bytes int64) {
	s.ready += bytes
	s.out++
	if s.ready > 2*s.Slack {
		s.exchange(s.Slack)
	}
}

// Settle gives all counts to the tracker, and keeps no bytes ready.
func (s *shard) Settle() { s.exchange(0) }

// exchange gives the tracker the counts that it lacks, and leaves want bytes ready. Bytes that are
// only taken in advance do not count for the peak.
func (s *shard) exchange(want int64) {
	t := s.tracker
	t.allocated.Add(s.bytes)
	t.allocs.Add(s.n)
	t.frees.Add(s.out)
	s.bytes, s.n, s.out = 0, 0, 0
	t.live.raise(t.live.now.Load() - s.least)
	if delta := want - s.ready; delta > 0 {
		t.live.now.Add(delta)
	} else {
		t.live.sub("live", -delta)
	}
	s.ready, s.least = want, want
}
