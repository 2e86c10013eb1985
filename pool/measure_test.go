package pool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// Measure tells what one function did, whatever came before it.
func TestMeasure(t *testing.T) {
	p := open(t, pool.Config{Limits: hard(64 * mib), ExactPeaks: true})
	for range 3 {
		if _, err := array.New[byte](p, 20*mib); err != nil {
			t.Fatal(err)
		}
	}
	failure := errors.New("the function's")
	m, err := p.Measure(func() error {
		a, err := array.New[byte](p, 40*mib) // climbs the ladder for it
		if err != nil {
			return err
		}
		for end := time.Now().Add(time.Minute); p.Stats().Live > 40*mib && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // until all three are given back
		}
		b, err := array.New[byte](p, 8192)
		if err != nil {
			return err
		}
		a.Free()
		defer b.Free()
		time.Sleep(time.Millisecond)
		return failure
	})
	if err != failure {
		t.Fatal(err)
	}
	if m.Peak < 60*mib || m.Peak > 64*mib || m.Collector <= 0 || m.Held <= 0 {
		t.Errorf("a function that was refused beside 60 MiB of garbage, and waited for a cycle: %+v", m)
	}
	if m.Allocs != 2 || m.Bytes != 40*mib+8192 || m.Frees != 5 || m.Net != -60*mib || m.Refusals != 1 || m.Ladder <= 0 || m.Cycles == 0 || m.Elapsed < time.Millisecond {
		t.Errorf("%+v", m)
	}
	if text := m.String(); !strings.Contains(text, "2 allocations: 40.01 MiB") || !strings.Contains(text, "1 refusals") {
		t.Error(text)
	}
	m, _ = p.Measure(func() error { return nil })
	m.Elapsed, m.Cycles = 0, 0 // the runtime may run cycles of its own
	if m != (pool.Measurement{}) {
		t.Errorf("nothing was done: %+v", m)
	}
}

// Measure waits for work that was queued before, and for that of the function.
func TestMeasureWaitsForTheDevice(t *testing.T) {
	d := newDevice()
	p := open(t, pool.Config{Upstream: d, Space: pressure.Device(0)})
	d.queued[1]++
	m, err := p.Measure(func() error {
		if d.done[1] != 1 {
			t.Error("what was queued before is counted")
		}
		d.queued[1]++
		b, err := p.Alloc(3*mib, 1)
		p.Free(b)
		return err
	})
	if err != nil || d.done[1] != 2 || m.Peak != 3*mib || m.Net != 0 {
		t.Errorf("%v; %d of 2 pieces of work done; %+v", err, d.done[1], m)
	}
}

// CanAllocate and Retry know what all pools of the device could give back.
func TestRoomBesideThePools(t *testing.T) {
	d := newSmall(100 * mib)
	p := open(t, pool.Config{Upstream: shared{d}, Space: pressure.Device(200)})
	q := open(t, pool.Config{Upstream: managed{d}, Space: pressure.Managed})
	x, err := q.Alloc(60*mib, 0)
	if err != nil {
		t.Fatal(err)
	}
	can := func(bytes int64, want bool, when string) {
		t.Helper()
		if got := p.CanAllocate(bytes, 0); got != want {
			t.Errorf("%s: %v fits: %v", when, pressure.Bytes(bytes), got)
		}
		b, err := p.Alloc(bytes, 0)
		if (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		} else if err == nil {
			p.Free(b)
		}
	}
	can(40*mib, true, "beside 60 MiB")
	can(42*mib, false, "beside 60 MiB")
	q.Free(x)
	can(90*mib, true, "all is cached, by two pools")
	can(-1, false, "no size")
	tries := 0
	load := func() error { // such as a module, by the driver
		if tries++; d.total-d.used < 80*mib {
			return fmt.Errorf("driver: %w", pool.ErrOutOfMemory)
		}
		return nil
	}
	if err := p.Retry(load); err != nil || tries != 2 {
		t.Errorf("80 MiB for the driver, all cached: %v after %d calls", err, tries)
	}
	tries = 0
	if _, err := array.New[byte](p, 60*mib); err != nil { // garbage at once
		t.Fatal(err)
	}
	if err := p.Retry(load); err != nil || tries < 3 {
		t.Errorf("80 MiB for the driver beside garbage: %v after %d calls", err, tries)
	}
	other := errors.New("no such kernel")
	tries = 0
	if err := p.Retry(func() error { tries++; return other }); err != other || tries != 1 {
		t.Errorf("another error: %v, %d calls", err, tries)
	}
}

