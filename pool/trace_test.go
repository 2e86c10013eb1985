package pool_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A tape is a sink in memory.
type tape struct {
	mu sync.Mutex
	trace.Trace
	made time.Time
}

func newTape() *tape { return &tape{made: time.Now()} }

func (s *tape) Record(e trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Trace.Record(e)
}

func (s *tape) Label(text string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Trace.Labels == nil {
		s.Trace.Labels = []string{""}
	}
	i := slices.Index(s.Trace.Labels, text)
	if i < 0 {
		i = len(s.Trace.Labels)
		s.Trace.Labels = append(s.Trace.Labels, text)
	}
	return uint32(i)
}

func (s *tape) Now() time.Duration { return time.Since(s.made) }

// What a pool records is a valid trace, and adds up to what the pool says.
func TestTraceAddsUp(t *testing.T) {
	out := newTape()
	p, err := pool.New(pool.Config{Trace: out, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 32 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	kept := record(t, p)
	p.FreeAllBlocks()
	s := p.Stats()
	p.SetTrace(nil)
	kept.Free() // unseen

	slices.SortStableFunc(out.Events, func(a, b trace.Event) int { return int(a.Time - b.Time) })
	if err := out.Validate(); err != nil {
		t.Error(err)
	}
	var live, reserved int64
	count := map[trace.Kind]int64{}
	steps, byCycle := map[uint32]bool{}, 0
	for _, e := range out.Events {
		count[e.Kind]++
		switch e.Kind {
		case trace.Alloc:
			live += e.Bytes
		case trace.Free:
			live -= e.Bytes
			if e.Aux == trace.FreeCycle {
				byCycle++
			}
		case trace.Reserve:
			reserved += e.Bytes
		case trace.Release:
			reserved -= e.Bytes
		case trace.Refuse:
			steps[e.Aux] = true
		}
	}
	if live != s.Live || reserved != s.Reserved || count[trace.Alloc] != s.Allocs || count[trace.Free] != s.Frees {
		t.Errorf("trace: %d live, %d reserved, %v; pool: %+v", live, reserved, count, s)
	}
	if s.Refusals == 0 || !steps[uint32(pool.StepCollect)] || byCycle == 0 || count[trace.Sync] != 1 {
		t.Errorf("%d refusals, steps %v, %d freed by cycles, %v", s.Refusals, steps, byCycle, count)
	}
}

// record drops, frees and keeps, from two goroutines.
// TestARecordedWaitTellsItsError: recording changes nothing of what a caller gets.
func TestARecordedWaitTellsItsError(t *testing.T) {
	out, lost := newTape(), errors.New("the device is lost")
	p, err := pool.New(pool.Config{Trace: out})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Sync(nil, func() error { return lost }); err != lost {
		t.Errorf("Sync returns %v, want the error of the wait", err)
	}
	if n := len(out.Events); n != 1 || out.Events[0].Kind != trace.Sync {
		t.Errorf("%v, want one wait", out.Events)
	}
}

func record(t *testing.T, p *pool.Pool) (kept array.Array[byte]) {
	var work sync.WaitGroup
	for seed := range uint64(2) {
		work.Add(1)
		go func() {
			defer work.Done()
			rng := rand.New(rand.NewPCG(seed, 5))
			for range 300 {
				a, err := array.New[byte](p, rng.IntN(1<<20))
				var oom *pool.OutOfMemoryError
				if errors.As(err, &oom) {
					t.Error(oom.Detail())
				}
				if rng.IntN(2) == 0 {
					a.Free()
				}
			}
		}()
	}
	work.Wait()
	kept, err := array.New[byte](p, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Sync(nil, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return kept
}

// Poison names those who had the memory.
func TestPoisonNamesTheCulprit(t *testing.T) {
	p, err := pool.New(pool.Config{Poison: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b, _ := p.Alloc(1000, 0)
	m := p.Memory(b)
	p.Free(b)
	old := m[10]
	m[10] = 1 // write after free
	text := caught(func() { p.Alloc(1000, 0) })
	m[10] = old
	if !contains(text, "write after free", "trace_test.go", "freed at") {
		t.Errorf("%q", text)
	}
	c, err := p.Alloc(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	m = p.Memory(c)
	unsafe.Slice(&m[0], 1001)[1000] = 7 // write past the end
	if text := caught(func() { p.Free(c) }); !contains(text, "outside", "byte 1000", "trace_test.go") {
		t.Errorf("%q", text)
	}
}

// Arrays that nothing reaches are found by a collection, exactly, under the
// default policy of a collector that is shared with a second pool.
func TestTwoPoolsShareACollector(t *testing.T) {
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var pools [2]*pool.Pool
	for i := range pools {
		if pools[i], err = pool.New(pool.Config{Collector: c, Space: pressure.Space(i)}); err != nil {
			t.Fatal(err)
		}
		defer pools[i].Close()
	}
	kept, err := array.New[byte](pools[0], 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	dropSome(t, pools[0], 100)
	dropSome(t, pools[1], 200)
	pooltest.Collect(c)
	if a, b := pools[0].Sample(), pools[1].Sample(); a.Live != 1<<20 || b.Live != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	runtime.KeepAlive(kept)
}

//go:noinline
func dropSome(t *testing.T, p *pool.Pool, n int) {
	for range n {
		if _, err := array.New[byte](p, 1000); err != nil {
			t.Fatal(err)
		}
	}
}

func caught(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

func contains(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
