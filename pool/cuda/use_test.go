package cuda

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// newPool returns a pool over u that is checked to be empty at the end.
func newPool(t testing.TB, u pool.Upstream, space pressure.Space, direct bool) *pool.Pool {
	t.Helper()
	c := must[*gc.Collector](t)(gc.New(gc.Config{}))
	p := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: u, Space: space, Collector: c, Direct: direct,
		Warn: func(err error) { t.Error(err) }}))
	t.Cleanup(func() {
		c.Collect(policy.TriggerExplicit)
		if live := p.Sample().Live; live != 0 {
			t.Errorf("%d bytes are still live", live)
		}
		p.Close()
		c.Close()
	})
	return p
}

func pattern(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i) * 2654435761
	}
	return s
}

func TestArraysInEveryMemory(t *testing.T) {
	d := open(t)
	driver := must[*DriverPool](t)(d.NewDriverPool(-1))
	t.Cleanup(func() { ok(t, driver.Close()) })
	for _, m := range memories(t, d, driver) {
		t.Run(m.name, func(t *testing.T) {
			p := newPool(t, m.up, m.space, m.direct)
			s := must[*Stream](t)(d.NewStream())
			want := pattern(100_000)
			a := must[array.Array[uint32]](t)(array.New[uint32](p, len(want), array.On(s.ID())))
			ok(t, a.CopyIn(want))
			b := must[array.Array[uint32]](t)(array.New[uint32](p, len(want), array.On(s.ID())))
			ok(t, CopyTo(b, a, s))
			got := make([]uint32, len(want))
			ok(t, b.CopyOut(got))
			if !slices.Equal(got, want) {
				t.Error("elements changed on the way")
			}
			ok(t, b.Fill(7))
			ok(t, b.CopyFrom(a.View(0, a.Len())))
			ok(t, b.View(1, 2).Fill(8))
			ok(t, b.CopyOut(got))
			if got[0] != want[0] || got[1] != 8 || got[2] != want[2] {
				t.Errorf("got %v", got[:3])
			}
			err := a.Do(func(s []uint32) error {
				if !slices.Equal(s, want) {
					t.Error("the processor sees other elements")
				}
				return nil
			})
			if _, isDevice := m.space.Device(); isDevice != (err != nil) {
				t.Errorf("Do on %s memory: %v", m.name, err)
			}
			a.Free()
			if err := With(a, s, func(uintptr) error { return nil }); !errors.Is(err, array.ErrFreed) {
				t.Errorf("With after Free: %v", err)
			}
			b.Free()
		})
	}
}

// A slow kernel writes an array on one stream; work on another, the processor,
// and a successor that reuses its memory must all come after it.
func TestStreamOrder(t *testing.T) {
	d := open(t)
	p, pinned := newPool(t, d.Memory(), d.Space(), false), newPool(t, d.Pinned(), pressure.Pinned, false)
	s, other := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	const n = 1 << 20
	slowly := func(s *Stream, addr uintptr, seed uint32) {
		t.Helper()
		ok(t, w.Spin(s, 20*time.Millisecond))
		ok(t, w.Stamp(s, addr, n, seed))
	}
	check := func(what string) {
		t.Helper()
		ok(t, d.Synchronize())
		if wrong.Uint32(0) != 0 {
			t.Errorf("%s: %d words are wrong", what, wrong.Uint32(0))
		}
		clear(wrong.Bytes())
	}
	newArray := func(p *pool.Pool, stream uint32) array.Array[byte] {
		return must[array.Array[byte]](t)(array.New[byte](p, n, array.On(stream)))
	}

	a := newArray(p, s.ID())
	ok(t, With(a, s, func(addr uintptr) error { slowly(s, addr, 1); return nil }))
	ok(t, With(a, other, func(addr uintptr) error { return w.Verify(other, addr, n, 1, wrong.Addr()) }))
	check("use on another stream")

	ok(t, With(a, other, func(addr uintptr) error { slowly(other, addr, 2); return nil }))
	var first uintptr
	ok(t, With(a, other, func(addr uintptr) error {
		first = addr
		return w.Verify(other, addr, n, 2, wrong.Addr())
	}))
	a.Free() // while other still writes it
	b := newArray(p, s.ID())
	ok(t, With(b, s, func(addr uintptr) error {
		if addr == first {
			t.Error("memory is reused while another stream uses it")
		}
		return w.Stamp(s, addr, n, 3)
	}))
	check("free while another stream uses it")
	ok(t, p.Synchronize())
	b.Free()

	h := newArray(pinned, 0)
	ok(t, With(h, other, func(addr uintptr) error { slowly(other, addr, 0); return nil }))
	ok(t, h.Do(func(bytes []byte) error { // must wait for the kernel
		if idle := must[bool](t)(other.idle()); !idle {
			t.Error("the processor gets pinned memory while a kernel writes it")
		}
		return nil
	}))
	h.Free()

	c := newArray(p, other.ID())
	ok(t, With(c, other, func(addr uintptr) error { slowly(other, addr, 4); return nil }))
	ok(t, other.Close())
	ok(t, With(c, s, func(addr uintptr) error { return w.Verify(s, addr, n, 4, wrong.Addr()) }))
	check("use after the last stream is gone")
	out := make([]byte, n)
	ok(t, c.CopyOut(out))
	c.Free()
	ok(t, wrong.Close())
	ok(t, w.Close())
}

