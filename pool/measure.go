package pool

import (
	"fmt"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Measurement is what a function did to a pool, as CUDA.jl's @time tells.
type Measurement struct {
	Elapsed   time.Duration
	Allocs    int64         // number of allocations
	Bytes     int64         // bytes allocated
	Frees     int64         // number of blocks given back
	Net       int64         // bytes by which live grew; below 0: it fell
	Peak      int64         // most live bytes meanwhile: exact with Config.ExactPeaks
	Refusals  int64         // allocations that climbed the refusal ladder
	Ladder    time.Duration // sum of the ladder's steps; collections among them
	Cycles    int64         // cycles that ended meanwhile
	Collector time.Duration // sum of the cycles' durations, but for those of the runtime's own
	Held      time.Duration // sum of the pauses of those who were held by cycles
}

// Measure calls f and says what it did. It counts what other goroutines do to the
// pool meanwhile, too, and resets the pool's peaks. The error is f's.
func (p *Pool) Measure(f func() error) (Measurement, error) {
	p.ResetPeaks()
	before, collected, begin := p.Stats(), p.collected(), time.Now()
	err := f()
	m := p.collected().sub(collected)
	m.Elapsed = time.Since(begin)
	s := p.Stats()
	m.Peak = s.LivePeak
	s = s.Sub(before)
	m.Allocs, m.Bytes, m.Frees, m.Net = s.Allocs, s.Allocated, s.Frees, s.Live
	m.Refusals, m.Ladder = s.Refusals, s.Climbing
	return m, err
}

// collected reads what the pool's collector has done so far.
func (p *Pool) collected() (m Measurement) {
	c := p.collect.Load()
	if c == nil {
		return m
	}
	s := c.c.Stats()
	for _, n := range s.Cycles {
		m.Cycles += int64(n)
	}
	m.Collector, m.Held = s.Busy, s.Exposed
	return m
}

func (m Measurement) sub(before Measurement) Measurement {
	m.Cycles -= before.Cycles
	m.Collector -= before.Collector
	m.Held -= before.Held
	return m
}

// String returns the measurement on one line.
func (m Measurement) String() string {
	return fmt.Sprintf("%v (%d allocations: %v, %d given back, net %v, peak %v; %d cycles: %v, held %v; %d refusals: %v)",
		m.Elapsed.Round(time.Microsecond), m.Allocs, pressure.Bytes(m.Bytes), m.Frees, pressure.Bytes(m.Net), pressure.Bytes(m.Peak),
		m.Cycles, m.Collector.Round(time.Microsecond), m.Held.Round(time.Microsecond), m.Refusals, m.Ladder.Round(time.Microsecond))
}

// Sub returns what has changed since before: the differences of all counts, of
// live, reserved and cached bytes, and of the classes. Peaks, limits and what else
// is a state are those of s.
func (s Stats) Sub(before Stats) Stats {
	s.Live -= before.Live
	s.Reserved -= before.Reserved
	s.Cached -= before.Cached
	s.Segments -= before.Segments
	s.FreeBlocks -= before.FreeBlocks
	s.Allocated -= before.Allocated
	s.Freed -= before.Freed
	s.Allocs -= before.Allocs
	s.Frees -= before.Frees
	s.Hits -= before.Hits
	s.Awaited -= before.Awaited
	s.Refusals -= before.Refusals
	s.Failures -= before.Failures
	s.Climbing -= before.Climbing
	allocs := map[int64]int64{}
	for _, c := range before.Classes {
		allocs[c.Max] = c.Allocs
	}
	classes := s.Classes
	s.Classes = nil
	for _, c := range classes {
		if c.Allocs -= allocs[c.Max]; c.Allocs != 0 {
			s.Classes = append(s.Classes, c)
		}
	}
	return s
}
