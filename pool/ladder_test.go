package pool_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// calls is a Reclaimable that does what it is told.
type calls struct{ purge, drop func() }

func (c calls) Purge() { c.purge() }
func (c calls) Drop()  { c.drop() }

func nothing() {}

// leave leaves a block to the collector, whose owner nobody has.
//
//go:noinline
func leave(t *testing.T, p *pool.Pool, bytes int64) {
	t.Helper()
	if _, err := array.New[byte](p, int(bytes)); err != nil {
		t.Fatal(err)
	}
}

// sink records into a trace at a clock that stands.
type sink struct{ *trace.Trace }

func (s sink) Now() time.Duration { return 0 }
func (s sink) Label(text string) uint32 {
	s.Labels = append(s.Labels, text)
	return uint32(len(s.Labels) - 1)
}

// TestRetryClimbs: all that is cached, then a step before each further call, until it fits or fails otherwise.
func TestRetryClimbs(t *testing.T) {
	other := errors.New("other")
	for fits := range 10 {
		u := newDevice(1 << 40)
		p := open(t, pool.Config{Upstream: u, Space: pressure.Device(0)})
		var seen []string
		say := func(what string) func() { return func() { seen = append(seen, what) } }
		cancel := p.Register(calls{say("purge"), say("drop")})
		p.Free(alloc(t, p, mib))
		tries := 0
		err := p.Retry(func() error {
			if tries++; tries > 1 && u.used > 0 {
				t.Error("memory is still cached")
			}
			seen = append(seen, "try")
			switch {
			case tries <= fits:
				return fmt.Errorf("driver: %w", pool.ErrOutOfMemory)
			case fits == 3:
				return other
			}
			return nil
		})
		// Before each call: the cache, reap, purge, wait, synchronize, collect, drop.
		want := strings.SplitAfter("try try try purge try try try try drop try", "try")[:min(fits+1, 8)]
		if got := strings.Join(seen, " "); got != strings.Join(want, "") {
			t.Errorf("fits after %d: %v, want %v", fits, got, want)
		}
		if wantErr := map[bool]error{true: pool.ErrOutOfMemory}[fits > 7]; fits != 3 && !errors.Is(err, wantErr) || fits == 3 && err != other {
			t.Errorf("fits after %d: %v", fits, err)
		}
		cancel()
		cancel()
		if n := len(seen); p.Reclaim(pool.StepDrop) < 0 || len(seen) != n {
			t.Error("one that was cancelled is asked")
		}
	}
}

// thief takes what a cycle has freed, before the one who waits for it can, and gives it back at the second Purge.
type thief struct {
	device
	steals bool
	stolen int64
}

func (u *thief) Release(addr uintptr, bytes int64, stream uint32) error {
	err := u.device.Release(addr, bytes, stream)
	if u.steals {
		u.used, u.stolen = u.used+bytes, u.stolen+bytes
	}
	return err
}

// TestASecondRound: if cycles have found as much as is wanted and another took it, the ladder is climbed again; if they found less, in
// the first round or in the second, it is not.
func TestASecondRound(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no cycle but those of the ladder
	for _, c := range []struct {
		garbage int64
		keeps   bool // what it has stolen, for ever
		rounds  int
	}{{4 * mib, false, 2}, {3 * mib, false, 1}, {4 * mib, true, 2}} {
		u, purges := &thief{device: device{total: 4 * mib}}, 0
		p := open(t, pool.Config{Upstream: u, Direct: true})
		p.Register(calls{func() {
			if purges++; purges == 2 && !c.keeps {
				u.used, u.steals = u.used-u.stolen, false
			}
		}, nothing})
		leave(t, p, c.garbage)
		u.steals = true
		b, err := p.Alloc(4*mib, 0)
		if purges != c.rounds || (err == nil) != (c.rounds == 2 && !c.keeps) {
			t.Errorf("%+v: %d rounds, %v", c, purges, err)
		}
		if err == nil {
			p.Free(b)
		} else if oom := new(pool.OutOfMemoryError); !errors.As(err, &oom) || len(oom.Steps) != c.rounds*int(pool.StepDrop+1) {
			t.Errorf("%+v: %v", c, err)
		}
		u.steals = false
	}
}

