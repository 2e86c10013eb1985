package array_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

const mib = 1 << 20

// far is host memory that stands for a device's: it is reached by copies alone.
type far struct{ pool.Host }

func (far) at(addr uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

func (f far) Upload(to uintptr, from []byte, _ uint32) error {
	copy(f.at(to, len(from)), from)
	return nil
}

func (f far) Download(to []byte, from uintptr, _ uint32) error {
	copy(to, f.at(from, len(to)))
	return nil
}

func (f far) Copy(to, from uintptr, n int64, _ uint32) error {
	copy(f.at(to, int(n)), f.at(from, int(n)))
	return nil
}

func (f far) Fill(to uintptr, pattern []byte, n int64, _ uint32) error {
	copy(f.at(to, len(pattern)*int(n)), slices.Repeat(pattern, int(n)))
	return nil
}

func open(t testing.TB, cfg pool.Config) *pool.Pool {
	t.Helper()
	p, err := pool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// hostAndDevice returns a pool that the processor can address and one that it
// cannot.
func hostAndDevice(t *testing.T) (host, device *pool.Pool) {
	return open(t, pool.Config{}), open(t, pool.Config{Upstream: far{}, Space: pressure.Device(0)})
}

func must[T any](t testing.TB) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func elements[T any](t *testing.T, a array.Array[T]) []T {
	t.Helper()
	return must[[]T](t)(a.ToSlice())
}

func TestZerosFromAndToSlice(t *testing.T) {
	host, device := hostAndDevice(t)
	for _, p := range []*pool.Pool{host, device} {
		dirty := must[array.Array[int32]](t)(array.From(p, []int32{7, 8, 9}))
		if s := elements(t, dirty); !slices.Equal(s, []int32{7, 8, 9}) {
			t.Errorf("%v", s)
		}
		dirty.Free()
		zeros := must[array.Array[int32]](t)(array.Zeros[int32](p, 3))
		if s := elements(t, zeros); !slices.Equal(s, []int32{0, 0, 0}) {
			t.Errorf("%v", s)
		}
		zeros.Free()
		if _, err := zeros.ToSlice(); !errors.Is(err, array.ErrFreed) {
			t.Errorf("after Free: %v", err)
		}
		if _, err := array.From(p, []int32(nil)); err != nil {
			t.Error(err)
		}
	}
}

// A clone is memory of its own, in the same pool or another one, with the extents.
func TestClone(t *testing.T) {
	host, device := hostAndDevice(t)
	pools := []*pool.Pool{host, device, open(t, pool.Config{Upstream: far{}, Space: pressure.Device(1)})}
	for i, from := range pools {
		for j, to := range pools {
			a := must[array.Array[float64]](t)(array.From(from, []float64{1, 2, 3}))
			allocs := to.Stats().Allocs
			b, err := a.View(1, 3).Shaped(2, 1).Clone(to)
			if err != nil {
				t.Fatalf("%d to %d: %v", i, j, err)
			}
			a.Fill(0)
			if s := elements(t, b); !slices.Equal(s, []float64{2, 3}) || !slices.Equal(b.Extents(), []int{2, 1}) || to.Stats().Allocs != allocs+1 {
				t.Errorf("%d to %d: %v %v, %d allocations", i, j, s, b.Extents(), to.Stats().Allocs-allocs)
			}
			a.Free()
			if _, err := a.Clone(to); !errors.Is(err, array.ErrFreed) {
				t.Errorf("after Free: %v", err)
			}
		}
	}
}

// An array says its type, its extents, where it is and what is in it.
func TestString(t *testing.T) {
	host, device := hostAndDevice(t)
	a := must[array.Array[float32]](t)(array.From(host, []float32{1, 2, 3, 4, 5, 6.5, 7, 8})).Shaped(2, 4)
	for got, want := range map[string]string{
		fmt.Sprint(a):            "float32[2 4] in host memory: 1 2 3 4 5 6.5 ...",
		fmt.Sprint(a.View(2, 4)): "float32[2] in host memory: 3 4",
		fmt.Sprint(must[array.Array[float32]](t)(a.View(0, 1).Clone(device))): "float32[1] in device0 memory: 1",
		fmt.Sprint(array.Array[byte]{}):                                       "uint8[0]",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	a.Free()
	if text := a.String(); !strings.HasPrefix(text, "float32[2 4] in host memory (array: used after Free") {
		t.Error(text)
	}
}

func TestShapedAndLike(t *testing.T) {
	p := open(t, pool.Config{})
	a := must[array.Array[int16]](t)(array.New[int16](p, 6)).Shaped(1, 2, 3)
	b := must[array.Array[int16]](t)(array.Like(a))
	if !slices.Equal(b.Extents(), []int{1, 2, 3}) || b.Len() != 6 || p.Stats().Allocs != 2 {
		t.Errorf("like %v: %v", a.Extents(), b.Extents())
	}
	if none, err := array.Like(array.Array[int16]{}); none.Len() != 0 || err != nil {
		t.Errorf("like nothing: %v", err)
	}
	for _, bad := range [][]int{{}, {5}, {-2, -3}, {6, 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("extents %v of 6 elements", bad)
				}
			}()
			a.Shaped(bad...)
		}()
	}
}

// All yields what is there, also of memory that the processor cannot address, and a
// Free meanwhile takes effect at the end.
func TestAll(t *testing.T) {
	host, device := hostAndDevice(t)
	for _, p := range []*pool.Pool{host, device} {
		a := must[array.Array[int64]](t)(array.From(p, []int64{5, 6, 7, 8}))
		sum := int64(0)
		for i, v := range a.View(1, 4).All() {
			a.Free()
			if sum += v; i == 1 {
				break
			}
		}
		if sum != 13 || p.Sample().Live != 0 {
			t.Errorf("sum %d, %d bytes live", sum, p.Sample().Live)
		}
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, array.ErrFreed) {
					t.Errorf("after Free: %v", err)
				}
			}()
			for range a.All() {
				t.Error("an element of a freed array")
			}
		}()
	}
	for range (array.Array[byte]{}).All() {
		t.Error("an element of nothing")
	}
}

