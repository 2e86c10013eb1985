package pool

import (
	"fmt"
	"io"
	"strings"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// Stats is one reading of a pool. The pool counts each block in bytes, rounded up to 512. The
// numbers are exact if no goroutine allocates or frees during the reading. LivePeak alone may be
// too high, by up to 1 MiB for each processor that allocated; with [Config].ExactPeaks it is exact.
type Stats struct {
	Live, LivePeak         int64 // bytes handed out now, and their peak since the last reset
	Reserved, ReservedPeak int64 // bytes taken from the upstream, and their peak
	Allocated, Freed       int64 // gross bytes handed out and given back, from the start
	Allocs, Frees          int64 // how often

	Cached     int64                              // reserved - live
	Segments   int64                              // number of segments taken from the upstream; for a Mapper, number of address ranges
	FreeBlocks int64                              // number of cached pieces
	Largest    int64                              // the largest cached piece
	Waiting    int64                              // number of pieces that wait for another stream
	Hits       int64                              // allocations that found a piece in their cache
	Refusals   int64                              // allocations that climbed the ladder
	Failures   int64                              // refusals that ended in an OutOfMemoryError
	Limits     struct{ Soft, Hard, Budget int64 } // in bytes; Budget is the size of the space as estimated; 0 = not known
	Upstream   Usage                              // the counts of the upstream, if it is a Cacher
}

// Fragmentation is the share of the cached bytes outside the largest cached piece, from 0 to 1. It
// is 0 if all cached bytes are one piece, and near 1 if they are many small pieces.
func (s Stats) Fragmentation() float64 {
	if s.Cached <= 0 {
		return 0
	}
	return 1 - float64(s.Largest)/float64(s.Cached)
}

// Stats returns the pool's counts. It takes every lock for a moment and walks the cached pieces.
func (p *Pool) Stats() Stats {
	s := Stats{Waiting: p.flight.n.Load(), Upstream: p.usage()}
	p.eachCache(func(f *cache) { f.read(&s) })
	p.depot.read(&s)
	p.core.read(&s)
	p.tracker.Counts(&s)
	s.LivePeak = min(s.LivePeak, s.ReservedPeak) // the peak includes bytes that caches had counted in advance
	s.Cached = s.Reserved - s.Live
	s.Limits.Soft, s.Limits.Hard = p.Limits()
	s.Limits.Budget = p.group.estimate()
	s.Refusals, s.Failures = p.ladder.climbed.Load(), p.ladder.failed.Load()
	return s
}

func (f *cache) read(s *Stats) {
	f.count.Settle()
	for r := range f.magazines {
		if n := f.magazines[r].n; n > 0 {
			s.FreeBlocks += int64(n)
			s.Largest = max(s.Largest, f.magazines[r].size)
		}
	}
	s.Hits += f.hits
}

func (d *depot) read(s *Stats) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.slots {
		if r.n > 0 {
			s.FreeBlocks += magazineMax * int64(r.n)
			s.Largest = max(s.Largest, r.size)
		}
	}
}

func (c *core) read(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Segments = c.segments
	s.FreeBlocks += c.pieces
	for key, t := range c.bins {
		if key.hole {
			continue
		}
		s.Largest = max(s.Largest, t.largest(&c.headers))
	}
}

// ResetPeaks sets the peaks of live and reserved to the present levels.
func (p *Pool) ResetPeaks() {
	p.eachCache(func(f *cache) { f.count.Settle() })
	p.tracker.ResetPeaks()
}

// Sample returns the pool's live and reserved bytes and its budget. It does not block, and makes
// the pool a [gc.Source].
func (p *Pool) Sample() pressure.Sample {
	s := pressure.Sample{Space: p.cfg.Space, Live: p.tracker.Live(), Reserved: p.tracker.Reserved(), Limit: p.group.limit.Load()}
	p.eachActive(func(f *cache) {
		s.Live -= f.count.ready
		p.age(f)
	})
	s.Live = min(max(s.Live, 0), s.Reserved) // the two were not read at the same moment
	return s
}

// Allocated returns the bytes handed out since the pool was made, freed ones included.
func (p *Pool) Allocated() int64 {
	sum := p.tracker.Allocated()
	p.eachActive(func(f *cache) { sum += f.count.bytes })
	return sum
}

// Report writes the state of the pool, in the layout of CUDA.jl's pool_status.
func (p *Pool) Report(w io.Writer) error {
	_, err := io.WriteString(w, p.report())
	return err
}

func (p *Pool) report() string {
	s := p.Stats()
	var b strings.Builder
	info, err := p.upstreamInfo()
	if err == nil && info.Total > 0 {
		used := info.Total - info.Free
		fmt.Fprintf(&b, "Effective %v memory usage: %.2f%% (%v/%v)\n", p.cfg.Space,
			100*float64(used)/float64(info.Total), pressure.Bytes(used), pressure.Bytes(info.Total))
		if outside := used - p.group.tracker.Reserved(); outside > 0 {
			fmt.Fprintf(&b, "Held by others: %v (other programs, and memory that comes from no pool)\n", pressure.Bytes(outside))
		}
	} else {
		fmt.Fprintf(&b, "Effective %v memory usage: unknown\n", p.cfg.Space)
	}
	fmt.Fprintf(&b, "Memory pool usage: %v (%v reserved)\n", pressure.Bytes(s.Live), pressure.Bytes(s.Reserved))
	fmt.Fprintf(&b, "Memory limit: soft = %s, hard = %s\n", orNone(s.Limits.Soft), orNone(s.Limits.Hard))
	fmt.Fprintf(&b, "Cached: %v in %d pieces of %d segments, largest %v (fragmentation %.0f%%)\n",
		pressure.Bytes(s.Cached), s.FreeBlocks, s.Segments, pressure.Bytes(s.Largest), 100*s.Fragmentation())
	if p.upstream.cacher != nil {
		fmt.Fprintf(&b, "Cached by the upstream: %v (%v reserved, at most %v so far)\n",
			pressure.Bytes(s.Upstream.Reserved-s.Upstream.Used), pressure.Bytes(s.Upstream.Reserved), pressure.Bytes(s.Upstream.ReservedPeak))
	}
	if others := p.group.tracker.Reserved() - s.Reserved - p.upstream.cached.Load(); others > 0 {
		fmt.Fprintf(&b, "Other pools of the same memory: %v reserved\n", pressure.Bytes(others))
	}
	fmt.Fprintf(&b, "Peaks: %v live, %v reserved\n", pressure.Bytes(s.LivePeak), pressure.Bytes(s.ReservedPeak))
	fmt.Fprintf(&b, "Allocations: %d of %v, %d given back; %d refused, %d failed\n",
		s.Allocs, pressure.Bytes(s.Allocated), s.Frees, s.Refusals, s.Failures)
	return b.String()
}

func orNone(limit int64) string {
	if limit <= 0 {
		return "none"
	}
	return pressure.Bytes(limit).String()
}

// collected returns the counts of the pool's collector, or zeros without one.
func (p *Pool) collected() (s gc.Stats) {
	if c := p.collect.Load(); c != nil {
		s = c.c.Stats()
	}
	return s
}