func TestCaptureTaints(t *testing.T) {
	d := open(t)
	p := newPool(t, d.Memory(), d.Space(), false)
	s, other := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	const n = 1 << 20
	a := must[array.Array[byte]](t)(array.New[byte](p, n, array.On(s.ID())))
	g := must[*Graph](t)(s.Capture(func() error {
		return With(a, s, func(addr uintptr) error {
			if err := w.Spin(s, 20*time.Millisecond); err != nil {
				return err
			}
			return w.Stamp(s, addr, n, 9)
		})
	}))
	third := must[*Stream](t)(d.NewStream())
	ok(t, g.Launch(third)) // nobody knows that third writes a now
	ok(t, With(a, other, func(addr uintptr) error { return w.Verify(other, addr, n, 9, wrong.Addr()) }))
	ok(t, d.Synchronize())
	if wrong.Uint32(0) != 0 {
		t.Errorf("%d words are wrong", wrong.Uint32(0))
	}
	ok(t, g.Close())
	a.Free()
	ok(t, wrong.Close())
	ok(t, w.Close())
}

func TestBatchesArriveWhole(t *testing.T) {
	d := open(t)
	p, pinned := newPool(t, d.Memory(), d.Space(), false), newPool(t, d.Pinned(), pressure.Pinned, false)
	d.stageThrough(pinned)
	defer d.stageThrough(nil)
	s, uploads := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	data := pattern(1_000_000)
	seen := 0
	sum := must[array.Array[uint32]](t)(array.New[uint32](p, len(data), array.On(s.ID())))
	for batch, err := range array.Ahead[array.Array[uint32]](p, 1, slices.Chunk(data, 65_536), array.On(uploads.ID())) {
		ok(t, err)
		ok(t, CopyTo(sum.View(seen, seen+batch.Len()), batch, s))
		seen += batch.Len()
		if live := p.Sample().Live - sum.Bytes(); live > 2*4*65_536+512 {
			t.Errorf("%v of batches at a time", pressure.Bytes(live))
		}
	}
	got := make([]uint32, len(data))
	ok(t, sum.CopyOut(got))
	if seen != len(data) || !slices.Equal(got, data) {
		t.Errorf("%d of %d elements arrived, equal: %v", seen, len(data), slices.Equal(got, data))
	}
	for range array.Ahead[array.Array[uint32]](p, 1, slices.Chunk(data, 65_536), array.On(uploads.ID())) {
		break // frees what is on its way
	}
	sum.Free()
}

// Work on one GPU uses memory of every kind that lies on another, whichever was
// opened first; or the error says that it cannot.
func TestTwoDevices(t *testing.T) {
	d := openIndex(t, 0)
	if n, _ := Count(); n < 2 {
		t.Skip("two devices needed")
	}
	driver := must[*DriverPool](t)(d.NewDriverPool(-1))
	t.Cleanup(func() { ok(t, driver.Close()) })
	for _, m := range memories(t, d, driver) {
		if !m.direct {
			t.Run(m.name, func(t *testing.T) { twoDevices(t, d, m) })
		}
	}
	e := openIndex(t, 1)
	own, current := must[*DriverPool](t)(d.NewDriverPool(-1, e)), must[*DriverPool](t)(d.CurrentDriverPool(e))
	for name, shared := range map[string]*DriverPool{"stream-ordered": own, "current": current} {
		t.Run(name, func(t *testing.T) { twoDevices(t, d, memory{name, shared.Upstream(), d.Space(), true}) })
		ok(t, shared.Close())
	}
}

// scaled is a size, or a sixteenth of it on the simulated driver, whose memory is the host's.
func scaled(d *Device, n int64) int64 {
	if d.name == "simulated" {
		n /= 16
	}
	return n
}