// TestFirstComeFirstServed: those who are refused are served in the order in which they came, before those who come later. Each climbs until Purge; then the test frees one block.
func TestFirstComeFirstServed(t *testing.T) {
	const others = 6
	p := open(t, pool.Config{Limits: hard(others * mib), Direct: true})
	entered, goOn := make(chan struct{}), make(chan struct{})
	p.Register(calls{func() { entered <- struct{}{}; <-goOn }, nothing})
	var held []pool.Block
	for range others {
		held = append(held, alloc(t, p, mib))
	}
	type service struct {
		number int
		block  pool.Block
	}
	served := make(chan service, others)
	for k := range others {
		go func() {
			b, err := p.Alloc(mib, 0)
			if err != nil {
				t.Error(err)
			}
			served <- service{k, b}
		}()
		if k == 0 {
			<-entered
		} else {
			inLine(t, k)
		}
	}
	for k := range others {
		if k > 0 {
			<-entered
		}
		p.Free(held[k])
		goOn <- struct{}{}
		s := <-served
		if s.number != k {
			t.Errorf("number %d was served when it was number %d's turn", s.number, k)
		}
		defer p.Free(s.block)
	}
}

// inLine waits until n goroutines stand in the line of a ladder, and wait for their turn.
func inLine(t *testing.T, n int) {
	t.Helper()
	waitFor(t, fmt.Sprint(n, " are in line"), func() bool {
		return strings.Count(stacks(), " [select]:\ngithub.com/eagergc/eagergc/pool.(*Pool).getInLine(") == n
	})
}

// TestNobodyStandsInLineForEver: a Purge that hangs holds up the one who called it, and others for
// a second. They then leave the line from its middle and its end.
func TestNobodyStandsInLineForEver(t *testing.T) {
	p := open(t, pool.Config{Limits: hard(mib), Direct: true})
	entered, goOn := make(chan struct{}), make(chan struct{})
	cancel := p.Register(calls{func() { close(entered); <-goOn }, nothing})
	held := alloc(t, p, mib)
	failed := make(chan error, 4)
	ask := func() {
		_, err := p.Alloc(mib, 0)
		failed <- err
	}
	go ask()
	<-entered
	cancel() // for those who come now
	for range 3 {
		go ask()
	}
	for k := range 4 {
		if k == 3 {
			close(goOn)
		}
		if err := <-failed; !errors.Is(err, pool.ErrOutOfMemory) {
			t.Error(err)
		}
	}
	p.Free(held)
}

// slow is memory that takes its time to give back.
type slow struct {
	pool.Host
	on atomic.Bool
}

func (u *slow) Release(addr uintptr, bytes int64, stream uint32) error {
	if u.on.Load() {
		time.Sleep(250 * time.Millisecond) // longer than a cycle waits for a release that makes no progress
	}
	return u.Host.Release(addr, bytes, stream)
}

// TestNothingFailsWhileReleasesAreUnderWay: what a cycle found dead is room, even if giving it back takes longer than a cycle waits.
func TestNothingFailsWhileReleasesAreUnderWay(t *testing.T) {
	up := new(slow)
	p := open(t, pool.Config{Upstream: up, Direct: true, Limits: hard(mib)})
	leave(t, p, mib)
	up.on.Store(true)
	defer up.on.Store(false)
	a, err := array.New[byte](p, mib)
	if err != nil {
		t.Fatal(err)
	}
	a.Free()
}

