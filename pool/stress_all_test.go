package pool_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestStressTogether has 16 goroutines use one collector in every way at once:
// arrays of a pool, memory of their own, waits, cycles, policies and recorders
// that come and go, and Close at the end. All of it is recorded, and the
// recording agrees with what the pool and the collector have counted.
func TestStressTogether(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			w := new(written)
			r := trace.NewRecorder(w, trace.RecorderConfig{Buffer: 1 << 18})
			c, err := gc.New(gc.Config{Recorder: r, Space: pressure.Pinned, Limit: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			p, err := pool.New(pool.Config{Collector: c, Trace: r, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 32 << 20}}})
			if err != nil {
				t.Fatal(err)
			}
			s := &everything{t: t, p: p, c: c, r: r}
			var work sync.WaitGroup
			for seed := range uint64(16) {
				work.Add(1)
				go func() {
					defer work.Done()
					s.use(rand.New(rand.NewPCG(seed, uint64(procs))))
				}()
			}
			work.Wait()
			pooltest.Collect(c)
			if owned, given, wrong := s.owned.Load(), s.given.Load(), s.wrong.Load(); owned != given || wrong > 0 {
				t.Errorf("%d owned, %d given back, %d of them twice or while in use", owned, given, wrong)
			}
			stats, counts := c.Stats(), p.Stats()
			p.SetTrace(nil) // what follows makes events without end
			for range 4 {
				work.Add(1)
				go func() {
					defer work.Done()
					untilClosed(p)
				}()
				work.Add(1)
				go func() {
					defer work.Done()
					for (c.Collect(policy.TriggerExplicit) != policy.Cycle{}) {
						c.Sync(nil, func() error { return nil })
					}
				}()
			}
			c.Close()
			p.Close()
			work.Wait()
			if err := r.Close(); err != nil || c.Err() != nil {
				t.Error(err, c.Err())
			}
			w.compare(t, r, stats, counts)
		})
	}
}

// everything is what the goroutines share.
type everything struct {
	t                   *testing.T
	p                   *pool.Pool
	c                   *gc.Collector
	r                   *trace.Recorder
	owned, given, wrong atomic.Int64 // wrong: given back twice, or while in use
}

type owner struct {
	handle gc.Handle
	state  *ownerState // which the function that gives back may refer to
}

type ownerState struct{ done, given atomic.Bool }

func (s *everything) own() *owner {
	state := new(ownerState)
	s.owned.Add(1)
	o := &owner{state: state}
	o.handle = gc.Own(s.c, o, 1000, func(state *ownerState) {
		s.given.Add(1)
		if !state.done.Load() || state.given.Swap(true) {
			s.wrong.Add(1)
		}
	}, state)
	return o
}

// done is called when an owner is not used any more.
func (o *owner) done() {
	if o != nil {
		o.state.done.Store(true)
		runtime.KeepAlive(o)
	}
}

func (s *everything) use(rng *rand.Rand) {
	arrays, owners := make([]array.Array[byte], 8), make([]*owner, 8)
	site := &gc.WaitPlace{Name: "step"}
	for range 600 {
		i := rng.IntN(8)
		switch rng.IntN(12) {
		case 0, 1, 2, 3:
			a, err := array.New[byte](s.p, 1<<(8+rng.IntN(10)), array.On(uint32(rng.IntN(2))))
			if err != nil {
				s.t.Error(err)
				continue
			}
			arrays[i] = a.View(0, a.Len()/2)
		case 4, 5, 6:
			owners[i].done()
			owners[i] = s.own()
		case 7:
			arrays[i].Free()
		case 8:
			if owners[i] != nil {
				owners[i].done()
				owners[i].handle.Release()
			}
		case 9:
			s.c.Sync(site, func() error { runtime.Gosched(); return nil })
		case 10:
			s.c.SetPolicy(policy.MustParse([]string{"never", "always", "cudajl", "pacer"}[rng.IntN(4)]).New())
			s.c.Due()
			s.c.Reap()
		case 11:
			s.r.Label(fmt.Sprint("label ", rng.IntN(4)))
			s.c.Stats()
			s.c.Snapshot()
		}
	}
	for _, o := range owners {
		o.done()
	}
}

// written keeps what a recorder writes.
type written struct{ trace.Trace }

func (w *written) WriteBatch(events []trace.Event, labels []string) (int, error) {
	w.Events = append(w.Events, events...)
	w.Labels = append(w.Labels[:0], labels...)
	return len(events), nil
}

func (w *written) Close() error { return nil }

// compare holds the recording to what was counted, up to the end of the work.
func (w *written) compare(t *testing.T, r *trace.Recorder, stats gc.Stats, counts pool.Stats) {
	trace.Sort(w.Events)
	if r.Lost() > 0 {
		t.Fatalf("%d events were lost", r.Lost())
	}
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	var kinds [16]int
	live := map[uint64]int64{}
	for _, e := range w.Events {
		kinds[e.Kind]++
		switch e.Kind {
		case trace.Alloc:
			live[e.ID] = e.Bytes
		case trace.Free:
			delete(live, e.ID)
		}
	}
	var cycles uint64
	for _, n := range stats.Cycles {
		cycles += n
	}
	if kinds[trace.Cycle] < int(cycles) || kinds[trace.Alloc] < int(counts.Allocs) || kinds[trace.Sync] == 0 || len(live) > 0 {
		t.Errorf("recorded %d cycles of %d, %d allocations of %d, %d waits, %d objects left", kinds[trace.Cycle], cycles, kinds[trace.Alloc], counts.Allocs, kinds[trace.Sync], len(live))
	}
}
