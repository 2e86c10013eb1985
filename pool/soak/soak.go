// Package soak drives a host pool with a mixed load under faults, for as long
// as one likes, and checks throughout that nothing is corrupted or leaked.
//
// Workers allocate arrays and blocks of random sizes and fill them. Before they let
// go of one they check what is in it. Some they free, others they leave to the
// collector. They share views, use other streams and end scopes. Meanwhile another
// goroutine switches policies, trims, reclaims and checks the pool. The upstream
// refuses, is out of memory for a while, is slow, fails to release, and panics.
// Errors that say out of memory are counted. Everything else that is not expected
// is a violation.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// Config says what to drive, and how hard. The zero value soaks nothing.
type Config struct {
	For     time.Duration
	Seed    uint64
	Workers int   // goroutines; 0 = 4
	Limit   int64 // hard limit in bytes; 0 = 256 MiB
}

// A Report is what came of it. Its JSON names are those of results.
type Report struct {
	Seconds     float64          `json:"seconds"`
	Seed        uint64           `json:"seed"`
	Operations  int64            `json:"operations"`
	Bytes       int64            `json:"allocated_bytes"`
	Faults      map[string]int64 `json:"faults"`
	OutOfMemory int64            `json:"out_of_memory"` // allocations that failed, as they may
	Cycles      uint64           `json:"cycles"`
	Warnings    int64            `json:"warnings"` // failures that the pool lived with
	Violations  []string         `json:"violations"`
	LeakedLive  int64            `json:"leaked_live_bytes"`     // live once everything was let go
	LeakedHeld  int64            `json:"leaked_reserved_bytes"` // reserved once everything was given back
	LongestNs   int64            `json:"longest_stall_ns"`      // of one operation
	LongestOp   string           `json:"longest_stall"`
	HeapStart   uint64           `json:"heap_start_bytes"` // Go heap after a collection
	HeapEnd     uint64           `json:"heap_end_bytes"`
}

// OK says whether nothing was violated and nothing leaked.
func (r *Report) OK() bool { return len(r.Violations) == 0 && r.LeakedLive == 0 && r.LeakedHeld == 0 }

const mostViolations = 20 // that are kept in words

// A soak is one run.
type soak struct {
	cfg      Config
	pool     *pool.Pool
	gc       *gc.Collector
	up       *switchable
	ops      atomic.Int64
	oom      atomic.Int64
	warnings atomic.Int64

	longest atomic.Int64 // ns

	mu      sync.Mutex
	bad     []string
	slowest string // what took the longest
}

// Run soaks until cfg.For has passed or ctx ends. The error is one of setting
// up; what goes wrong later is in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 4
	}
	if cfg.Limit == 0 {
		cfg.Limit = 256 << 20
	}
	s := &soak{cfg: cfg, up: newSwitchable(cfg.Seed)}
	heap := heapNow()
	start := time.Now()
	var err error
	if s.gc, err = gc.New(gc.Config{}); err != nil {
		return nil, err
	}
	s.pool, err = pool.New(pool.Config{
		Upstream: s.up, Collector: s.gc, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: cfg.Limit}},
		Warn: func(error) { s.warnings.Add(1) },
	})
	if err != nil {
		s.gc.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.For)
	defer cancel()
	s.drive(ctx)
	r := s.end()
	r.Seconds, r.HeapStart = time.Since(start).Seconds(), heap
	return r, nil
}

func (s *soak) drive(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range s.cfg.Workers {
		wg.Go(func() {
			w := worker{soak: s, rand: rand.New(rand.NewPCG(s.cfg.Seed, uint64(i+1))), stream: uint32(i)}
			w.scope = &pool.Scope{Pool: s.pool, Max: 8 << 20}
			for ctx.Err() == nil {
				w.step()
			}
			w.letGo()
		})
	}
	wg.Go(func() { s.meddle(ctx) })
	wg.Wait()
}

// meddle does what an operator does to a running program.
func (s *soak) meddle(ctx context.Context) {
	r := rand.New(rand.NewPCG(s.cfg.Seed, 0))
	policies := []string{"pacer", "cudajl", "never", "sqrt", "threshold:0.8", "always"}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
		}
		switch r.IntN(6) {
		case 0:
			s.gc.SetPolicy(gc.MustParse(policies[r.IntN(len(policies))]).New())
		case 1:
			s.pool.FreeAllBlocks()
		case 2:
			s.pool.Reclaim(pool.Step(r.IntN(int(pool.StepDrop) + 1)))
		case 3:
			if st := s.pool.Stats(); st.LivePeak > s.cfg.Limit || st.ReservedPeak > s.cfg.Limit {
				s.violation("live peaked at %d and reserved at %d bytes, above the limit of %d", st.LivePeak, st.ReservedPeak, s.cfg.Limit)
			}
		case 4:
			s.timed("explicit collection", func() { s.gc.Collect(gc.TriggerExplicit) })
		case 5:
			if err := s.pool.Check(); err != nil {
				s.violation("the pool's structure: %v", err)
			}
		}
	}
}

// end lets the collector find what is left, and counts what is not given back.
func (s *soak) end() *Report {
	r := &Report{Seed: s.cfg.Seed, Faults: s.up.faults()}
	s.up.calm.Store(true) // from here on the upstream works
	for range 10 {        // the runtime may keep an object for a cycle in a register or on a stack
		s.gc.Collect(gc.TriggerExplicit)
		if s.pool.Stats().Live == 0 {
			break
		}
	}
	if err := s.pool.Check(); err != nil {
		s.violation("the pool's structure at the end: %v", err)
	}
	r.Bytes, r.LeakedLive = s.pool.Allocated(), s.pool.Stats().Live
	for _, n := range s.gc.Stats().Cycles {
		r.Cycles += n
	}
	s.pool.Reclaim(pool.StepDrop) // what waits for a stream, too
	s.pool.FreeAllBlocks()
	r.LeakedHeld = s.pool.Stats().Reserved
	if n := s.up.mapped.Load(); n != r.LeakedHeld {
		s.violation("the upstream holds %d bytes, the pool counts %d", n, r.LeakedHeld)
	}
	s.pool.Close()
	s.gc.Close()
	if err := s.gc.Err(); err != nil {
		s.violation("the collector reports %v", err)
	}
	r.Operations, r.OutOfMemory, r.Warnings = s.ops.Load(), s.oom.Load(), s.warnings.Load()
	r.Violations, r.LongestNs, r.LongestOp = s.bad, s.longest.Load(), s.slowest
	r.HeapEnd = heapNow()
	return r
}

func (s *soak) violation(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bad) < mostViolations {
		s.bad = append(s.bad, fmt.Sprintf(format, args...))
	}
}

// timed does one operation, and keeps the longest.
func (s *soak) timed(name string, do func()) {
	start := time.Now()
	do()
	s.ops.Add(1)
	d := time.Since(start)
	if int64(d) <= s.longest.Load() {
		return
	}
	s.mu.Lock()
	if int64(d) > s.longest.Load() {
		s.longest.Store(int64(d))
		s.slowest = name
	}
	s.mu.Unlock()
}

// failed counts an allocation that failed as it may, and reports any other error.
func (s *soak) failed(what string, err error) {
	if errors.Is(err, pool.ErrOutOfMemory) {
		s.oom.Add(1)
		return
	}
	s.violation("%s: %v", what, err)
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
