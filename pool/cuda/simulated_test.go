//go:build cudasim

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// Without peer access work on another device is an error, and copies go by way of the
// host, whole.
func TestWithoutPeers(t *testing.T) {
	sim.without(t, &sim.peers)
	d, e := openIndex(t, 0), openIndex(t, 1)
	driver := must[*DriverPool](t)(d.NewDriverPool(-1, e))
	defer func() { ok(t, driver.Close()) }()
	s := must[*Stream](t)(e.NewStream())
	far := newPool(t, e.Memory(), e.Space(), false)
	for _, m := range memories(t, d, driver) {
		p := newPool(t, m.up, m.space, m.direct)
		a := must[array.Array[uint32]](t)(array.From(p, pattern(1000)))
		b := must[array.Array[uint32]](t)(array.New[uint32](far, 1000))
		err, before := With(a, s, func(uintptr) error { return nil }), sim.staged
		ok(t, CopyTo(b, a, s))
		if got := must[[]uint32](t)(b.ToSlice()); !slices.Equal(got, pattern(1000)) {
			t.Errorf("%s: other elements arrived", m.name)
		}
		staged := sim.staged - before
		if _, device := m.space.Device(); device != errors.Is(err, array.ErrReach) || device != (staged == 1) {
			t.Errorf("%s: %v, %d copies by way of the host", m.name, err, staged)
		}
		a.Free()
		b.Free()
	}
}

// There may be more managed memory than the device has. What a kernel gets is
// prefetched, once, if it is a view that fits; never the whole, and nothing where several
// devices may share it.
func TestMoreManagedMemoryThanTheDeviceHas(t *testing.T) {
	contexts.Delete(1) // another test's
	d := open(t)
	p := newPool(t, d.Managed(), pressure.Managed, false)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	const part, parts = simTotal / 16, 24
	a := must[array.Array[byte]](t)(array.New[byte](p, part*parts))
	use := func(v array.Array[byte], bytes int64, want int64, what string) {
		t.Helper()
		before := byName(Calls())["cuMemPrefetchAsync"].Calls
		ok(t, With(v, s, func(addr uintptr) error {
			return errors.Join(w.Stamp(s, addr, bytes, 5), w.Verify(s, addr, bytes, 5, wrong.Addr()))
		}))
		if n := byName(Calls())["cuMemPrefetchAsync"].Calls - before; n != want {
			t.Errorf("%s: prefetched %d times, want %d", what, n, want)
		}
	}
	use(a, 1<<20, 0, "more than the device has")
	for i := range parts {
		v := a.View(i*part, (i+1)*part)
		use(v, 1<<20, 1, "a part")
		use(v.View(0, 100), 100, 0, "what is there already")
	}
	v := a.View(0, 4096)
	use(v, 4096, 1, "a part that was used before others")
	first := must[byte](t)(v.At(0)) // the processor takes it
	ok(t, v.Set(0, first))
	use(v, 4096, 1, "what the processor has used")
	e := openIndex(t, 1)
	use(a.View(part, 2*part), 1<<20, 0, "with a second device")
	ok(t, s.Synchronize())
	if n := wrong.Uint32(0); n != 0 {
		t.Errorf("%d words differ", n)
	}
	if free, total, _ := memInfo(d); total-free > simTotal/8 {
		t.Errorf("managed memory is taken from the device: %d of %d bytes are free", free, total)
	}
	_ = e
	a.Free()
	ok(t, errors.Join(wrong.Close(), w.Close()))
}

// A tool is told of waits, cycles and refusals, and a program without one has no sink.
func TestToolsAreTold(t *testing.T) {
	simTool.listens = true
	defer func() { simTool.listens = false }()
	run := func() []string {
		simTool.told = nil
		p := must[*Pools](t)(Default(0))
		defer p.Close()
		w := must[*Work](t)(NewWork(p.Device))
		ok(t, w.Spin(p.Device.Default(), 300*time.Millisecond)) // so long that also a busy machine has to wait
		ok(t, p.Synchronize())
		p.Collector.Collect(policy.TriggerExplicit)
		ok(t, p.Memory.SetLimits(pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 20}}))
		if _, err := p.Memory.Alloc(2<<20, 0); !errors.Is(err, pool.ErrOutOfMemory) {
			t.Errorf("2 MiB of 1: %v", err)
		}
		ok(t, w.Close())
		simTool.Lock()
		defer simTool.Unlock()
		return simTool.told
	}
	if told := run(); len(told) != 0 {
		t.Errorf("nobody listens, and is told %q", told)
	}
	t.Setenv("NVTX_INJECTION64_PATH", "tool.so")
	told := strings.Join(run(), "\n")
	for _, want := range []string{"begin eagergc wait: device synchronize\nend eagergc wait: device synchronize", "eagergc cycle (explicit): ", "eagergc refusal of 2.00 MiB: reap, ", "eagergc refusal of 2.00 MiB: collect, "} {
		if !strings.Contains(told, want) {
			t.Errorf("%q was not told: %s", want, told)
		}
	}
}