func TestExactPeaks(t *testing.T) {
	p := open(t, pool.Config{ExactPeaks: true})
	a, err := array.New[byte](p, 8192)
	if err != nil {
		t.Fatal(err)
	}
	a.Free()
	b, _ := p.Alloc(4096, 0)
	p.Free(b)
	if s := p.Stats(); s.LivePeak != 8192 {
		t.Errorf("a peak of %d bytes after one array of 8192", s.LivePeak)
	}
}

func TestCloseSaysWhatIsLive(t *testing.T) {
	var warned []error
	p, err := pool.New(pool.Config{Sites: 1, Warn: func(err error) { warned = append(warned, err) }})
	if err != nil {
		t.Fatal(err)
	}
	held := []pool.Block{hither(p, 3000), hither(p, 3000)}
	p.Close()
	var live *pool.LiveError
	if len(warned) != 1 || !errors.As(warned[0], &live) || live.Blocks != 2 || live.Bytes != 2*3072 || len(live.By) != 1 || !strings.Contains(live.Error(), "hither") {
		t.Errorf("warned: %v", warned)
	}
	for _, b := range held {
		p.Free(b)
	}
	p.Close()
	if len(warned) != 1 {
		t.Errorf("a second Close warned: %v", warned[1:])
	}
}

// The report has the lines of CUDA.jl's pool_status, with the numbers of the moment.
func TestReport(t *testing.T) {
	d := newSmall(100 * mib)
	p := open(t, pool.Config{Upstream: d, Space: pressure.Device(0), Limits: hard(90 * mib), ExactPeaks: true})
	x, _ := p.Alloc(8192, 0)
	y, _ := p.Alloc(30*mib, 0)
	p.Free(y)
	var b strings.Builder
	if err := p.Report(&b); err != nil {
		t.Fatal(err)
	}
	const want = `Effective device0 memory usage: 32.00% (32.00 MiB/100.00 MiB)
Memory pool usage: 8.00 KiB (32.00 MiB reserved)
Memory limit: soft = none, hard = 90.00 MiB
Cached: 31.99 MiB in 2 pieces of 2 segments, largest 30.00 MiB (fragmentation 6%)
Peaks: 30.01 MiB live, 32.00 MiB reserved
Allocations: 2 of 30.01 MiB, 1 given back; 0 refused, 0 failed
`
	if got := b.String(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
	p.Free(x)
}

// Memory that is cached is handed out without a call of the upstream, also under a hard
// limit: no question, no wait. A pool that is Direct caches nothing.
func TestCallsOfTheUpstream(t *testing.T) {
	for _, direct := range []bool{false, true} {
		u := &asked{small: newSmall(100 * mib)}
		p := open(t, pool.Config{Upstream: u, Space: pressure.Device(0), Limits: hard(90 * mib), Direct: direct})
		for range 3 {
			b, err := p.Alloc(3*mib, 1)
			if err != nil {
				t.Fatal(err)
			}
			p.Free(b)
		}
		u.calls = 0
		for range 100 {
			b, err := p.Alloc(3*mib, 1)
			if err != nil {
				t.Fatal(err)
			}
			p.Free(b)
		}
		if direct && (u.calls != 200 || u.used != 0) || !direct && u.calls != 0 {
			t.Errorf("direct %v: %d calls for 100 allocations, %d bytes kept", direct, u.calls, u.used)
		}
	}
}

// asked counts the calls of an upstream, those of a budget for an estimate apart.
type asked struct {
	*small
	calls int
}

func (a *asked) Allocate(bytes int64, stream uint32) (uintptr, error) {
	a.calls++
	return a.small.Allocate(bytes, stream)
}

func (a *asked) Release(addr uintptr, bytes int64, stream uint32) error {
	a.calls++
	return a.small.Release(addr, bytes, stream)
}

func (a *asked) Fence(stream uint32) (pool.Fence, error) {
	a.calls++
	return a.small.Fence(stream)
}

func (a *asked) Synchronize() error {
	a.calls++
	return a.small.Synchronize()
}

// The report says what others hold of the device.
func TestReportSaysWhatOthersHold(t *testing.T) {
	d := newSmall(100 * mib)
	p := open(t, pool.Config{Upstream: d, Space: pressure.Device(0)})
	q := open(t, pool.Config{Upstream: d, Space: pressure.Device(0)})
	report := func() string {
		var b strings.Builder
		p.Report(&b)
		return b.String()
	}
	if text := report(); strings.Contains(text, "others") || strings.Contains(text, "Other pools") {
		t.Errorf("nobody holds anything:\n%s", text)
	}
	d.used += 10 * mib // another program
	x, _ := q.Alloc(20*mib, 0)
	if text := report(); !strings.Contains(text, "Held by others: 10.00 MiB") || !strings.Contains(text, "Other pools of the same memory: 20.00 MiB reserved") {
		t.Errorf("report:\n%s", text)
	}
	q.Free(x)
}