// The error of an access that cannot be is true, and says what to do.
func TestScalarAccessOnADevice(t *testing.T) {
	_, device := hostAndDevice(t)
	a := must[array.Array[float32]](t)(array.Zeros[float32](device, 4))
	_, at := a.At(1)
	for name, err := range map[string]error{"At": at, "Set": a.Set(1, 2), "Do": a.Do(func([]float32) error { return nil })} {
		if !errors.Is(err, array.ErrReach) || !strings.Contains(err.Error(), "device0") ||
			!strings.Contains(err.Error(), "ToSlice or View(i, j).CopyIn") || strings.Contains(err.Error(), "Mover") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What it says works.
	if err := a.View(1, 2).CopyIn([]float32{2}); err != nil || elements(t, a)[1] != 2 {
		t.Error(err)
	}
	mute := open(t, pool.Config{Upstream: pool.Host{}, Space: pressure.Device(0)})
	b := must[array.Array[float32]](t)(array.New[float32](mute, 4))
	if err := b.Fill(1); !errors.Is(err, array.ErrReach) || !strings.Contains(err.Error(), "pool.Host is no Mover") {
		t.Errorf("Fill without a Mover: %v", err)
	}
}

// Wrapper is any wrapper that is generic in its storage, such as a diagonal matrix.
type wrapper[V any] struct {
	Name string
	D    V
}

// Adapt uploads the slices in a structure, downloads them, and converts their numbers.
func TestAdaptBetweenSlicesAndArrays(t *testing.T) {
	_, device := hostAndDevice(t)
	from := wrapper[[]float64]{"diagonal", make([]float64, 200_001)}
	for i := range from.D {
		from.D[i] = float64(i) + 0.1
	}
	there, err := array.Adapt[wrapper[array.Array[float64]]](device, from)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := array.Adapt[wrapper[[]float64]](device, there); err != nil || back.Name != "diagonal" || !slices.Equal(back.D, from.D) {
		t.Errorf("there and back: %v", err)
	}
	narrow, err := array.Adapt[wrapper[array.Array[float32]]](device, from)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := array.Adapt[wrapper[array.Array[uint32]]](device, there)
	if err != nil {
		t.Fatal(err)
	}
	a, b := elements(t, narrow.D), elements(t, whole.D)
	for i, x := range from.D {
		if a[i] != float32(x) || b[i] != uint32(i) {
			t.Fatalf("element %d is %v and %v", i, a[i], b[i])
		}
	}
	if flat, err := array.Adapt[array.Array[float32]](device, []float64{math.Pi}); err != nil || elements(t, flat)[0] != math.Pi {
		t.Errorf("a slice by itself: %v", err)
	}
}

type layer struct {
	Name    string
	Weights array.Array[float32]
	Bias    *array.Array[float32]
}

type network struct {
	Layers []layer
	Extra  map[string]array.Array[int32]
	Both   [2]array.Array[byte]
	Notes  *[]string
	shared []int
}

// Adapt moves a whole model and leaves the old one as it was.
func TestAdapt(t *testing.T) {
	host, device := hostAndDevice(t)
	of := func(x ...float32) array.Array[float32] { return must[array.Array[float32]](t)(array.From(host, x)) }
	bias := of(5)
	m := network{
		Layers: []layer{{"first", of(1, 2), &bias}, {"second", of(3), nil}},
		Extra:  map[string]array.Array[int32]{"x": must[array.Array[int32]](t)(array.From(host, []int32{6}))},
		Notes:  &[]string{"kept"}, shared: []int{1},
	}
	there, err := array.Adapt[network](device, m)
	if err != nil {
		t.Fatal(err)
	}
	m.Layers[0].Weights.Fill(0)
	bias.Fill(0)
	back, err := array.Adapt[network](host, there)
	if err != nil {
		t.Fatal(err)
	}
	w, b, x := elements(t, back.Layers[0].Weights), elements(t, *back.Layers[0].Bias), elements(t, back.Extra["x"])
	if !slices.Equal(w, []float32{1, 2}) || !slices.Equal(b, []float32{5}) || !slices.Equal(x, []int32{6}) ||
		back.Layers[1].Name != "second" || back.Layers[1].Bias != nil || back.Notes != m.Notes || back.shared[0] != 1 {
		t.Errorf("back: %+v %v %v %v", back, w, b, x)
	}
	if device.Stats().Allocs == 0 {
		t.Error("nothing was on the device")
	}
}

func TestAdaptSaysWhatItCannot(t *testing.T) {
	host, device := hostAndDevice(t)
	a := must[array.Array[byte]](t)(array.From(host, []byte{1}))
	type hidden struct {
		Open   array.Array[byte]
		secret array.Array[byte]
	}
	type embeds struct {
		array.Array[byte]
		Scale float64
	}
	freed := must[array.Array[byte]](t)(array.From(host, []byte{1}))
	freed.Free()
	for want, adapt := range map[string]func() error{
		".secret is not exported": func() error { _, err := array.Adapt[hidden](device, hidden{a, a}); return err },
		"field [1]: array: used after Free": func() error {
			_, err := array.Adapt[[]array.Array[byte]](device, []array.Array[byte]{a, freed})
			return err
		},
		"value: cannot make array.Array[uint8] of []string": func() error { _, err := array.Adapt[array.Array[byte]](device, []string{"x"}); return err },
		"field .D: cannot make []int32 of array.Array[uint8]": func() error {
			_, err := array.Adapt[wrapper[[]int32]](device, wrapper[array.Array[byte]]{D: a})
			return err
		},
		"has no field Name": func() error {
			_, err := array.Adapt[wrapper[array.Array[byte]]](device, struct{ D []byte }{[]byte{1}})
			return err
		},
	} {
		if err := adapt(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if live := device.Sample().Live; live != 0 {
			t.Errorf("%s: %d bytes are left on the device", want, live)
		}
	}
	if n, err := array.Adapt[int](device, 7); n != 7 || err != nil {
		t.Errorf("a value without arrays: %v, %v", n, err)
	}
	if x, err := array.Adapt[embeds](device, embeds{a, 2}); err != nil || x.Scale != 2 || elements(t, x.Array)[0] != 1 {
		t.Errorf("an embedded array: %v, %v", x, err)
	}
}

// Batches are of any number of slices that belong together. One is in memory at a
// time, and an error of one batch does not lose the next.
func TestBatches(t *testing.T) {
	p := open(t, pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 8 * mib}}})
	type batch[X, Y, M any] struct {
		Inputs X
		Labels Y
		Masks  []M
	}
	type given = batch[[]float32, []int64, []byte]
	type taken = batch[array.Array[float32], array.Array[int64], array.Array[byte]]
	source := func(sizes ...int) func(func(given) bool) {
		return func(yield func(given) bool) {
			for k, n := range sizes {
				if !yield(given{slices.Repeat([]float32{float32(k)}, 2*n), make([]int64, n), [][]byte{make([]byte, n), {byte(k)}}}) {
					return
				}
			}
		}
	}
	seen := 0
	for b, err := range array.Batches[taken](p, source(10, 10, 10)) {
		if err != nil {
			t.Fatal(err)
		}
		if x, m := elements(t, b.Inputs), elements(t, b.Masks[1]); len(x) != 20 || b.Labels.Len() != 10 || x[19] != float32(seen) || m[0] != byte(seen) {
			t.Errorf("batch %d: %v %v", seen, x, m)
		}
		if live := p.Sample().Live; live != 4*512 {
			t.Errorf("%d bytes are live", live)
		}
		seen++
	}
	var errs []error
	for _, err := range array.Batches[taken](p, source(10, 2*mib, 20)) {
		errs = append(errs, err)
	}
	if seen != 3 || len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], pool.ErrOutOfMemory) || errs[2] != nil {
		t.Errorf("%d batches, errors %v", seen, errs)
	}
	func() {
		defer func() { recover() }()
		for range array.Batches[taken](p, source(10)) {
			panic("the loop's body")
		}
	}()
	for range array.Batches[taken](p, source(10)) {
		break
	}
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}