// An allocation of the driver's that finds no memory gets what the pools cache.
func TestEveryAllocationOfTheDriverClimbs(t *testing.T) {
	p := must[*Pools](t)(Default(0))
	defer p.Close()
	driver := must[*DriverPool](t)(p.Device.NewDriverPool(0))
	free, _, err := memInfo(p.Device)
	ok(t, err)
	p.Memory.Free(must[pool.Block](t)(p.Memory.Alloc(free*9/10, 0)))
	addr, err := driver.Alloc(free/2, p.Device.Default())
	if err != nil {
		t.Fatalf("half of the free memory, the most of it cached: %v", err)
	}
	ok(t, driver.Free(addr, nil))
	ok(t, p.Synchronize())
	ok(t, driver.Close())
}

// A call of the driver that fails is an error of the call that needed it.
func TestEveryFailureIsReturned(t *testing.T) {
	d, e := openIndex(t, 0), openIndex(t, 1)
	p, far := newPool(t, d.Memory(), d.Space(), false), newPool(t, e.Memory(), e.Space(), false)
	s := must[*Stream](t)(d.NewStream())
	k := must[*Kernel](t)(must[*Module](t)(d.Load(double)).Kernel("double"))
	driver := must[*DriverPool](t)(d.NewDriverPool(-1))
	a, b := must[array.Array[byte]](t)(array.New[byte](p, 100, array.On(s.ID()))), must[array.Array[byte]](t)(array.New[byte](far, 100))
	event := must[*event](t)(d.newEvent(true))
	graph := must[*Graph](t)(s.Capture(func() error { return Launch(k, s, Dim{}, Dim{X: 1}, a) }))
	host, slice := must[*HostBuffer](t)(d.NewHostBuffer(100)), make([]byte, 100)
	addr, _ := a.Block()
	for _, c := range []struct {
		call string
		do   func() error
	}{
		{"cuLaunchKernel", func() error { return Launch(k, s, Dim{}, Dim{X: 1}, a) }},
		{"cuGraphLaunch", func() error { return graph.Launch(s) }},
		{"cuMemcpyAsync", func() error { return s.Copy(host.Addr(), addr.Addr, 100) }},
		{"cuMemcpyPeerAsync", func() error { return CopyTo(b, a, s) }},
		{"cuMemcpyHtoDAsync", func() error { return a.CopyIn(slice) }},
		{"cuMemcpyDtoHAsync", func() error { return a.CopyOut(slice) }},
		{"cuMemsetAsync", func() error { return a.Fill(1) }},
		{"cuMemPrefetchAsync", func() error { return s.Prefetch(addr.Addr, 100, 0) }},
		{"cuMemAdvise", func() error { return d.Advise(addr.Addr, 100, ReadMostly, 0) }},
		{"cuEventRecord", func() error { return event.Record(s) }},
		{"cuEventCreate", func() error { _, err := d.newEvent(false); return err }},
		{"cuStreamCreate", func() error { _, err := d.NewStream(); return err }},
		{"cuStreamQuery", s.Synchronize},
		{"cuStreamWaitEvent", func() error { return s.after(d.null.id) }},
		{"cuStreamBeginCapture", func() error { _, err := s.Capture(func() error { return nil }); return err }},
		{"cuCtxSynchronize", d.Synchronize},
		{"cuModuleLoadData", func() error { _, err := d.Load(double); return err }},
		{"cuMemHostAlloc", func() error { _, err := d.NewHostBuffer(8); return err }},
		{"cuMemHostRegister", func() error { _, err := Register(d, slice); return err }},
		{"cuMemPoolCreate", func() error { _, err := d.NewDriverPool(0); return err }},
		{"cuMemAllocFromPoolAsync", func() error { _, err := driver.Alloc(100, s); return err }},
		{"cuMemGetInfo", func() error { _, _, err := memInfo(d); return err }},
	} {
		sim.failing = c.call
		err := c.do()
		sim.failing = ""
		if e := new(Error); !errors.As(err, &e) || e.Call != c.call || e.Code != 999 {
			t.Errorf("%s fails: %v", c.call, err)
		}
	}
	ok(t, s.Synchronize())
	a.Free()
	b.Free()
	ok(t, errors.Join(graph.Close(), host.Close(), event.Close(), driver.Close()))
}