// TestNothingFailsWhileMemoryMoves: eight allocations succeed, although the first needs a while to give cached memory back to make room.
func TestNothingFailsWhileMemoryMoves(t *testing.T) {
	up := new(slow)
	p := open(t, pool.Config{Upstream: up, Limits: hard(64 * mib)})
	p.Free(alloc(t, p, 64*mib))
	up.on.Store(true)
	defer up.on.Store(false)
	together(8, func(int) { p.Free(alloc(t, p, 512)) })()
}

// TestAFreeEndsARest: a climber that rests after a collection in vain goes on when a block is freed. The rest is as long as that
// collection was, at most 256 ms. Where nothing wakes the climber, no try is quicker; on a busy machine some are slower.
func TestAFreeEndsARest(t *testing.T) {
	up := new(slow)
	p := open(t, pool.Config{Upstream: up, Direct: true, Limits: hard(2 * mib)})
	for range 20 {
		held := alloc(t, p, mib)
		leave(t, p, mib/2)
		up.on.Store(true)
		_, err := p.Alloc(2*mib, 0)
		up.on.Store(false)
		oom := new(pool.OutOfMemoryError)
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		rest, begin := min(oom.Steps[pool.StepCollect].Duration, 256*time.Millisecond), time.Now()
		wait := together(1, func(int) { p.Free(alloc(t, p, 2*mib)) })
		waitFor(t, "the climber rests", func() bool {
			return strings.Contains(stacks(), ".waitForFree(") || time.Since(begin) > rest
		})
		p.Free(held)
		if wait(); time.Since(begin) < rest {
			return
		}
	}
	t.Error("each time the climber has rested to the end")
}

// TestGarbageOfOnePoolServesAnother: a refusal collects the garbage of every pool of the device, whoever's collector has to find it.
func TestGarbageOfOnePoolServesAnother(t *testing.T) {
	for _, one := range []bool{true, false} {
		cfg := pool.Config{Upstream: newDevice(64 * mib), Space: pressure.Device(0)}
		if one {
			cfg.Collector = never(t)
		}
		a, b := open(t, cfg), open(t, cfg)
		for range 15 {
			leave(t, a, 4*mib)
		}
		y, err := array.New[byte](b, 32*mib)
		if err != nil {
			t.Errorf("one collector %v: all is garbage, and 32 of 64 MiB are refused: %v", one, err)
		}
		y.Free()
		tries := 0
		leave(t, a, 40*mib)
		if err := b.Retry(func() error { // such as a module, loaded by the driver
			if _, err := cfg.Upstream.Allocate(60*mib, 0); err == nil {
				return nil
			}
			tries++
			return pool.ErrOutOfMemory
		}); err != nil || tries < 2 {
			t.Errorf("beside garbage: %v after %d calls", err, tries)
		}
	}
}

