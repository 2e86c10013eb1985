package pool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	"github.com/eagergc/eagergc/trace"
)

// A pool over an upstream that fails in every way goes on, and loses nothing.
func TestGoesOnUnderFaults(t *testing.T) {
	const hard = 64 << 20
	injected := map[Fault]int64{}
	for seed := range uint64(4) {
		up := &Faulty{Upstream: pool.Host{}, Seed: seed, OutageLength: 3, Delay: 100 * time.Microsecond, Rate: map[Fault]float64{
			FaultRefuse: 0.2, FaultOutage: 0.02, FaultSlow: 0.1, FaultRelease: 0.3,
			FaultSync: 0.3, FaultPanic: 0.05,
		}}
		var warned atomic.Int64
		p, err := pool.New(pool.Config{
			Upstream: up, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: hard}},
			Warn: func(err error) {
				if live := new(*pool.LiveError); errors.As(err, live) {
					return
				}
				warned.Add(1)
				if !errors.Is(err, ErrInjected) && !strings.Contains(err.Error(), "contained panic") {
					t.Error(err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		for g := range uint64(4) {
			work.Add(1)
			go func() {
				defer work.Done()
				churn(t, p, rand.New(rand.NewPCG(seed, g)))
			}()
		}
		work.Wait()
		pooltest.Check(t, p)
		if s := p.Stats(); s.Live != 0 || s.ReservedPeak > hard {
			t.Errorf("%+v", s)
		}
		p.Close()
		for try := 0; p.Stats().Reserved != 0; try++ { // releases fail, too, but not for ever
			if try > 100 {
				t.Fatalf("%d bytes are never given back", p.Stats().Reserved)
			}
			p.Synchronize()
			p.FreeAllBlocks()
		}
		for f := FaultRefuse; f <= FaultPanic; f++ {
			injected[f] += up.Injected(f)
		}
		if warned.Load() == 0 {
			t.Error("failed releases were told to nobody")
		}
	}
	for f := FaultRefuse; f <= FaultPanic; f++ {
		if injected[f] == 0 && f != FaultInfo {
			t.Errorf("no fault of kind %v", f)
		}
	}
}

func churn(t *testing.T, p *pool.Pool, rng *rand.Rand) {
	var held []pool.Block
	for range 300 {
		b, err := p.Alloc(rng.Int64N(1<<rng.IntN(24)), uint32(rng.IntN(2)))
		if err == nil {
			held = append(held, b)
			if rng.IntN(4) == 0 {
				p.Use(b, 7)
			}
		} else if !errors.Is(err, pool.ErrOutOfMemory) {
			t.Error(err)
		}
		for len(held) > 0 && (err != nil || len(held) > 4) {
			p.Free(held[0])
			held = held[1:]
			err = nil
		}
		if rng.IntN(40) == 0 {
			p.FreeAllBlocks()
		}
	}
	for _, b := range held {
		p.Free(b)
	}
}

// The budget survives an upstream that does not answer: CUDA.jl#2795.
func TestBudgetGoesOnWhenInfoFails(t *testing.T) {
	var told []error
	up := &Faulty{Upstream: pool.Host{}, Rate: map[Fault]float64{FaultInfo: 1}}
	p, err := pool.New(pool.Config{Upstream: up, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 30}}, Warn: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b, err := p.Alloc(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(b)
	if s := p.Sample(); s.Limit != 1<<30 {
		t.Errorf("sample %+v does not have the limit", s)
	}
	if len(told) != 1 {
		t.Errorf("told %d times", len(told))
	}
	if _, err := pool.New(pool.Config{Upstream: up, Limits: pressure.Limits{Hard: pressure.Limit{Percent: 50}}}); !errors.Is(err, ErrInjected) {
		t.Errorf("a share of an unknown total: %v", err)
	}
}

// An upstream that panics when it is asked, and a program that panics when it is
// told so, leave the pool as it is.
type rude struct{ pool.Host }

func (rude) Info() (pressure.Info, error)         { panic("info") }
func (rude) Release(uintptr, int64, uint32) error { panic("release") }

func TestPanicsOfInfoAndWarnAreContained(t *testing.T) {
	told := 0
	p, err := pool.New(pool.Config{Upstream: rude{}, Warn: func(error) { told++; panic("warn") }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b, err := p.Alloc(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(b)
	p.FreeAllBlocks()
	var report strings.Builder
	if p.Report(&report); told != 2 || !strings.Contains(report.String(), "unknown") {
		t.Errorf("told %d times; %s", told, report.String())
	}
	if again, err := p.Alloc(1<<20, 0); err != nil || again.Addr != b.Addr {
		t.Errorf("after the panics: %+v, %v", again, err)
	}
	_, err = pool.New(pool.Config{Upstream: rude{}, Limits: pressure.Limits{Hard: pressure.Limit{Percent: 50}}})
	if err == nil || !strings.Contains(err.Error(), "contained panic: info") {
		t.Errorf("a share of a total that is not told: %v", err)
	}
}

// Every step that fails lets the next one be tried; the error says what each did.
func TestLadderClimbsPastFailingSteps(t *testing.T) {
	up := &Faulty{Upstream: pool.Host{}, Rate: map[Fault]float64{FaultSync: 1}}
	p, err := pool.New(pool.Config{Upstream: up, Sites: 1, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Register(panicky{})
	b, _ := p.Alloc(10<<20, 0)
	_, err = p.Alloc(10<<20, 0)
	var oom *pool.OutOfMemoryError
	if !errors.As(err, &oom) {
		t.Fatal(err)
	}
	for _, c := range oom.Steps {
		failing := c.Step == pool.StepPurge || c.Step == pool.StepSynchronize || c.Step == pool.StepDrop
		if failing != (c.Err != nil) {
			t.Errorf("step %v: %v", c.Step, c.Err)
		}
	}
	if len(oom.Holders) != 1 || oom.Holders[0].Bytes != 10<<20 || !strings.Contains(oom.Holders[0].Site, "faulty_test.go") {
		t.Errorf("holders %+v", oom.Holders)
	}
	for _, word := range []string{"synchronize", "collect", "injected fault", "faulty_test.go", "called from testing.tRunner", "10.00 MiB wanted"} {
		if !strings.Contains(oom.Detail(), word) {
			t.Errorf("%q is not in:\n%s", word, oom.Detail())
		}
	}
	p.Free(b)
}

// Whatever the steps before it do, the one that makes room is reached, and none
// after it is taken.
func TestEachStepIsReachedPastThoseThatFail(t *testing.T) {
	for step := pool.StepPurge; step <= pool.StepDrop; step++ {
		if step == pool.StepWait {
			continue // an allocation waits for a cycle under way before it is refused
		}
		t.Run(step.String(), func(t *testing.T) {
			up := &Faulty{Upstream: newDevice(), Rate: map[Fault]float64{FaultSync: 1}}
			if step == pool.StepSynchronize {
				up.Rate = nil
			}
			steps := new(stepsTaken)
			p, err := pool.New(pool.Config{Upstream: up, Trace: steps, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			room := fill(t, p, step)
			p.Register(&frees{step, room})
			b, err := p.Alloc(10<<20, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.Free(b)
			var want []pool.Step
			for s := pool.StepReap; s <= step; s++ {
				want = append(want, s)
			}
			if got := steps.list(); !slices.Equal(got, want) {
				t.Errorf("steps %v, want %v", got, want)
			}
		})
	}
}

// fill takes most of the memory, which step gives back, and returns how if that
// is not for the pool to do.
func fill(t *testing.T, p *pool.Pool, step pool.Step) (giveBack func()) {
	if step == pool.StepCollect {
		if _, err := array.New[byte](p, 10<<20); err != nil {
			t.Fatal(err)
		}
		return func() {}
	}
	b, err := p.Alloc(10<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	if step == pool.StepSynchronize {
		p.Use(b, 7)
		p.Free(b)
		return func() {}
	}
	return func() { p.Free(b) }
}

// frees gives back at one step and panics at the other.
type frees struct {
	at   pool.Step
	give func()
}

func (f *frees) Purge() { f.take(pool.StepPurge) }
func (f *frees) Drop()  { f.take(pool.StepDrop) }
func (f *frees) take(s pool.Step) {
	if s != f.at {
		panic(s.String())
	}
	f.give()
}

type stepsTaken struct {
	mu    sync.Mutex
	taken []pool.Step
}

func (s *stepsTaken) Record(e trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == trace.Refuse {
		s.taken = append(s.taken, pool.Step(e.Aux))
	}
}

func (s *stepsTaken) Label(string) uint32 { return 0 }
func (s *stepsTaken) Now() time.Duration  { return 0 }

func (s *stepsTaken) list() []pool.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

type panicky struct{}

func (panicky) Purge() { panic("purge") }
func (panicky) Drop()  { panic("drop") }

// A program that keeps asking for what does not fit must not spend its time on
// collections, and is served as soon as somebody frees.
func TestFutileCollectionsBackOff(t *testing.T) {
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b, err := p.Alloc(10<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 10 {
		if _, err := p.Alloc(10<<20, 0); err == nil {
			t.Fatal("it fits")
		}
	}
	// Each but the last was followed by a wait of at least its own length, or the longest wait there is.
	all, s := time.Since(begin), c.Stats()
	if busy := s.Busy - s.Last.Duration; busy > all/2 && s.Busy < 256*time.Millisecond {
		t.Errorf("%v of %v went into futile collections", busy, all)
	}
	got := make(chan error)
	go func() {
		for {
			x, err := p.Alloc(10<<20, 0)
			if err == nil {
				p.Free(x)
				got <- nil
				return
			}
		}
	}()
	time.Sleep(5 * time.Millisecond)
	p.Free(b)
	select {
	case <-got:
	case <-time.After(30 * time.Second):
		t.Fatal("never served")
	}
}

func ExamplePool() {
	p, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 30}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	a, err := array.New[float32](p, 1024) // freed when nothing reaches it
	if err != nil {
		fmt.Println(err)
		return
	}
	a.Fill(0.5)
	a.Do(func(x []float32) error { fmt.Println(len(x), x[7]); return nil })
	fmt.Println(pressure.Bytes(p.Sample().Live), "live")
	a.Free()
	fmt.Println(pressure.Bytes(p.Sample().Live), "live")
	// Output:
	// 1024 0.5
	// 4.00 KiB live
	// 0 B live
}

// What is freed while somebody is on the ladder is for the one who was refused
// first, and not for those who come later and are quicker.
type slowDevice struct {
	pool.Host
	called, goOn chan struct{}
	once         sync.Once
}

func (d *slowDevice) Synchronize() error {
	d.once.Do(func() { close(d.called) })
	<-d.goOn
	return nil
}

func TestFirstRefusedFirstServed(t *testing.T) {
	up := &slowDevice{called: make(chan struct{}), goOn: make(chan struct{})}
	p, err := pool.New(pool.Config{Upstream: up, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Alloc(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := p.Alloc(14<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	small, err := p.Alloc(1<<20, 0) // the other half of b's segment
	if err != nil {
		t.Fatal(err)
	}
	first, second := make(chan error, 1), make(chan error, 1)
	alloc := func(to chan error) {
		_, err := p.Alloc(1<<20, 0)
		to <- err
	}
	go alloc(first)
	<-up.called
	p.Free(b)
	go alloc(second)
	time.Sleep(time.Millisecond) // lets a second that does not wait take it
	close(up.goOn)
	if err := <-first; err != nil {
		t.Error("the first was refused: ", err)
	}
	if err := <-second; !errors.Is(err, pool.ErrOutOfMemory) {
		t.Error("the second was served: ", err)
	}
	p.Free(rest)
	p.Free(small)
	pooltest.Check(t, p)
}