// twoDevices uses an array of d on a device that is opened when the array is there
// already, and a second array that comes after that.
func twoDevices(t *testing.T, d *Device, m memory) {
	p := newPool(t, m.up, m.space, m.direct)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	n := scaled(d, 96<<20) // more than one chunk
	stamped := func() array.Array[byte] {
		a := must[array.Array[byte]](t)(array.New[byte](p, int(n), array.On(s.ID())))
		ok(t, With(a, s, func(addr uintptr) error {
			return errors.Join(w.Spin(s, 20*time.Millisecond), w.Stamp(s, addr, n, 7))
		}))
		return a
	}
	before := stamped()
	e := openIndex(t, 1)
	after := stamped()
	onE := newPool(t, e.Memory(), e.Space(), false)
	se := must[*Stream](t)(e.NewStream())
	we := must[*Work](t)(NewWork(e))
	wrong := must[*HostBuffer](t)(e.NewHostBuffer(8))
	verify := func(what string, a array.Array[byte]) {
		t.Helper()
		err := With(a, se, func(addr uintptr) error { return we.Verify(se, addr, n, 7, wrong.Addr()) })
		if can, _ := canPeer(e.index, d.index); errors.Is(err, array.ErrReach) && !can {
			t.Logf("%s: no peer access: %v", what, err)
			return
		}
		ok(t, err)
		ok(t, se.Synchronize())
		if wrong.Uint32(0) != 0 {
			t.Errorf("%s: %d words differ", what, wrong.Uint32(0))
		}
	}
	verify("made before the device was opened, in place", before)
	verify("made after that, in place", after)
	b := must[array.Array[byte]](t)(array.New[byte](onE, int(n), array.On(se.ID())))
	ok(t, CopyTo(b, before, se))
	verify("copied", b)
	ok(t, s.Synchronize())
	for _, a := range []array.Array[byte]{before, after, b} {
		a.Free()
	}
	ok(t, errors.Join(wrong.Close(), w.Close(), we.Close()))
}

// Memory that a pool has is handed out and taken back without a call of the driver, so
// without waiting for the device, with a hard limit, too.
func TestThePoolAsksTheDriverNothing(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	p := newPool(t, d.Memory(), d.Space(), false)
	ok(t, p.SetLimits(pressure.Limits{Hard: pressure.Limit{Bytes: 256 << 20}}))
	const n = 1 << 20
	p.Free(must[pool.Block](t)(p.Alloc(n, s.ID())))
	ok(t, w.Spin(s, 50*time.Millisecond))
	before := byName(Calls())
	for range 1000 {
		p.Free(must[pool.Block](t)(p.Alloc(n, s.ID())))
	}
	for name, c := range byName(Calls()) {
		if more := c.Calls - before[name].Calls; more != 0 {
			t.Errorf("1000 allocations made %d calls of %s", more, name)
		}
	}
	ok(t, errors.Join(s.Synchronize(), w.Close()))
}

// Work of two streams overlaps.
func TestStreamsOverlap(t *testing.T) {
	d := open(t)
	w := must[*Work](t)(NewWork(d))
	s, other := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	overlap := false
	for try := 0; try < 5 && !overlap; try++ { // a busy machine may have the first one end before
		ok(t, w.Spin(s, 100*time.Millisecond))
		ok(t, w.Spin(other, 0))
		ok(t, other.Synchronize())
		idle := must[bool](t)(s.idle())
		overlap = !idle
		ok(t, s.Synchronize())
	}
	if !overlap {
		t.Error("work of one stream waited for that of another, five times")
	}
	ok(t, w.Close())
}

// Memory is allocated on a stream: once freed it serves that one at once, behind the work
// that still uses it, and no other.
func TestAllocationOnAStream(t *testing.T) {
	d := open(t)
	p := newPool(t, d.Memory(), d.Space(), false)
	s, other := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	made := func(on *Stream) (array.Array[byte], uintptr) {
		a := must[array.Array[byte]](t)(array.New[byte](p, 1<<20, array.On(on.ID())))
		return a, address(a)
	}
	a, first := made(s)
	ok(t, With(a, s, func(uintptr) error { return w.Spin(s, 200*time.Millisecond) }))
	a.Free()
	b, second := made(other)
	c, third := made(s)
	if second == first || third != first {
		t.Errorf("freed on a busy stream: %#x; then %#x on another, %#x on the same", first, second, third)
	}
	b.Free()
	c.Free()
	ok(t, errors.Join(s.Synchronize(), w.Close()))
}
