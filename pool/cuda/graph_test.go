package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

func TestCaptureRepeatsWork(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	const n = 1 << 20
	p := must[uintptr](t)(memAlloc(d, n))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	ok(t, s.fillPattern(p, []byte{0}, n))
	g := must[*Graph](t)(s.Capture(func() error {
		if !must[bool](t)(s.capturing()) {
			t.Error("not capturing")
		}
		return w.Stamp(s, p, n, 3)
	}))
	verify := func(want uint32) {
		t.Helper()
		copy(wrong.Bytes(), make([]byte, 8))
		ok(t, w.Verify(s, p, n, 3, wrong.Addr()))
		ok(t, s.Synchronize())
		if got := wrong.Uint32(0); got != want {
			t.Errorf("%d words differ, want %d", got, want)
		}
	}
	verify(n / 4) // captured, not done
	ok(t, g.Launch(s))
	verify(0)
	ok(t, g.Close())

	failed := errors.New("failed")
	if _, err := s.Capture(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Capture: %v, want what the function returned", err)
	}
	verify(0) // the stream works again
	ok(t, wrong.Close())
	ok(t, memFree(d, p))
}

// A graph keeps the arrays that it uses, freed or not, until it is closed.
func TestGraphKeepsItsArrays(t *testing.T) {
	p := must[*Pools](t)(Default(0))
	defer p.Close()
	if p.Device == nil {
		t.Skip("no GPU")
	}
	s := must[*Stream](t)(p.Device.NewStream())
	k := must[*Kernel](t)(p.Kernel(double, "double"))
	a := must[array.Array[float32]](t)(array.From(p.Memory, []float32{1, 2, 3}, array.On(s.ID())))
	block, _ := a.Block()
	g := must[*Graph](t)(s.Capture(func() error { return Launch(k, s, Dim{}, Dim{X: 3}, a) }))
	view := a.View(0, 3)
	a.Free()
	ok(t, p.Synchronize())
	other := must[array.Array[float32]](t)(array.From(p.Memory, []float32{5, 6, 7}, array.On(s.ID())))
	if b, _ := other.Block(); b.Addr == block.Addr {
		t.Error("memory of the graph is handed out")
	}
	ok(t, g.Launch(s))
	ok(t, g.Launch(s))
	ok(t, s.Synchronize())
	if got := must[[]float32](t)(other.ToSlice()); !slices.Equal(got, []float32{5, 6, 7}) {
		t.Errorf("the graph wrote to another array: %v", got)
	}
	if err := view.Fill(1); !errors.Is(err, array.ErrFreed) {
		t.Errorf("the array was freed: %v", err)
	}
	other.Free()
	if live := p.Memory.Sample().Live; live != 512 {
		t.Errorf("%d bytes live beside the graph", live)
	}
	ok(t, g.Close())
	ok(t, g.Close())
	if live := p.Memory.Sample().Live; live != 0 {
		t.Errorf("%d bytes live after the graph", live)
	}
}

// double doubles one element of its array for each thread.
const double = `
.version 6.0
.target sm_50
.address_size 64
.visible .entry double(.param .u64 a)
{
	.reg .b32 %r<2>;
	.reg .f32 %f<2>;
	.reg .b64 %d<3>;
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d1, %r1, 4;
	ld.param.u64 %d2, [a];
	add.u64 %d1, %d1, %d2;
	ld.global.f32 %f1, [%d1];
	add.f32 %f1, %f1, %f1;
	st.global.f32 [%d1], %f1;
	ret;
}`

// A kernel writes to what the host has: page-locked slices, pinned and managed memory.
func TestLaunchOnEveryMemory(t *testing.T) {
	p := must[*Pools](t)(Default(0))
	defer p.Close()
	if p.Device == nil {
		t.Skip("no GPU")
	}
	k := must[*Kernel](t)(p.Kernel(double, "double"))
	for _, m := range []*pool.Pool{p.Memory, p.Pinned, p.Managed} {
		a := must[array.Array[float32]](t)(array.From(m, []float32{1, 2, 3})).Shaped(3, 1)
		ok(t, Launch(k, nil, Dim{}, Dim{X: 3}, a))
		if text, want := a.String(), fmt.Sprintf("float32[3 1] in %v memory: 2 4 6", m.Space()); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	slice := []float32{1, 2, 3}
	r := must[*Registered[float32]](t)(Register(p.Device, slice))
	ok(t, Launch(k, nil, Dim{}, Dim{X: 3}, r))
	ok(t, p.Synchronize())
	if !slices.Equal(slice, []float32{2, 4, 6}) {
		t.Errorf("a registered slice: %v", slice)
	}
	ok(t, r.Close())
}

// The driver's own pool gets memory that ours caches.
func TestTheDriverGetsWhatIsCached(t *testing.T) {
	p := must[*Pools](t)(Default(0))
	defer p.Close()
	if p.Device == nil {
		t.Skip("no GPU")
	}
	free, _, err := memInfo(p.Device)
	ok(t, err)
	most := free / 10 * 9 &^ (1<<30 - 1)
	p.Memory.Free(must[pool.Block](t)(p.Memory.Alloc(most, 0)))
	if left, _, _ := memInfo(p.Device); left > free-most+1<<30 {
		t.Fatalf("of %d free bytes %d are left beside %d that are cached", free, left, most)
	}
	driver := must[*DriverPool](t)(p.Device.NewDriverPool(0))
	s := p.Device.Default()
	addr := must[uintptr](t)(driver.Alloc(most/2, s))
	ok(t, driver.Free(addr, s))
	ok(t, p.Synchronize())
	ok(t, driver.Close())
}

func BenchmarkCapturing(b *testing.B) {
	s := must[*Stream](b)(open(b).NewStream())
	for b.Loop() {
		s.capturing()
	}
}
