package pool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// 16 goroutines allocate, free, drop and view while cycles run, policies change,
// memory is trimmed and, at the end, collector and pool are closed under them.
func TestStress(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			c, err := gc.New(gc.Config{})
			if err != nil {
				t.Fatal(err)
			}
			const hard = 48 << 20
			p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: hard}}})
			if err != nil {
				t.Fatal(err)
			}
			stop := p.TrimIdle(time.Millisecond)
			var work sync.WaitGroup
			for seed := range uint64(16) {
				work.Add(1)
				go func() {
					defer work.Done()
					stress(t, p, c, rand.New(rand.NewPCG(seed, uint64(procs))))
				}()
			}
			work.Wait()
			pooltest.Collect(c)
			stop() // nobody may use the pool while it is checked
			pooltest.Check(t, p)
			if s := p.Stats(); s.Live != 0 || s.ReservedPeak > hard {
				t.Errorf("%+v", s)
			}
			stop = p.TrimIdle(time.Millisecond)
			for range 4 {
				work.Add(1)
				go func() {
					defer work.Done()
					untilClosed(p)
				}()
			}
			time.Sleep(time.Millisecond)
			c.Close()
			p.Close()
			work.Wait()
			stop()
			pooltest.Check(t, p)
			if err := c.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func stress(t *testing.T, p *pool.Pool, c *gc.Collector, rng *rand.Rand) {
	var blocks []pool.Block
	var arrays []array.Array[byte]
	for range 200 {
		n := rng.IntN(1 << rng.IntN(20))
		switch rng.IntN(8) {
		case 0, 1:
			b, err := p.Alloc(int64(n), uint32(rng.IntN(3)))
			if err == nil {
				blocks = append(blocks, b)
			} else if !errors.Is(err, pool.ErrOutOfMemory) {
				t.Error(err)
			}
		case 2, 3, 4:
			a, err := array.New[byte](p, n)
			if err == nil {
				if err := a.Fill(byte(n)); err != nil {
					t.Error(err)
				}
				arrays = append(arrays, a.View(0, n/2)) // the base goes, the memory stays
			} else if !errors.Is(err, pool.ErrOutOfMemory) {
				t.Error(err)
			}
		case 5:
			p.Sync(nil, func() error { runtime.Gosched(); return nil })
		case 6:
			c.SetPolicy(policy.MustParse([]string{"never", "cudajl", "threshold:0.5"}[rng.IntN(3)]).New())
		case 7:
			if len(arrays) > 0 {
				arrays[0].Free()
			}
		}
		if len(blocks) > 3 {
			p.Free(blocks[0])
			blocks = blocks[1:]
		}
		if len(arrays) > 5 {
			arrays = append([]array.Array[byte](nil), arrays[3:]...)
		}
	}
	for _, b := range blocks {
		p.Free(b)
	}
}

func untilClosed(p *pool.Pool) {
	for {
		b, err := p.Alloc(4096, 0)
		if err != nil {
			return
		}
		p.Free(b)
	}
}

func TestTrimIdle(t *testing.T) {
	p, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stop := p.TrimIdle(time.Millisecond)
	defer stop()
	b, err := p.Alloc(5<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(b)
	for end := time.Now().Add(time.Minute); p.Stats().Reserved != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("an idle pool keeps its memory")
		}
	}
	var work sync.WaitGroup
	for range 8 {
		work.Add(1)
		go func() {
			defer work.Done()
			stop()
		}()
	}
	work.Wait()
}

func TestLimitsInPercent(t *testing.T) {
	info, err := pool.Host{}.Info()
	if err != nil {
		t.Skip(err)
	}
	p, err := pool.New(pool.Config{Limits: pressure.Limits{Soft: pressure.Limit{Percent: 1}, Hard: pressure.Limit{Percent: 50}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got, want := p.Sample().Limit, info.Total/2; got != want {
		t.Errorf("limit %d, want %d", got, want)
	}
	var report strings.Builder
	p.Report(&report)
	if want := "hard = " + pressure.Bytes(info.Total/2).String(); !strings.Contains(report.String(), want) {
		t.Errorf("%q is not in:\n%s", want, report.String())
	}
	free, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	if got := free.Sample().Limit; got <= 0 || got > info.Total {
		t.Errorf("without limits the budget is %d of %d", got, info.Total)
	}
}

func TestLimitsOfTheEnvironment(t *testing.T) {
	const hostHard = "EAGERGC_HOST_HARD_MEMORY_LIMIT"
	t.Setenv(hostHard, "64MiB")
	p, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.Sample().Limit; got != 64<<20 {
		t.Errorf("limit %d", got)
	}
	t.Setenv(hostHard, "plenty")
	if q, err := pool.New(pool.Config{}); err != nil || q.Sample().Limit == 64<<20 {
		t.Errorf("a bad variable counts as not set: %v", err)
	} else {
		q.Close()
	}
	if q, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 20}}}); err != nil {
		t.Errorf("limits of the program's own: %v", err)
	} else {
		q.Close()
	}
}

// The fast path allocates nothing on the Go heap.
func TestAllocationFree(t *testing.T) {
	p, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, size := range []int64{1, 512, 1 << 20, 3 << 20} {
		if n := testing.AllocsPerRun(100, func() {
			b, err := p.Alloc(size, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.Free(b)
		}); n != 0 {
			t.Errorf("%d bytes: %v allocations", size, n)
		}
	}
}

// FuzzOperations takes each byte as an operation: any stream of them must leave
// a sound pool, which poison watches.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 200, 100, 50, 255})
	f.Add([]byte("allocate and free and allocate"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		p, err := pool.New(pool.Config{Poison: true, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 8 << 20}}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var held []pool.Block
		for _, op := range ops[:min(len(ops), 200)] {
			switch k := op >> 6; {
			case k == 0 && len(held) > 0:
				i := int(op) % len(held)
				p.Free(held[i])
				held = append(held[:i], held[i+1:]...)
			case k == 3 && op&7 == 0:
				p.FreeAllBlocks()
			default:
				size := int64(op&63) << (8 * (k & 1))
				b, err := p.Alloc(size*size, uint32(op&1))
				if err == nil {
					held = append(held, b)
				} else if !errors.Is(err, pool.ErrOutOfMemory) {
					t.Fatal(err)
				}
			}
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range held {
			p.Free(b)
		}
		pooltest.Check(t, p)
		if s := p.Stats(); s.Live != 0 {
			t.Fatalf("%+v", s)
		}
	})
}
