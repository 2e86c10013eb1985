package pool_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// counted is host memory that counts what it has handed out, with faults that can be
// switched off.
type counted struct {
	Faulty
	calm atomic.Bool
}

func (c *counted) Allocate(n int64, stream uint32) (uintptr, error) {
	if c.calm.Load() {
		return c.Upstream.Allocate(n, stream)
	}
	return c.Faulty.Allocate(n, stream)
}

func (c *counted) Release(addr uintptr, n int64, stream uint32) error {
	if c.calm.Load() {
		return c.Upstream.Release(addr, n, stream)
	}
	return c.Faulty.Release(addr, n, stream)
}

func (c *counted) Synchronize() error {
	if c.calm.Load() {
		return nil
	}
	return c.Faulty.Synchronize()
}

type hostBytes struct {
	pool.Host
	mapped atomic.Int64
}

func (h *hostBytes) Allocate(n int64, stream uint32) (uintptr, error) {
	h.mapped.Add(n)
	return h.Host.Allocate(n, stream)
}

func (h *hostBytes) Release(addr uintptr, n int64, stream uint32) error {
	h.mapped.Add(-n)
	return h.Host.Release(addr, n, stream)
}

// TestSoak has goroutines fill arrays and blocks of random sizes, look whether what is in
// them has changed, and free or drop them, while the upstream refuses, fails and
// panics, policies are switched, and the pool is trimmed. At the end nothing is left.
func TestSoak(t *testing.T) {
	host := new(hostBytes)
	up := &counted{Faulty: Faulty{Upstream: host, Seed: 1, OutageLength: 5, Delay: time.Millisecond, Rate: map[Fault]float64{
		FaultRefuse: 0.2, FaultOutage: 0.02, FaultSlow: 0.01, FaultRelease: 0.2,
		FaultSync: 0.05, FaultInfo: 0.2, FaultPanic: 0.05,
	}}}
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(pool.Config{Upstream: up, Collector: c, Limits: hard(64 * mib), Warn: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	steps := 20_000
	if testing.Short() {
		steps = 4000
	}
	var work sync.WaitGroup
	for seed := range uint64(4) {
		work.Add(1)
		go func() {
			defer work.Done()
			s := &soaker{t: t, p: p, rng: rand.New(rand.NewPCG(seed, 0)), stream: uint32(seed)}
			for step := range steps {
				s.step()
				if seed == 0 && step%100 == 0 {
					meddle(t, s.rng, p, c)
				}
			}
			for len(s.held) > 0 {
				s.drop()
			}
		}()
	}
	work.Wait()
	if up.Injected(FaultRefuse)+up.Injected(FaultRelease)+up.Injected(FaultPanic) == 0 {
		t.Error("no faults: nothing was tried")
	}
	up.calm.Store(true)
	p.SetLimits(hard(64 * mib)) // of all limits that there were the largest, which no peak may pass
	waitFor(t, "nothing is live", func() bool { p.Reclaim(pool.StepDrop); return p.Stats().Live == 0 })
	pooltest.Check(t, p)
	p.Close()
	c.Close()
	if left, s := host.mapped.Load(), p.Stats(); left != 0 || s.Reserved != 0 || c.Err() != nil {
		t.Errorf("the upstream holds %d bytes, the pool counts %d; %v", left, s.Reserved, c.Err())
	}
}

// meddle does what an operator does to a running program.
func meddle(t *testing.T, rng *rand.Rand, p *pool.Pool, c *gc.Collector) {
	switch rng.IntN(4) {
	case 0:
		c.SetPolicy(policy.MustParse([]string{"pacer", "cudajl", "never", "threshold:0.8", "always"}[rng.IntN(5)]).New())
	case 1:
		p.Reclaim(pool.Step(rng.IntN(int(pool.StepDrop) + 1)))
	case 2:
		c.Collect(policy.TriggerExplicit)
	case 3:
		p.SetLimits(pressure.Limits{Hard: pressure.Limit{Bytes: int64(40+rng.IntN(24)) * mib}, Soft: pressure.Limit{Bytes: int64(rng.IntN(64)) * mib}})
	}
	if err := p.Books(); err != nil {
		t.Error(err)
	}
}

// A soaker is one goroutine, with what it holds.
type soaker struct {
	t      *testing.T
	p      *pool.Pool
	rng    *rand.Rand
	stream uint32
	held   []soaked
}

// A soaked is an array or a block, filled with one byte.
type soaked struct {
	array array.Array[byte]
	block pool.Block // if the array is none
	fill  byte
}

func (s *soaker) step() {
	x, k := soaked{fill: byte(s.rng.Uint32())}, s.rng.IntN(100)
	size := 1 + s.rng.IntN(1<<(4+s.rng.IntN(17)))
	var err error
	switch {
	case k < 30 && len(s.held) < 24:
		if x.array, err = array.New[byte](s.p, size, array.On(s.stream)); err == nil {
			err = x.array.Fill(x.fill)
		}
	case k < 50 && len(s.held) < 24:
		if x.block, err = s.p.Alloc(int64(size), s.stream); err == nil {
			copy(s.p.Memory(x.block), bytes.Repeat([]byte{x.fill}, size))
		}
	case k < 90 && len(s.held) > 0:
		s.drop()
		return
	case k < 95 && len(s.held) > 0:
		x := s.held[0]
		s.p.Use(x.block, uint32(s.rng.IntN(4)))
		x.array.Use(uint32(s.rng.IntN(4)))
		s.held[0].array = x.array.View(0, x.array.Len()/2) // keeps the whole
		return
	default:
		if err := s.p.Sync(nil, func() error { runtime.Gosched(); return nil }); err != nil {
			s.t.Error(err)
		}
		return
	}
	if err == nil {
		s.held = append(s.held, x)
	} else if !errors.Is(err, pool.ErrOutOfMemory) {
		s.t.Error(err)
	}
}

// drop looks at one that is held, and frees it, or leaves it to the collector.
func (s *soaker) drop() {
	i, last := s.rng.IntN(len(s.held)), len(s.held)-1
	x := s.held[i]
	s.held[i], s.held[last] = s.held[last], soaked{}
	s.held = s.held[:last]
	look := func(b []byte) error {
		if n := bytes.Count(b, []byte{x.fill}); n != len(b) {
			s.t.Errorf("%d of %d bytes were changed", len(b)-n, len(b))
		}
		return nil
	}
	if x.block != (pool.Block{}) {
		look(s.p.Memory(x.block))
		s.p.Free(x.block)
		return
	}
	if err := x.array.Do(look); err != nil {
		s.t.Error(err)
	}
	if s.rng.IntN(2) == 0 {
		x.array.Free()
	}
}