// TestTheWholeTextOfOutOfMemory: the line, the steps, the report, a page that is there with the remedies in order, and the holders.
func TestTheWholeTextOfOutOfMemory(t *testing.T) {
	cause := errors.New("the device is full")
	oom := &pool.OutOfMemoryError{
		Bytes: 3 * mib, Sample: pressure.Sample{Space: pressure.Pinned, Live: 5 * mib, Reserved: 6 * mib, Limit: 7 * mib}, Report: "a report\n", Err: cause,
		Steps: []pool.Climb{{Step: pool.StepPurge, Duration: 1500 * time.Nanosecond, Freed: 1024, Released: 2048}, {Step: pool.StepDrop + 1, Err: errors.New("it broke")}},
		Holders: []pool.Holder{{Site: "main.f f.go:1", Stack: "main.f\tf.go:1\nmain.g\tg.go:2\nmain.h\th.go:3\nmain.i\ti.go:4", Bytes: 4 * mib, Blocks: 9},
			{Site: "main.j j.go:5", Stack: "main.j\tj.go:5", Bytes: mib, Blocks: 1}},
	}
	const page = "https://github.com/eagergc/eagergc/blob/main/pool/OUTOFMEMORY.md"
	line := "pool: out of pinned memory: 3.00 MiB wanted, 5.00 MiB live, 6.00 MiB reserved, limit 7.00 MiB"
	for _, c := range [][2]string{
		{oom.Error(), line + ": the device is full"},
		{(&pool.OutOfMemoryError{Bytes: 512}).Error(), "pool: out of host memory: 512 B wanted, 0 B live, 0 B reserved, limit none"},
		{oom.Detail(), line + `: the device is full
  purge              2µs  freed 1.00 KiB, released 2.00 KiB
  unknown             0s  freed 0 B, released 0 B, failed: it broke
a report
What to try: ` + page + `
  4.00 MiB in 9 blocks from main.f f.go:1
    called from main.g g.go:2
    called from main.h h.go:3
  1.00 MiB in 1 blocks from main.j j.go:5
`},
	} {
		if c[0] != c[1] {
			t.Errorf("got\n%s\nwant\n%s", c[0], c[1])
		}
	}
	if !errors.Is(oom, pool.ErrOutOfMemory) || !errors.Is(oom, cause) {
		t.Error("neither the kind nor the cause is found in it")
	}
	text, err := os.ReadFile(path.Base(page))
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for _, remedy := range []string{"holds the memory", "fragments", "smaller batch", "Accumulation", "Recompute", "in place", "Half precision", "Managed memory"} {
		var ok bool
		if _, rest, ok = strings.Cut(rest, remedy); !ok {
			t.Errorf("the page lacks %q, or has it too early", remedy)
		}
	}
}

// TestTenHoldersAreNamed: the largest ten, where memory is out and where a pool is closed; and the steps that failed.
func TestTenHoldersAreNamed(t *testing.T) {
	up := newDevice(1 << 30)
	var warned []error
	p := open(t, pool.Config{Upstream: up, Sites: 1, Limits: hard(mib), Warn: func(err error) { warned = append(warned, err) }})
	var all []pool.Block
	for k := range 12 {
		all = append(all, atDepth(t, p, k, int64(k+1)*512))
	}
	up.lost = errors.New("lost")
	defer p.Register(calls{func() { panic("purge") }, nothing})()
	_, err := p.Alloc(2*mib, 0)
	up.lost = nil
	p.Close()
	p.Close()
	var oom *pool.OutOfMemoryError
	var live *pool.LiveError
	i := slices.IndexFunc(warned, func(err error) bool { return errors.As(err, &live) })
	if !errors.As(err, &oom) || i != len(warned)-1 {
		t.Fatal(err, warned)
	}
	for _, list := range [][]pool.Holder{oom.Holders, live.By} {
		if len(list) != 10 || list[0].Bytes != 12*512 || list[9].Bytes != 3*512 || list[9].Blocks != 1 {
			t.Errorf("%+v", list)
		}
	}
	for _, c := range oom.Steps {
		if failing := c.Step == pool.StepPurge || c.Step == pool.StepSynchronize; failing != (c.Err != nil) {
			t.Errorf("step %v: %v", c.Step, c.Err)
		}
	}
	if want := "pool: host pool closed with 39.00 KiB live in 12 blocks; 6.00 KiB in 1 blocks from github.com/eagergc/eagergc/pool_test.atDepth "; !strings.HasPrefix(live.Error(), want) || live.Bytes != 78*512 || live.Blocks != 12 {
		t.Errorf("%v, want %s", live, want)
	}
	for _, b := range all {
		p.Free(b)
	}
}

// atDepth allocates: each depth is a stack of its own.
//
//go:noinline
func atDepth(t *testing.T, p *pool.Pool, depth int, bytes int64) pool.Block {
	if depth > 0 {
		return atDepth(t, p, depth-1, bytes)
	}
	b, err := p.Alloc(bytes, 0)
	if err != nil {
		t.Error(err)
	}
	return b
}