// So many batches are made ahead of the loop, and no more, and all are freed.
func TestAhead(t *testing.T) {
	p := open(t, pool.Config{})
	data := make([]int32, 10*128)
	for i := range data {
		data[i] = int32(i / 128)
	}
	for depth := range 4 {
		begun, seen := p.Stats().Allocs, 0
		for batch, err := range array.Ahead[array.Array[int32]](p, depth, slices.Chunk(data, 128)) {
			if err != nil {
				t.Fatal(err)
			}
			s := p.Stats()
			if made, live := s.Allocs-begun, s.Live/512; made != int64(min(seen+1+depth, 10)) || live != min(int64(depth+1), 10-int64(seen)) {
				t.Errorf("depth %d: %d batches are made at the %d., %d live", depth, made, seen, live)
			}
			if v := elements(t, batch); v[0] != int32(seen) || v[127] != int32(seen) {
				t.Errorf("depth %d: batch %d has %d", depth, seen, v[0])
			}
			if seen++; depth == 3 && seen == 5 {
				break
			}
		}
		if live := p.Sample().Live; live != 0 || depth < 3 && seen != 10 {
			t.Errorf("depth %d: %d batches, %d bytes are left", depth, seen, live)
		}
	}
}

// A scope frees at its end what it holds, and that is no more than its bound.
func TestScope(t *testing.T) {
	p := open(t, pool.Config{})
	s := array.Scope{Max: 4096}
	for range 3 {
		held := array.Hold(&s, must[array.Array[byte]](t)(array.New[byte](p, 3000)))
		over := array.Hold(&s, must[array.Array[byte]](t)(array.New[byte](p, 3000)))
		s.End()
		if err := held.Fill(1); !errors.Is(err, array.ErrFreed) {
			t.Errorf("after End: %v", err)
		}
		if err := over.Fill(1); err != nil {
			t.Errorf("beyond Max: %v", err)
		}
		over.Free()
	}
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}

