package pool_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// hostAndDevice returns a pool that the processor can address and one that it
// cannot.
func hostAndDevice(t *testing.T) (host, device *pool.Pool) {
	return open(t, pool.Config{}), open(t, pool.Config{Upstream: newDevice(), Space: pressure.Device(0)})
}

func TestZerosFromSliceAndToSlice(t *testing.T) {
	host, device := hostAndDevice(t)
	for _, p := range []*pool.Pool{host, device} {
		dirty, err := pool.FromSlice(p, []int32{7, 8, 9}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := dirty.ToSlice(); err != nil || !slices.Equal(s, []int32{7, 8, 9}) {
			t.Errorf("%v, %v", s, err)
		}
		dirty.Free()
		zeros, err := pool.Zeros[int32](p, 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := zeros.ToSlice(); err != nil || !slices.Equal(s, []int32{0, 0, 0}) {
			t.Errorf("%v, %v", s, err)
		}
		zeros.Free()
		if _, err := zeros.ToSlice(); !errors.Is(err, pool.ErrFreed) {
			t.Errorf("after Free: %v", err)
		}
		if _, err := pool.FromSlice(p, []int32(nil), 0); err != nil {
			t.Error(err)
		}
	}
}

// A clone is memory of its own, in the same pool or another one.
func TestClone(t *testing.T) {
	host, device := hostAndDevice(t)
	far := open(t, pool.Config{Upstream: newDevice(), Space: pressure.Device(1)})
	pools := []*pool.Pool{host, device, far}
	for i, from := range pools {
		for j, to := range pools {
			a, err := pool.FromSlice(from, []float64{1, 2, 3}, 0)
			if err != nil {
				t.Fatal(err)
			}
			b, err := a.View(1, 3).Clone(to, 0)
			if err != nil {
				t.Fatalf("%d to %d: %v", i, j, err)
			}
			a.Fill(0)
			if s, err := b.ToSlice(); err != nil || !slices.Equal(s, []float64{2, 3}) {
				t.Errorf("%d to %d: %v, %v", i, j, s, err)
			}
			a.Free()
			if _, err := a.Clone(to, 0); !errors.Is(err, pool.ErrFreed) {
				t.Errorf("after Free: %v", err)
			}
		}
	}
}

func TestConverted(t *testing.T) {
	p := open(t, pool.Config{})
	from := make([]float64, 200_001)
	for i := range from {
		from[i] = float64(i) + 0.1
	}
	single, err := pool.Converted[float32](p, from, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := pool.Converted[uint32](p, from, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := single.ToSlice()
	b, _ := whole.ToSlice()
	for i, x := range from {
		if a[i] != float32(x) || b[i] != uint32(i) {
			t.Fatalf("element %d is %v and %v", i, a[i], b[i])
		}
	}
	half, err := pool.Converted[pool.Float16](p, []float64{1, -2.5, 1e9}, 0)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := half.ToSlice()
	back, err := pool.Converted[float32](p, h, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := back.ToSlice(); !slices.Equal(s, []float32{1, -2.5, float32(math.Inf(1))}) {
		t.Errorf("by way of half precision: %v", s)
	}
}

// Every half-precision number comes back as it was, and every number between two
// of them becomes the nearer one, the even one if they are as near.
func TestFloat16(t *testing.T) {
	for bits := range 1 << 16 {
		h := pool.Float16(bits)
		f := h.Float32()
		if f != f {
			if g := pool.ToFloat16(f).Float32(); g == g {
				t.Fatalf("%#x is not a number, and comes back as %v", bits, g)
			}
			continue
		}
		if back := pool.ToFloat16(f); back != h {
			t.Fatalf("%#x is %v, which comes back as %#x", bits, f, uint16(back))
		}
		next := pool.Float16(bits + 1)
		if bits&0x7fff >= 0x7bff { // the largest one, infinity
			continue
		}
		g := next.Float32()
		even := h
		if bits&1 == 1 {
			even = next
		}
		middle := float32((float64(f) + float64(g)) / 2)
		for x, want := range map[float32]pool.Float16{
			middle:                      even,
			math.Nextafter32(middle, f): h,
			math.Nextafter32(middle, g): next,
		} {
			if got := pool.ToFloat16(x); got != want {
				t.Fatalf("%v between %v and %v becomes %v, want %v", x, f, g, got, want)
			}
		}
	}
	if got := pool.ToFloat16(65520); got.Float32() != float32(math.Inf(1)) {
		t.Errorf("65520 becomes %v", got)
	}
	if got := pool.ToFloat16(65519); got.String() != "65504" {
		t.Errorf("65519 becomes %v", got)
	}
}

type layer struct {
	Name    string
	Weights pool.Array[float32]
	Bias    *pool.Array[float32]
}

type network struct {
	Layers []layer
	Extra  map[string]pool.Array[int32]
	Both   [2]pool.Array[byte]
	Notes  *[]string
	shared []int
}

// Adapt moves a whole model and leaves the old one as it was.
func TestAdapt(t *testing.T) {
	host, device := hostAndDevice(t)
	of := func(x ...float32) pool.Array[float32] {
		a, err := pool.FromSlice(host, x, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	bias := of(5)
	extra, _ := pool.FromSlice(host, []int32{6}, 0)
	m := network{
		Layers: []layer{{"first", of(1, 2), &bias}, {"second", of(3), nil}},
		Extra:  map[string]pool.Array[int32]{"x": extra},
		Notes:  &[]string{"kept"}, shared: []int{1},
	}
	there, err := pool.Adapt(device, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.Layers[0].Weights.Fill(0)
	bias.Fill(0)
	back, err := pool.Adapt(host, there, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := back.Layers[0].Weights.ToSlice()
	b, _ := back.Layers[0].Bias.ToSlice()
	x, _ := back.Extra["x"].ToSlice()
	if !slices.Equal(w, []float32{1, 2}) || !slices.Equal(b, []float32{5}) || !slices.Equal(x, []int32{6}) ||
		back.Layers[1].Name != "second" || back.Layers[1].Bias != nil || back.Notes != m.Notes {
		t.Errorf("back: %+v %v %v %v", back, w, b, x)
	}
	if device.Stats().Allocs == 0 {
		t.Error("nothing was on the device")
	}
}

func TestAdaptSaysWhatItCannot(t *testing.T) {
	host, device := hostAndDevice(t)
	a, _ := pool.FromSlice(host, []byte{1}, 0)
	type hidden struct {
		Open   pool.Array[byte]
		secret pool.Array[byte]
	}
	if _, err := pool.Adapt(device, hidden{a, a}, 0); err == nil || !strings.Contains(err.Error(), ".secret is not exported") {
		t.Errorf("a field that is not exported: %v", err)
	}
	if live := device.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left on the device", live)
	}
	freed, _ := pool.FromSlice(host, []byte{1}, 0)
	freed.Free()
	if _, err := pool.Adapt(device, []pool.Array[byte]{a, freed}, 0); !errors.Is(err, pool.ErrFreed) || !strings.Contains(err.Error(), "[1]") {
		t.Errorf("a freed array: %v", err)
	}
	if live := device.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left on the device", live)
	}
	if n, err := pool.Adapt(device, 7, 0); n != 7 || err != nil {
		t.Errorf("a value without arrays: %v, %v", n, err)
	}
}

// A workspace grows, is used again, and gives its memory back when somebody is
// refused, unless it is in use.
func TestWorkspace(t *testing.T) {
	p := open(t, pool.Config{Limits: hard(64 * mib)})
	w := pool.NewWorkspace[float32](p, 0)
	use := func(n int, f func()) {
		t.Helper()
		if err := w.Use(n, func(a pool.Array[float32]) error {
			if a.Len() != n {
				t.Errorf("%d elements, want %d", a.Len(), n)
			}
			f()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	use(1000, func() {})
	use(10*mib, func() {})
	before := p.Stats().Allocs
	use(5*mib, func() {})
	if s := p.Stats(); s.Allocs != before || w.Bytes() != 40*mib {
		t.Errorf("a smaller use took memory: %d allocations, %d bytes", s.Allocs-before, w.Bytes())
	}
	use(10*mib, func() {
		if _, err := p.Alloc(40*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
			t.Errorf("while it is in use: %v", err)
		}
	})
	b, err := p.Alloc(40*mib, 0)
	if err != nil {
		t.Fatalf("the workspace does not give way: %v", err)
	}
	if err := w.Use(10*mib, func(pool.Array[float32]) error { return nil }); !errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("no room: %v", err)
	}
	p.Free(b)
	use(10*mib, func() {})
	w.Close()
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}
