//go:build cudasim

package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// There may be more managed memory than the device has. What a kernel gets is
// prefetched, once, if it is a view that fits; never the whole, and nothing where several
// devices may share it.
func TestMoreManagedMemoryThanTheDeviceHas(t *testing.T) {
	d := open(t)
	p := newPool(t, d.Managed(), pressure.Managed, false)
	s := must[*Stream](t)(d.NewStream())
	const part, parts = simTotal / 16, 24
	a := must[array.Array[byte]](t)(array.New[byte](p, part*parts))
	use := func(v array.Array[byte], want int64, what string) {
		t.Helper()
		before := byName(Calls())["cuMemPrefetchAsync"].Calls
		ok(t, With(v, s, func(uintptr) error { return nil }))
		if n := byName(Calls())["cuMemPrefetchAsync"].Calls - before; n != want {
			t.Errorf("%s: prefetched %d times, want %d", what, n, want)
		}
	}
	use(a.View(0, 9*part), 0, "more than half of what the device has")
	for i := range parts {
		v := a.View(i*part, (i+1)*part)
		use(v, 1, "a part")
		use(v.View(0, 100), 0, "what is there already")
	}
	v := a.View(0, 4096)
	use(v, 1, "a part that was used before others")
	first := must[byte](t)(v.At(0)) // the processor takes it
	ok(t, v.Set(0, first))
	use(v, 1, "what the processor has used")
	ok(t, must[*Graph](t)(s.Capture(func() error { return v.Set(0, first) })).Close()) // which is not the graph's, though s has used it last
	openIndex(t, 1)
	use(a.View(part, 2*part), 0, "with a second device")
	ok(t, s.Synchronize())
	if free, total, _ := memInfo(d); total-free > simTotal/8 {
		t.Errorf("managed memory is taken from the device: %d of %d bytes are free", free, total)
	}
	at := address(a)
	ok(t, errors.Join(d.Advise(at, 4096, ReadMostly, 0), d.Advise(at, 4096, PreferLocation, HostMemory)))
	if r := sim.find(at); !r.readMostly || r.preferred != -1 {
		t.Errorf("advised: read mostly %v, on device %d", r.readMostly, r.preferred)
	}
	a.Free()
}

// A call of the driver that fails is an error of the call that needed it, and leaves nothing behind.
func TestEveryFailureIsReturned(t *testing.T) {
	d, e := openIndex(t, 0), openIndex(t, 1)
	p, far := newPool(t, d.Memory(), d.Space(), false), newPool(t, e.Memory(), e.Space(), false)
	s, closed := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	k := must[*Kernel](t)(must[*Module](t)(d.Load(mixPTX)).Kernel("mix"))
	driver := must[*DriverPool](t)(d.NewDriverPool(-1))
	a, b := must[array.Array[byte]](t)(array.New[byte](p, 100, array.On(s.ID()))), must[array.Array[byte]](t)(array.New[byte](far, 100, array.On(e.null.id)))
	graph := must[*Graph](t)(s.Capture(func() error { return Launch(k, s, Dim{}, Dim{X: 1}, a, a, 1, Shared(4)) }))
	pinned, slice := newPool(t, d.Pinned(), pressure.Pinned, false), make([]byte, 100)
	host := must[array.Array[byte]](t)(array.New[byte](pinned, 100))
	addr, segments := address(a), d.segments()
	segment := must[uintptr](t)(segments.Allocate(100, s.ID()))
	ok(t, errors.Join(closed.Close(), s.after(d.null.id), CopyTo(b, a, s))) // streams keep an event each
	capture := func() error { _, err := s.Capture(func() error { return nil }); return err }
	for _, c := range []struct {
		call string
		do   func() error
	}{
		{"cuLaunchKernel", func() error { return Launch(k, s, Dim{}, Dim{X: 1}, a, a, 1, Shared(4)) }},
		{"cuGraphLaunch", func() error { return graph.Launch(s) }},
		{"cuMemcpyAsync", func() error { return s.Copy(address(host), addr, 100) }},
		{"cuMemcpyPeerAsync", func() error { return CopyTo(b, a, s) }},
		{"cuMemcpyHtoDAsync", func() error { return a.CopyIn(slice) }},
		{"cuMemcpyHtoDAsync", func() error { return s.fillPattern(addr, []byte{1, 2, 3}, 2) }},
		{"cuMemcpyDtoHAsync", func() error { return a.CopyOut(slice) }},
		{"cuMemsetAsync", func() error { return a.Fill(1) }},
		{"cuMemPrefetchAsync", func() error { return s.Prefetch(addr, 100, 0) }},
		{"cuMemAdvise", func() error { return d.Advise(addr, 100, ReadMostly, 0) }},
		{"cuStreamWaitEvent", func() error { _, err := d.end(closed.ID()); return err }},
		{"cuEventRecord", func() error { return s.after(d.null.id) }},
		{"cuEventCreate", func() error { _, err := d.newEvent(); return err }},
		{"cuStreamCreate", func() error { _, err := d.NewStream(); return err }},
		{"cuStreamQuery", s.Synchronize},
		{"cuStreamQuery", func() error { return segments.Release(segment, 100, s.ID()) }},
		{"cuStreamWaitEvent", func() error { return s.after(d.null.id) }},
		{"cuStreamBeginCapture", capture},
		{"cuStreamEndCapture", capture},
		{"cuGraphInstantiate", capture},
		{"cuEventCreate", capture},
		{"cuEventRecord", capture},
		{"cuCtxSynchronize", d.Synchronize},
		{"cuModuleLoadData", func() error { _, err := d.Load(mixPTX); return err }},
		{"cuMemHostAlloc", func() error { _, err := d.Pinned().Allocate(8, 0); return err }},
		{"cuMemHostRegister", func() error { _, err := Register(d, slice); return err }},
		{"cuMemPoolCreate", func() error { _, err := d.NewDriverPool(0); return err }},
		{"cuMemAllocFromPoolAsync", func() error { _, err := driver.alloc(100, s); return err }},
		{"cuMemGetInfo", func() error { _, _, err := memInfo(d); return err }},
	} {
		sim.failing = c.call
		objects := len(sim.objects)
		err := c.do()
		sim.failing = ""
		if e := new(Error); !errors.As(err, &e) || e.Call != c.call || e.Code != 999 || len(sim.objects) != objects {
			t.Errorf("%s fails: %v, %d objects of the driver are left", c.call, err, len(sim.objects)-objects)
		}
	}
	if err := graph.Launch(e.Default()); err == nil || err.Error() != "cuda: a graph of device 0 (simulated) launched on a stream of device 1 (simulated)" {
		t.Error(err)
	}
	if err := With(a, closed, func(uintptr) error { return nil }); err == nil || err.Error() != fmt.Sprintf("cuda: stream %d of device 0 (simulated) was closed", closed.ID()) {
		t.Error(err)
	}
	sim.failing = "cuCtxSynchronize" // of the pool's device, and of d, whose work has used its memory
	err := far.Synchronize()
	sim.failing = ""
	for _, device := range []*Device{d, e} {
		if want := simError("cuCtxSynchronize", device.index, 999, "CUDA_ERROR_UNKNOWN").Error(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("where two devices fail: %v, want %s", err, want)
		}
	}
	ok(t, s.Synchronize())
	a.Free()
	b.Free()
	host.Free()
	ok(t, errors.Join(graph.Close(), driver.Close(), segments.Release(segment, 100, s.ID())))
}

// address is the array's memory, for its own stream's work.
func address(a array.Array[byte]) (addr uintptr) {
	a.Reach(func(m array.Memory) error { addr = m.Addr; return nil })
	return addr
}