// A workspace grows, is used again, and gives its memory back when somebody is
// refused, unless it is in use.
func TestWorkspace(t *testing.T) {
	p := open(t, pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 * mib}}})
	w := array.NewWorkspace[float32](p)
	use := func(n int, f func()) {
		t.Helper()
		if err := w.Use(n, func(a array.Array[float32]) error {
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
	if s := p.Stats(); s.Allocs != before || s.Live != 40*mib {
		t.Errorf("a smaller use took memory: %d allocations, %d bytes", s.Allocs-before, s.Live)
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
	if err := w.Use(10*mib, func(array.Array[float32]) error { return nil }); !errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("no room: %v", err)
	}
	p.Free(b)
	use(10*mib, func() {})
	w.Close()
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}

// One array serves many goroutines: none sees the memory of another array, and the
// last use, not the Free in the middle, gives the memory back.
func TestOneArrayOfManyGoroutines(t *testing.T) {
	p := open(t, pool.Config{})
	for round := range int32(50) {
		a := must[array.Array[int32]](t)(array.New[int32](p, 4096))
		if err := a.Fill(round); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		for g := range 8 {
			go func() {
				for i := g; ; i++ {
					if g == 7 && i > 20 {
						a.Free()
					}
					got := round
					err := a.View(i%4096, 4096).Do(func(s []int32) error {
						got = s[0]
						runtime.Gosched()
						got |= s[len(s)-1] ^ round
						return nil
					})
					if errors.Is(err, array.ErrFreed) {
						err = nil
					} else if err == nil && got == round {
						continue
					} else if err == nil {
						err = fmt.Errorf("round %d: read %d", round, got)
					}
					done <- err
					return
				}
			}()
		}
		other := must[array.Array[int32]](t)(array.New[int32](p, 4096)) // may get the memory, once it is free
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := other.Fill(-1); err != nil {
				t.Error(err)
			}
			other.Free()
			other = must[array.Array[int32]](t)(array.New[int32](p, 4096))
		}
		other.Free()
	}
	if s := p.Stats(); s.Live != 0 || s.Allocs != s.Frees {
		t.Errorf("%d bytes live, %d allocations, %d frees", s.Live, s.Allocs, s.Frees)
	}
}

// What is kept stays until done, whoever frees it.
func TestKeep(t *testing.T) {
	p := open(t, pool.Config{})
	a := must[array.Array[byte]](t)(array.New[byte](p, 1000))
	var done func()
	a.Reach(func(m array.Memory) error { done = m.Keep(); a.Free(); return nil })
	if p.Sample().Live == 0 {
		t.Error("what is kept went back")
	}
	done()
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes live after done", live)
	}
}
