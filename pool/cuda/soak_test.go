package cuda

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

var soakSteps = flag.Int("soak", 400, "steps of each goroutine of TestSoak")

const (
	soakLimit = 8 << 30
	soakLarge = 1 << 30   // the largest array
	soakKeep  = 640 << 20 // bytes that each goroutine keeps reachable
)

// TestSoak lets four goroutines with a stream each allocate, write, hand to
// each other's streams, read back, free and drop arrays of up to 1 GiB under a
// limit of 8 GiB. What was written must be read back, the driver must never
// report more than the limit and what the context needs, and everything must
// come back at the end.
func TestSoak(t *testing.T) {
	d := open(t)
	if d.name == "simulated" {
		t.Skip("8 GiB of the host's memory would be written")
	}
	t.Run("device", func(t *testing.T) { soakOver(t, d, d.Memory()) })
	t.Run("segments", func(t *testing.T) { soakOver(t, d, d.segments()) })
}

func soakOver(t *testing.T, d *Device, up pool.Upstream) {
	w := must[*Work](t)(NewWork(d))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	c := must[*gc.Collector](t)(gc.New(gc.Config{}))
	p := must[*pool.Pool](t)(pool.New(pool.Config{
		Upstream: up, Space: d.Space(), Collector: c,
		Limits: pressure.Limits{Hard: pressure.Limit{Bytes: soakLimit}},
		Warn:   func(err error) { t.Error(err) },
	}))
	d.SyncThrough(p)
	defer d.SyncThrough(nil)

	workers := make([]*soaker, 4)
	for i := range workers {
		s := must[*Stream](t)(d.NewStream())
		workers[i] = &soaker{p: p, w: w, s: s, rng: rand.New(rand.NewPCG(uint64(i), 5)), wrong: wrong.Addr()}
		ok(t, w.Stamp(s, wrong.Addr(), 0, 0)) // the stream's own needs, before the driver is asked
		ok(t, s.Synchronize())
	}
	for i, x := range workers {
		x.other = workers[(i+1)%len(workers)].s
	}
	before, _, err := memInfo(d)
	ok(t, err)
	most, stop := watchDriver(t, d, before)

	var done sync.WaitGroup
	for _, x := range workers {
		done.Go(func() { x.err = x.run(*soakSteps) })
	}
	done.Wait()
	stop()
	ok(t, d.Synchronize())
	for i, x := range workers {
		ok(t, x.err)
		if i == 0 {
			t.Logf("worker 0: %d steps, %d refused for good", x.steps, x.refused)
		}
	}
	if n := wrong.Uint32(0); n != 0 {
		t.Errorf("%d words were not what had been written", n)
	}
	const slack = 256 << 20 // page tables and the like
	if used := most.Load(); used > soakLimit+slack {
		t.Errorf("the driver reported %v in use, limit %v", pressure.Bytes(used), pressure.Bytes(soakLimit))
	}
	stats, cycles := p.Stats(), c.Stats()
	t.Logf("%d allocations of %v, peak %v live, %v reserved, %v by the driver; %d refusals; cycles %v freed %v", stats.Allocs,
		pressure.Bytes(stats.Allocated), pressure.Bytes(stats.LivePeak), pressure.Bytes(stats.ReservedPeak),
		pressure.Bytes(most.Load()), stats.Refusals, cycles.Cycles, pressure.Bytes(cycles.Freed))

	if stats.Allocs < int64(*soakSteps) {
		t.Errorf("%d allocations in %d steps of four goroutines", stats.Allocs, *soakSteps)
	}

	c.Collect(policy.TriggerExplicit)
	c.Collect(policy.TriggerExplicit)
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%v still live when nothing is reachable", pressure.Bytes(live))
	}
	p.Close()
	c.Close()
	after, _, err := memInfo(d)
	ok(t, err)
	if before-after > slack {
		t.Errorf("%v not given back to the driver", pressure.Bytes(before-after))
	}
	ok(t, wrong.Close())
	ok(t, w.Close())
}

// watchDriver notes the most memory that the driver reports as taken since.
func watchDriver(t *testing.T, d *Device, before int64) (most *atomic.Int64, stop func()) {
	most = new(atomic.Int64)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
			free, _, err := memInfo(d)
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), before-free))
		}
	}()
	return most, func() { close(quit); <-gone }
}

// A soaker is one goroutine of the soak.
type soaker struct {
	p              *pool.Pool
	w              *Work
	s, other       *Stream
	rng            *rand.Rand
	wrong          uintptr
	kept           []stamped
	bytes          int64
	steps, refused int
	err            error
}

// A stamped array has the pattern of its seed in it.
type stamped struct {
	array.Array[byte]
	seed uint32
}

func (x *soaker) run(steps int) error {
	for x.steps = 0; x.steps < steps; x.steps++ {
		if err := x.step(); err != nil {
			return err
		}
	}
	for len(x.kept) > 0 {
		if err := x.leave(); err != nil {
			return err
		}
	}
	return nil
}

func (x *soaker) step() error {
	size := int(math.Exp(x.rng.Float64()*math.Log(soakLarge/512)) * 512)
	for len(x.kept) > 0 && x.bytes+int64(size) > soakKeep {
		if err := x.leave(); err != nil {
			return err
		}
	}
	a, err := array.New[byte](x.p, size, array.On(x.s.ID()))
	if errors.Is(err, pool.ErrOutOfMemory) {
		x.refused++ // the others hold too much, or in too small pieces
		return nil
	}
	if err != nil {
		return err
	}
	v := stamped{a, x.rng.Uint32()}
	x.kept, x.bytes = append(x.kept, v), x.bytes+int64(size)
	if err := x.w.Stamp(x.s, address(a), a.Bytes(), v.seed); err != nil {
		return err
	}
	switch x.rng.IntN(20) {
	case 0:
		return x.s.Synchronize()
	case 1, 2, 3:
		return x.lend(v)
	}
	return nil
}

// lend lets the next worker's stream read the array, and then writes it anew.
func (x *soaker) lend(v stamped) error {
	return With(v.Array, x.other, func(addr uintptr) error {
		return x.w.Verify(x.other, addr, v.Bytes(), v.seed, x.wrong)
	})
}

// leave checks a kept array and frees or drops it.
func (x *soaker) leave() error {
	i := x.rng.IntN(len(x.kept))
	v := x.kept[i]
	x.kept[i] = x.kept[len(x.kept)-1]
	x.kept[len(x.kept)-1] = stamped{}
	x.kept = x.kept[:len(x.kept)-1]
	x.bytes -= v.Bytes()
	err := With(v.Array, x.s, func(addr uintptr) error {
		return x.w.Verify(x.s, addr, v.Bytes(), v.seed, x.wrong)
	})
	if x.rng.IntN(2) == 0 {
		v.Free()
	}
	return err
}

// address is the array's memory, for its own stream's work.
func address(a array.Array[byte]) uintptr {
	b, _ := a.Block()
	return b.Addr
}
