package array_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

// far is host memory that stands for a device's. It tells what it was asked, with addresses from base on, and fails with err.
type far struct {
	pool.Host
	told []string
	base uintptr
	err  error
	hook func() // called during the next Settle
}

func at(addr uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

func (x *far) say(format string, args ...any) error {
	x.told = append(x.told, fmt.Sprintf(format, args...))
	return x.err
}

func (x *far) heard(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(x.told, want) {
		t.Errorf("%s: told %q, want %q", what, x.told, want)
	}
	x.told = nil
}

func (x *far) Upload(to uintptr, from []byte, stream uint32) error {
	copy(at(to, len(from)), from)
	return x.say("upload %d to %d for %d", len(from), to-x.base, stream)
}

func (x *far) Download(to []byte, from uintptr, stream uint32) error {
	copy(to, at(from, len(to)))
	return x.say("download %d from %d for %d", len(to), from-x.base, stream)
}

func (x *far) Copy(to, from uintptr, n int64, stream uint32) error {
	copy(at(to, int(n)), at(from, int(n)))
	return x.say("copy %d from %d to %d for %d", n, from-x.base, to-x.base, stream)
}

func (x *far) Fill(to uintptr, pattern []byte, n int64, stream uint32) error {
	copy(at(to, len(pattern)*int(n)), slices.Repeat(pattern, int(n)))
	return x.say("fill %d with %d times %v for %d", to-x.base, n, pattern, stream)
}

func (x *far) Settle(stream uint32, tainted bool) error {
	if h := x.hook; h != nil {
		x.hook = nil
		h()
	}
	return x.say("settle %d, %v", stream, tainted)
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

func device(t testing.TB, k int) *pool.Pool {
	return open(t, pool.Config{Upstream: new(far), Space: pressure.Device(k)})
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func from[T any](t testing.TB, p *pool.Pool, s ...T) array.Array[T] {
	t.Helper()
	return must[array.Array[T]](t)(array.From(p, s))
}

func elements[T any](t testing.TB, a array.Array[T]) []T {
	t.Helper()
	return must[[]T](t)(a.ToSlice())
}

// reach calls f with the memory of an array.
func reach[T any](t *testing.T, a array.Array[T], f func(array.Memory)) {
	t.Helper()
	called := false
	if err := a.Reach(func(m array.Memory) error { called = true; f(m); return nil }); err != nil || !called {
		t.Errorf("called %v: %v", called, err)
	}
}

// used says that work of a stream uses an array.
func used[T any](t *testing.T, a array.Array[T], stream uint32) {
	t.Helper()
	reach(t, a, func(m array.Memory) { m.UsedBy(stream) })
}

func panicked(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

// TestArraysAreLikeSlices runs random programs of arrays and views, in the memory of the host, of two devices and of both, beside the same programs of slices.
func TestArraysAreLikeSlices(t *testing.T) {
	type pair struct {
		array.Array[int32]
		s []int32
		p *pool.Pool
	}
	pools := []*pool.Pool{open(t, pool.Config{}), device(t, 0), device(t, 1), open(t, pool.Config{Upstream: new(far), Space: pressure.Managed})}
	for range 300 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		some := func(n int) (s []int32) {
			for range n {
				s = append(s, rng.Int32())
			}
			return s
		}
		all := []pair{{from[int32](t, pools[0], 1, 2, 3), []int32{1, 2, 3}, pools[0]}}
		for range 40 {
			p, x, y := pools[rng.IntN(len(pools))], all[rng.IntN(len(all))], all[rng.IntN(len(all))]
			n, v, err := len(x.s), rng.Int32(), error(nil)
			switch k := rng.IntN(10); {
			case k == 0:
				s := some(rng.IntN(10))
				all = append(all, pair{from(t, p, s...), s, p})
			case k == 1:
				i := rng.IntN(n + 1)
				j := i + rng.IntN(n-i+1)
				all = append(all, pair{x.View(i, j), x.s[i:j:j], x.p})
			case k == 2:
				all = append(all, pair{must[array.Array[int32]](t)(x.Clone(p)), slices.Clone(x.s), p})
			case k == 3:
				s := some(n)
				copy(x.s, s)
				err = x.CopyIn(s)
			case k == 4:
				all = append(all, pair{must[array.Array[int32]](t)(array.Zeros[int32](p, n)), make([]int32, n), p})
			case k == 5:
				copy(x.s, slices.Repeat([]int32{v}, n))
				err = x.Fill(v)
			case k == 6 && len(y.s) == n && x.p == y.p:
				copy(x.s, y.s)
				err = x.CopyFrom(y.Array)
			case k > 6 && n > 0:
				i := rng.IntN(n)
				if err = x.Set(i, v); err == nil {
					x.s[i] = v
				}
				if got, err := x.At(i); err == nil && got != x.s[i] {
					t.Fatalf("seed %d: element %d is %d, want %d", seed, i, got, x.s[i])
				}
			}
			if _, device := x.p.Space().Device(); err != nil && (!device || !errors.Is(err, array.ErrReach)) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, x := range all {
				if got := elements(t, x.Array); !slices.Equal(got, x.s) || x.Len() != len(x.s) || x.Bytes() != 4*int64(len(x.s)) {
					t.Fatalf("seed %d: %v, want %v", seed, got, x.s)
				}
				for i, v := range x.All() {
					if v != x.s[i] {
						t.Fatalf("seed %d: element %d is %d, want %v", seed, i, v, x.s)
					}
				}
			}
		}
		for _, x := range all {
			x.Free()
		}
	}
	for _, p := range pools {
		if s := p.Stats(); s.Live != 0 || s.Frees != s.Allocs {
			t.Errorf("%+v", s)
		}
	}
}

// TestString: an array says its type, its length, where it is and what is in it.
func TestString(t *testing.T) {
	p, d := open(t, pool.Config{}), device(t, 0)
	a := from[float32](t, p, 1, 2, 3, 4, 5, 6.5, 7, 8)
	b, c := must[array.Array[float32]](t)(array.Like(a)), must[array.Array[float32]](t)(a.Clone(d))
	b.Fill(1)
	for got, want := range map[string]string{
		fmt.Sprint(a): "float32[8] in host memory: 1 2 3 4 5 6.5 ...", fmt.Sprint(a.View(2, 4)): "float32[2] in host memory: 3 4", fmt.Sprint(b): "float32[8] in host memory: 1 1 1 1 1 1 ...",
		fmt.Sprint(c): "float32[8] in device0 memory: 1 2 3 4 5 6.5 ...", fmt.Sprint(c.View(0, 6)): "float32[6] in device0 memory: 1 2 3 4 5 6.5", fmt.Sprint(a.View(4, 4)): "float32[0] in host memory",
		fmt.Sprint(array.Array[byte]{}): "uint8[0]",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if none, err := array.Like(array.Array[int16]{}); none.Len() != 0 || err != nil {
		t.Errorf("like nothing: %v", err)
	}
	for _, i := range []int{-1, 4, math.MaxInt} {
		for _, f := range []func(){func() { a.View(0, 4).At(i) }, func() { a.View(0, 4).Set(i, 1) }} {
			if text := panicked(f); text != fmt.Sprintf("array: index %d of an array of 4", i) {
				t.Errorf("%d: %q", i, text)
			}
		}
	}
	for _, c := range [][2]int{{-1, 2}, {3, 2}, {0, 5}, {5, 5}} {
		if text := panicked(func() { a.View(4, 8).View(c[0], c[1]) }); text != fmt.Sprintf("array: view [%d:%d] of an array of 4", c[0], c[1]) {
			t.Errorf("%v: %q", c, text)
		}
	}
}

// TestUseAfterFree is an error of every method; a Free during a use takes effect at its end, and what is kept stays until done.
func TestUseAfterFree(t *testing.T) {
	p := open(t, pool.Config{})
	a := from[int32](t, p, 5, 6, 7, 8)
	v, sum := a.View(1, 4), int32(0)
	for i, x := range v.All() {
		if a.Free(); p.Sample().Live == 0 {
			t.Error("the memory went away under a loop")
		}
		if sum += x; i == 1 {
			break
		}
	}
	_, e1 := v.At(0)
	_, e2 := a.Clone(p)
	_, e3 := v.ToSlice()
	_, e4 := array.Adapt[[]int32](p, a)
	called := func(array.Memory) error { t.Error("called"); return nil }
	for k, err := range []error{e1, e2, e3, e4, v.Set(0, 1), v.Reach(called), v.Fill(1), v.CopyIn(make([]int32, 3)), v.CopyFrom(v), v.Do(func([]int32) error { return called(array.Memory{}) })} {
		if !errors.Is(err, array.ErrFreed) || !strings.HasSuffix(err.Error(), "array: used after Free (it had 16 B)") {
			t.Errorf("%d: %v", k, err)
		}
	}
	if sum != 13 || p.Sample().Live != 0 || !strings.Contains(v.String(), "(array: used after Free") || panicked(func() {
		for range v.All() {
			t.Error("an element of a freed array")
		}
	}) == "<nil>" {
		t.Errorf("sum %d, %d bytes live, %v", sum, p.Sample().Live, v)
	}
	b := from[byte](t, p, 1)
	var done func()
	reach(t, b, func(m array.Memory) { done = m.Keep(); b.Free() })
	if p.Sample().Live == 0 {
		t.Error("what is kept went back")
	}
	if done(); p.Sample().Live != 0 {
		t.Error("what was kept stays")
	}
	var none array.Array[int]
	none.Free()
	if none.Reach(called) != nil || none.Fill(1) != nil {
		t.Error("the zero value is not empty")
	}
}

// TestWhatADeviceIsAsked: each copy is one call, of the elements of the view, after the stream that used the memory last. A failure is returned, and leaves nothing.
func TestWhatADeviceIsAsked(t *testing.T) {
	up := new(far)
	p := open(t, pool.Config{Upstream: up, Space: pressure.Device(0)})
	a := must[array.Array[int16]](t)(array.New[int16](p, 8, array.On(3)))
	reach(t, a, func(m array.Memory) { up.base = m.Addr })
	b := must[array.Array[int16]](t)(array.Like(a, array.On(4)))
	var other uintptr
	reach(t, b, func(m array.Memory) {
		other = m.Addr - up.base
		if m.LastStream() != 4 || m.Bytes != 16 || m.Space != pressure.Device(0) || m.Upstream() != pool.Upstream(up) || m.Tainted() {
			t.Errorf("%+v of stream %d", m, m.LastStream())
		}
	})
	part := a.View(2, 7).View(1, 3)
	part.CopyIn([]int16{1, 2})
	part.CopyOut(make([]int16, 2))
	part.Fill(258)
	b.View(6, 8).CopyFrom(part)
	up.heard(t, "each", "upload 4 to 6 for 3", "download 4 from 6 for 3", "fill 6 with 2 times [2 1] for 3", fmt.Sprintf("copy 4 from 6 to %d for 4", other+12))
	reach(t, part, func(m array.Memory) {
		if x, y, z := m.UsedBy(7), m.UsedBy(0), m.UsedBy(9); m.Addr != up.base+6 || m.Bytes != 4 || x != 3 || y != 7 || z != 0 || m.LastStream() != 9 {
			t.Errorf("a view at %d of %d bytes; before: %d, %d, %d; now %d", m.Addr-up.base, m.Bytes, x, y, z, m.LastStream())
		}
		if text := panicked(func() { m.UsedBy(math.MaxUint32) }); text != "array: stream number out of range" || m.LastStream() != 9 {
			t.Errorf("the last stream: %q", text)
		}
	})
	a.View(0, 1).Fill(1)
	up.heard(t, "after other streams", "fill 0 with 1 times [1 0] for 9")
	for text, err := range map[string]error{
		"array: copy in of 3 elements to 2": part.CopyIn(make([]int16, 3)), "array: copy out of 1 elements to 2": part.CopyOut(make([]int16, 1)), "array: copy of 8 elements to 2": part.CopyFrom(a),
	} {
		if err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	_, e1 := a.At(1)
	for k, err := range []error{e1, a.Set(1, 2), a.Do(func([]int16) error { return nil })} {
		if !errors.Is(err, array.ErrReach) || !strings.Contains(err.Error(), "device0 memory; copy elements with ToSlice or View(i, j).CopyIn") {
			t.Errorf("%d: %v", k, err)
		}
	}
	mute := must[array.Array[int16]](t)(array.New[int16](open(t, pool.Config{Space: pressure.Device(0)}), 4))
	if err := mute.Fill(1); !errors.Is(err, array.ErrReach) || !strings.Contains(err.Error(), "pool.Host is no Mover") {
		t.Errorf("Fill without a Mover: %v", err)
	}
	up.err = errors.New("lost")
	live := p.Sample().Live
	_, e1 = array.From(p, []byte{1})
	_, e2 := array.Zeros[byte](p, 3)
	_, e3 := a.Clone(p)
	_, e4 := array.Adapt[[]array.Array[byte]](p, [][]byte{{1}, {2}})
	_, e5 := array.Adapt[array.Array[float32]](p, []float64{1})
	for k, err := range []error{e1, e2, e3, e4, e5, a.CopyIn(make([]int16, 8)), a.CopyOut(make([]int16, 8)), a.Fill(1), a.CopyFrom(b)} {
		if !errors.Is(err, up.err) || p.Sample().Live != live {
			t.Errorf("%d: %v, %d bytes stay", k, err, p.Sample().Live-live)
		}
	}
	if text := panicked(func() {
		for range a.All() {
			t.Error("an element that could not be copied")
		}
	}); text != "lost" {
		t.Errorf("a loop over what cannot be copied: %s", text)
	}
}

// TestTheProcessorWaitsFirst in managed memory, each time that work was noted, also during the wait before; if the wait fails, so does the access, and nothing is kept.
func TestTheProcessorWaitsFirst(t *testing.T) {
	up := new(far)
	p := open(t, pool.Config{Upstream: up, Space: pressure.Managed})
	a := must[array.Array[int32]](t)(array.New[int32](p, 4, array.On(5)))
	b := from[int32](t, p, 6, 7, 8, 9)
	up.heard(t, "from", "settle 0, false")
	ways := map[string]func() error{
		"in": func() error { return a.CopyIn(make([]int32, 4)) }, "out": func() error { return a.CopyOut(make([]int32, 4)) }, "fill": func() error { return a.Fill(3) },
		"do": func() error { return a.Do(func([]int32) error { return nil }) }, "at": func() error { _, err := a.At(1); return err }, "set": func() error { return a.Set(1, 2) },
		"from": func() error { return a.CopyFrom(b) }, "to": func() error { return b.CopyFrom(a) },
	}
	for name, way := range ways {
		for range 2 { // the second one has nothing to wait for
			if err := way(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		up.told = nil
		used(t, a, 8)
		up.hook = func() { used(t, a, 9) }
		for range 3 {
			if err := way(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		up.heard(t, name, "settle 8, false", "settle 9, false")
	}
	reach(t, a, func(m array.Memory) { m.UsedBy(2); m.Taint() })
	for range 2 {
		a.At(0)
	}
	up.heard(t, "tainted", "settle 2, true", "settle 2, true")
	up.err = errors.New("lost")
	for name, way := range ways {
		if err := way(); err != up.err {
			t.Errorf("%s: %v", name, err)
		}
	}
	up.err = nil
	own := errors.New("own")
	if err := a.Do(func([]int32) error { return own }); err != own || a.Reach(func(array.Memory) error { return own }) != own {
		t.Error(err)
	}
	a.Free()
	b.Free()
	if p.Sample().Live != 0 {
		t.Errorf("%d bytes stay in use", p.Sample().Live)
	}
}

// TestMoves: memory moves to a device unless it is within what was moved there last, and the processor has not used it since.
func TestMoves(t *testing.T) {
	p := open(t, pool.Config{Space: pressure.Managed})
	a := from[byte](t, p, make([]byte, 100)...)
	for k, c := range []struct {
		i, j, device int
		moves        bool
	}{
		{10, 20, 0, true}, {10, 20, 0, false}, {12, 20, 0, false}, {10, 15, 0, false}, {9, 20, 0, true}, {9, 21, 0, true}, {10, 21, 1, true}, {10, 21, 1, false}, {11, 12, 0, true}, {10, 11, 0, true},
	} {
		reach(t, a.View(c.i, c.j), func(m array.Memory) {
			if m.MoveTo(c.device) != c.moves {
				t.Errorf("%d: %+v", k, c)
			}
		})
	}
	used(t, a, 1)
	a.At(0)
	reach(t, a.View(10, 11), func(m array.Memory) {
		if !m.MoveTo(0) {
			t.Error("the processor has used it since")
		}
	})
}

// refused reports whether arrays of T are a panic.
func refused[T any](p *pool.Pool) bool {
	return strings.Contains(panicked(func() { a, _ := array.New[T](p, 1); a.Free() }), "contains pointers, which the Go collector would not see")
}

// TestTypesOfElements: those without pointers, at any depth; and how many.
func TestTypesOfElements(t *testing.T) {
	p := open(t, pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: mib}}})
	type plain struct{ A [2]complex64 }
	type pointed struct {
		plain
		S string
	}
	plainTypes := []bool{refused[bool](p), refused[uintptr](p), refused[complex128](p), refused[struct{}](p), refused[[0]*int](p), refused[[3]plain](p), refused[array.On](p)}
	others := []bool{refused[string](p), refused[*int](p), refused[[]int](p), refused[map[int]int](p), refused[func()](p), refused[any](p), refused[[1]string](p), refused[pointed](p), refused[pointed](p)}
	if slices.Contains(plainTypes, true) || slices.Contains(others, false) {
		t.Errorf("refused: %v of plain types, %v of those with pointers", plainTypes, others)
	}
	type big [mib]int64 // of 8 MiB
	for n, want := range map[int]error{-1: pool.ErrSize, pool.MaxBytes / mib / 8: pool.ErrOutOfMemory, pool.MaxBytes/mib/8 + 1: pool.ErrSize, math.MaxInt: pool.ErrSize} {
		if _, err := array.New[big](p, n); !errors.Is(err, want) {
			t.Errorf("%d elements: %v, want %v", n, err, want)
		}
	}
	if a, err := array.New[struct{}](p, math.MaxInt); err != nil || a.Bytes() != 0 {
		t.Errorf("elements of no bytes: %v", err)
	}
}

// TestOneArrayOfManyGoroutines: none sees the memory of another array, and the last use, not the Free in the middle, gives the memory back.
func TestOneArrayOfManyGoroutines(t *testing.T) {
	p := open(t, pool.Config{})
	for round := range int32(50) {
		a := from(t, p, slices.Repeat([]int32{round}, 4096)...)
		done := make(chan error)
		for g := range 8 {
			go func() {
				for i := g; ; i++ {
					if g == 7 && i > 20 {
						a.Free()
					}
					if err := a.View(i%4096, 4096).Do(func(s []int32) error {
						got := s[0]
						if runtime.Gosched(); got != round || s[len(s)-1] != round {
							return fmt.Errorf("round %d: read %d and %d", round, got, s[len(s)-1])
						}
						return nil
					}); err != nil {
						done <- err
						return
					}
				}
			}()
		}
		for range 8 { // others may get the memory, once it is free
			other := from(t, p, slices.Repeat([]int32{-1}, 4096)...)
			if err := <-done; !errors.Is(err, array.ErrFreed) {
				t.Error(err)
			}
			other.Free()
		}
	}
	if s := p.Stats(); s.Live != 0 || s.Allocs != s.Frees {
		t.Errorf("%d bytes live, %d allocations, %d frees", s.Live, s.Allocs, s.Frees)
	}
}

// A freed array of no elements is freed, too.
func TestUseAfterFreeOfNothing(t *testing.T) {
	p := open(t, pool.Config{})
	a, empty := from[int32](t, p, 1, 2), array.Array[int32]{}
	view := a.View(1, 1)
	a.Free()
	if _, err := view.Clone(p); !errors.Is(err, array.ErrFreed) {
		t.Errorf("cloned: %v", err)
	}
	if err := view.CopyFrom(empty); !errors.Is(err, array.ErrFreed) {
		t.Errorf("copied: %v", err)
	}
}
