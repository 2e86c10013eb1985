package array_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// telling is memory that tells what it was asked, with addresses from the first block's on. It fails with err.
type telling struct {
	far
	told []string
	base uintptr
	err  error
}

func (x *telling) say(format string, args ...any) error {
	x.told = append(x.told, fmt.Sprintf(format, args...))
	return x.err
}

func (x *telling) heard(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(x.told, want) {
		t.Errorf("%s: told %q, want %q", what, x.told, want)
	}
	x.told = nil
}

func (x *telling) Upload(to uintptr, from []byte, stream uint32) error {
	x.far.Upload(to, from, stream)
	return x.say("upload %d to %d for %d", len(from), to-x.base, stream)
}

func (x *telling) Download(to []byte, from uintptr, stream uint32) error {
	x.far.Download(to, from, stream)
	return x.say("download %d from %d for %d", len(to), from-x.base, stream)
}

func (x *telling) Copy(to, from uintptr, n int64, stream uint32) error {
	x.far.Copy(to, from, n, stream)
	return x.say("copy %d from %d to %d for %d", n, from-x.base, to-x.base, stream)
}

func (x *telling) Fill(to uintptr, pattern []byte, n int64, stream uint32) error {
	x.far.Fill(to, pattern, n, stream)
	return x.say("fill %d with %d times %v for %d", to-x.base, n, pattern, stream)
}

func (x *telling) Settle(stream uint32, tainted bool) error {
	return x.say("settle %d, %v", stream, tainted)
}

// reach calls f with the memory of an array.
func reach[T any](t *testing.T, a array.Array[T], f func(array.Memory)) {
	t.Helper()
	called := false
	if err := a.Reach(func(m array.Memory) error { called = true; f(m); return nil }); err != nil || !called {
		t.Errorf("called %v: %v", called, err)
	}
}

// TestWhatADeviceIsAsked: each copy is one call, of the elements of the view, after the stream that used the memory last.
func TestWhatADeviceIsAsked(t *testing.T) {
	up := new(telling)
	p := open(t, pool.Config{Upstream: up, Space: pressure.Device(0)})
	a := must[array.Array[int16]](t)(array.New[int16](p, 8, array.On(3)))
	reach(t, a, func(m array.Memory) { up.base = m.Addr })
	b := must[array.Array[int16]](t)(array.Like(a, array.On(4)))
	var far uintptr
	reach(t, b, func(m array.Memory) {
		far = m.Addr - up.base
		if m.LastStream() != 4 || m.Bytes != 16 || m.Space != pressure.Device(0) || m.Upstream() != pool.Upstream(up) || m.Tainted() {
			t.Errorf("%+v of stream %d", m, m.LastStream())
		}
	})
	part := a.View(2, 7).View(1, 3)
	up.heard(t, "nothing")
	part.CopyIn([]int16{1, 2})
	part.CopyOut(make([]int16, 2))
	part.Fill(258)
	b.View(6, 8).CopyFrom(part)
	up.heard(t, "each", "upload 4 to 6 for 3", "download 4 from 6 for 3", "fill 6 with 2 times [2 1] for 3", fmt.Sprintf("copy 4 from 6 to %d for 4", far+12))
	reach(t, part, func(m array.Memory) {
		if m.Addr != up.base+6 || m.Bytes != 4 {
			t.Errorf("a view at %d of %d bytes", m.Addr-up.base, m.Bytes)
		}
		if x, y, z := m.UsedBy(7), m.UsedBy(0), m.UsedBy(9); x != 3 || y != 7 || z != 0 || m.LastStream() != 9 {
			t.Errorf("before: %d, %d, %d; now %d", x, y, z, m.LastStream())
		}
		defer func() {
			if text, _ := recover().(string); text != "array: stream number out of range" || m.LastStream() != 9 {
				t.Errorf("the last stream: %q", text)
			}
		}()
		m.UsedBy(math.MaxUint32)
	})
	a.Use(11) // is for the pool
	a.View(0, 1).Fill(1)
	up.heard(t, "after other streams", "fill 0 with 1 times [1 0] for 9")
	for text, err := range map[string]error{
		"array: copy in of 3 elements to 2": part.CopyIn(make([]int16, 3)), "array: copy out of 1 elements to 2": part.CopyOut(make([]int16, 1)), "array: copy of 8 elements to 2": part.CopyFrom(a),
	} {
		if err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	up.err = errors.New("lost")
	for name, err := range map[string]error{"in": a.CopyIn(make([]int16, 8)), "out": a.CopyOut(make([]int16, 8)), "fill": a.Fill(1), "copy": a.CopyFrom(b)} {
		if err != up.err {
			t.Errorf("%s: %v", name, err)
		}
	}
	live := p.Sample().Live
	for name, make := range map[string]func() error{
		"from":    func() error { _, err := array.From(p, []byte{1}); return err },
		"zeros":   func() error { _, err := array.Zeros[byte](p, 3); return err },
		"clone":   func() error { _, err := a.Clone(p); return err },
		"adapt":   func() error { _, err := array.Adapt[array.Array[float32]](p, []int{1}); return err },
		"slice":   func() error { _, err := a.ToSlice(); return err },
		"batches": func() error { _, err := array.Adapt[[]array.Array[byte]](p, [][]byte{{1}, {2}}); return err },
	} {
		if err := make(); !errors.Is(err, up.err) || p.Sample().Live != live {
			t.Errorf("%s: %v, %d bytes stay", name, err, p.Sample().Live-live)
		}
	}
	if text := a.String(); text != "int16[8] in device0 memory (lost)" {
		t.Error(text)
	}
	a.Free()
	b.Free()
	if p.Sample().Live != 0 {
		t.Errorf("%d bytes stay", p.Sample().Live)
	}
}

// TestTheProcessorWaitsFirst in managed memory, each time that work was noted; and if the wait fails, so does the access, and nothing is kept.
func TestTheProcessorWaitsFirst(t *testing.T) {
	up := new(telling)
	p := open(t, pool.Config{Upstream: up, Space: pressure.Managed})
	a := must[array.Array[int32]](t)(array.New[int32](p, 4, array.On(5)))
	b := must[array.Array[int32]](t)(array.From(p, []int32{6, 7, 8, 9}))
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
		a.Use(8)
		if err := way(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		up.heard(t, name, "settle 5, false")
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
	if a.Do(func([]int32) error { t.Error("called"); return nil }) == nil {
		t.Error("no error")
	}
	up.err = nil
	own := errors.New("own")
	if err := a.Do(func([]int32) error { return own }); err != own {
		t.Error(err)
	}
	if err := a.Reach(func(array.Memory) error { return own }); err != own {
		t.Error(err)
	}
	a.Free()
	b.Free()
	if p.Sample().Live != 0 {
		t.Errorf("%d bytes stay in use", p.Sample().Live)
	}
}

// TestElements: by their index in a view, and nowhere else.
func TestElements(t *testing.T) {
	p := open(t, pool.Config{})
	a := must[array.Array[int32]](t)(array.From(p, []int32{0, 1, 2, 3, 4, 5, 6}))
	v := a.View(2, 6)
	if err := v.Set(3, 50); err != nil {
		t.Error(err)
	}
	if x, err := v.At(0); x != 2 || err != nil {
		t.Errorf("%d, %v", x, err)
	}
	if s := elements(t, a); !slices.Equal(s, []int32{0, 1, 2, 3, 4, 50, 6}) {
		t.Error(s)
	}
	sum, last := 0, 0
	for i, x := range v.All() {
		sum, last = sum+int(x), i
	}
	if sum != 59 || last != 3 {
		t.Errorf("%d, up to %d", sum, last)
	}
	for _, i := range []int{-1, 4, math.MaxInt} {
		for _, f := range []func(){func() { v.At(i) }, func() { v.Set(i, 1) }} {
			if text := panicked(f); text != fmt.Sprintf("array: index %d of an array of 4", i) {
				t.Errorf("%d: %q", i, text)
			}
		}
	}
	for _, c := range [][2]int{{-1, 2}, {3, 2}, {0, 5}, {5, 5}} {
		if text := panicked(func() { v.View(c[0], c[1]) }); text != fmt.Sprintf("array: view [%d:%d] of an array of 4", c[0], c[1]) {
			t.Errorf("%v: %q", c, text)
		}
	}
	if v.View(4, 4).Len() != 0 || v.View(0, 4).Len() != 4 || v.Bytes() != 16 {
		t.Error("views at the ends")
	}
	if text := panicked(func() { a.Shaped(2, 4) }); text != "array: extents [2 4] of an array of 7" {
		t.Error(text)
	}
	given := []int{7, 1}
	s := a.Shaped(given...)
	given[0] = 9
	if !slices.Equal(s.Extents(), []int{7, 1}) || !slices.Equal(s.View(0, 3).Extents(), []int{3}) || !slices.Equal(a.Extents(), []int{7}) {
		t.Errorf("%v, %v, %v", s.Extents(), s.View(0, 3).Extents(), a.Extents())
	}
	if b, ok := a.Block(); !ok || b.Bytes != 28 {
		t.Errorf("%+v", b)
	}
	a.Free()
	if _, ok := v.Block(); ok {
		t.Error("a block that is freed")
	}
	_, err := v.At(0)
	for name, err := range map[string]error{"at": err, "set": v.Set(0, 1), "reach": v.Reach(func(array.Memory) error { t.Error("called"); return nil })} {
		if !errors.Is(err, array.ErrFreed) || err.Error() != "array: used after Free (it had 28 B)" {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none array.Array[int]
	if none.Reach(func(array.Memory) error { t.Error("called"); return nil }) != nil || none.Len() != 0 || none.Bytes() != 0 || none.String() != "int[0]" {
		t.Error("the zero value is not empty")
	}
	if _, ok := none.Block(); ok {
		t.Error("the zero value has a block")
	}
	for n, want := range map[int]string{0: "uint8[0] in host memory", 1: "uint8[1] in host memory: 0", 6: "uint8[6] in host memory: 0 0 0 0 0 0", 7: "uint8[7] in host memory: 0 0 0 0 0 0 ..."} {
		if got := must[array.Array[byte]](t)(array.Zeros[byte](p, n)).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func panicked(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

// refused reports whether arrays of T are a panic, and whether so many elements are too many.
func refused[T any](p *pool.Pool) bool {
	return panicked(func() { a, _ := array.New[T](p, 1); a.Free() }) == fmt.Sprintf("array: %v contains pointers, which the Go collector would not see", reflect.TypeFor[T]())
}

// TestTypesOfElements: those without pointers, at any depth; and how many.
func TestTypesOfElements(t *testing.T) {
	p := open(t, pool.Config{})
	type inner struct {
		A [2]complex64
		B uintptr
	}
	for k, got := range []bool{
		refused[bool](p), refused[uintptr](p), refused[complex128](p), refused[struct{}](p), refused[[0]*int](p), refused[[3]inner](p), refused[array.On](p),
	} {
		if got {
			t.Errorf("plain type %d is refused", k)
		}
	}
	for k, got := range []bool{
		refused[string](p), refused[*int](p), refused[[]int](p), refused[map[int]int](p), refused[chan int](p), refused[func()](p), refused[any](p), refused[[1]string](p),
		refused[struct {
			inner
			S string
		}](p), refused[string](p),
	} {
		if !got {
			t.Errorf("type %d with pointers is taken", k)
		}
	}
	small := open(t, pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: mib}}})
	for n, want := range map[int]error{-1: pool.ErrSize, pool.MaxBytes / 8: pool.ErrOutOfMemory, pool.MaxBytes/8 + 1: pool.ErrSize, math.MaxInt: pool.ErrSize} {
		if _, err := array.New[int64](small, n); !errors.Is(err, want) {
			t.Errorf("%d elements: %v, want %v", n, err, want)
		}
	}
	if a, err := array.New[struct{}](small, math.MaxInt); err != nil || a.Bytes() != 0 {
		t.Errorf("elements of no bytes: %v", err)
	}
}

// TestMoves: what was moved last, and used by the processor since.
func TestMoves(t *testing.T) {
	p := open(t, pool.Config{Space: pressure.Managed})
	a := must[array.Array[byte]](t)(array.New[byte](p, 100))
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
}

// TestConversions: Adapt converts as Go does, between all real numbers and nothing else.
func TestConversions(t *testing.T) {
	_, device := hostAndDevice(t)
	from := []any{[]int{-3, 7}, []int8{-3, 7}, []int16{-3, 7}, []int32{-3, 7}, []int64{-3, 7}, []uint{3, 7}, []uint8{3, 7}, []uint16{3, 7}, []uint32{3, 7}, []uint64{3, 7}, []float32{-3.5, 7.5}, []float64{-3.5, 7.5}}
	check := func(got any, from, to reflect.Type, err error) {
		t.Helper()
		v := reflect.ValueOf(got)
		for i, x := range []any{int64(-3), int64(7)} {
			if from.Kind() == reflect.Float32 || from.Kind() == reflect.Float64 {
				x = []any{-3.5, 7.5}[i]
			} else if from.Kind() >= reflect.Uint && i == 0 {
				x = int64(3)
			}
			if want := reflect.ValueOf(x).Convert(to); err != nil || v.Len() != 2 || v.Index(i).Interface() != want.Interface() {
				t.Errorf("%v to %v: %v, want %v: %v", from, to, got, want, err)
			}
		}
	}
	for _, x := range from {
		of := reflect.TypeOf(x).Elem()
		s, err := adaptAny[float32](device, x)
		check(s, of, reflect.TypeFor[float32](), err)
		d, err := adaptAny[float64](device, x)
		check(d, of, reflect.TypeFor[float64](), err)
		n, err := adaptAny[int](device, x)
		check(n, of, reflect.TypeFor[int](), err)
	}
	type mine []float32
	if a, err := array.Adapt[array.Array[float32]](device, mine{1, 2}); err != nil || !slices.Equal(elements(t, a), []float32{1, 2}) {
		t.Errorf("a slice with a name: %v", err)
	}
	for want, err := range map[string]error{
		"value: cannot make array.Array[float32] of []uintptr":            failed[array.Array[float32]](device, []uintptr{1}),
		"value: cannot make array.Array[uintptr] of []float32":            failed[array.Array[uintptr]](device, []float32{1}),
		"value: cannot make array.Array[float32] of []complex64":          failed[array.Array[float32]](device, []complex64{1}),
		"value: cannot make array.Array[bool] of []int":                   failed[array.Array[bool]](device, []int{1}),
		"value: cannot make array.Array[int] of []bool":                   failed[array.Array[int]](device, []bool{true}),
		"value: cannot make array.Array[int] of int":                      failed[array.Array[int]](device, 1),
		"value: cannot make []array.Array[int] of [1][]int":               failed[[]array.Array[int]](device, [1][]int{{1}}),
		"value: cannot make [2]array.Array[int] of [1][]int":              failed[[2]array.Array[int]](device, [1][]int{{1}}),
		"value: cannot make int of string":                                failed[int](device, "x"),
		"value: cannot make map[int]array.Array[int] of map[string][]int": failed[map[int]array.Array[int]](device, map[string][]int{"a": {1}}),
		"field .D[0].D: cannot make array.Array[int] of []string":         failed[wrapper[[2]wrapper[array.Array[int]]]](device, wrapper[[2]wrapper[[]string]]{}),
		"field [x][0]: cannot make array.Array[int] of []string":          failed[map[string][]array.Array[int]](device, map[string][][]string{"x": {{}}}),
	} {
		if err == nil || err.Error() != "array: adapt: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := failed[map[string][]array.Array[int]](device, map[string][][]string{"x": {}}); err != nil {
		t.Errorf("nothing that does not correspond: %v", err)
	}
	type nils struct {
		S []array.Array[int]
		M map[int]array.Array[int]
		P *array.Array[int]
	}
	type nilSlices struct {
		S [][]int
		M map[int][]int
		P *[]int
	}
	if x, err := array.Adapt[nils](device, nilSlices{}); err != nil || x.S != nil || x.M != nil || x.P != nil {
		t.Errorf("nothing became something: %+v, %v", x, err)
	}
	x, err := array.Adapt[nils](device, nilSlices{S: [][]int{}, M: map[int][]int{5: {6}}, P: &[]int{7}})
	if err != nil || x.S == nil || elements(t, x.M[5])[0] != 6 || elements(t, *x.P)[0] != 7 {
		t.Errorf("%+v, %v", x, err)
	}
	if live := device.Sample().Live; live == 0 {
		t.Error("nothing is there")
	}
}

func adaptAny[T any](p *pool.Pool, from any) ([]T, error) {
	var a array.Array[T]
	var err error
	switch x := from.(type) {
	case []int:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []int8:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []int16:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []int32:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []int64:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []uint:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []uint8:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []uint16:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []uint32:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []uint64:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []float32:
		a, err = array.Adapt[array.Array[T]](p, x)
	case []float64:
		a, err = array.Adapt[array.Array[T]](p, x)
	}
	if err != nil {
		return nil, err
	}
	return a.ToSlice()
}

func failed[To, From any](p *pool.Pool, from From) error {
	_, err := array.Adapt[To](p, from)
	return err
}

// TestScopeBounds: up to Max and not a byte more, again after each End.
func TestScopeBounds(t *testing.T) {
	p := open(t, pool.Config{})
	s := array.Scope{Max: 1000}
	for range 2 {
		var all []array.Array[byte]
		for _, n := range []int{600, 401, 400, 1, 0} {
			all = append(all, array.Hold(&s, must[array.Array[byte]](t)(array.New[byte](p, n))))
		}
		s.End()
		for k, freed := range []bool{true, false, true, false, true} {
			if _, ok := all[k].Block(); ok == freed {
				t.Errorf("array %d of %d bytes: freed %v", k, all[k].Len(), !ok)
			}
		}
		all[1].Free()
		all[3].Free()
	}
	if s := p.Stats(); s.Live != 0 || s.Frees != 10 {
		t.Errorf("%+v", s)
	}
}

// TestWorkspaceGivesWay: at a drop and not at a purge, to the one who asks; its memory is for the stream that it was made for, and no longer asked for once it is closed.
func TestWorkspaceGivesWay(t *testing.T) {
	up := new(telling)
	p := open(t, pool.Config{Upstream: up, Space: pressure.Device(0)})
	w := array.NewWorkspace[byte](p, array.On(6))
	own := errors.New("own")
	if err := w.Use(1000, func(a array.Array[byte]) error {
		reach(t, a, func(m array.Memory) {
			if m.LastStream() != 6 || m.Bytes != 1000 {
				t.Errorf("%d bytes for stream %d", m.Bytes, m.LastStream())
			}
		})
		w.Drop() // it is in use
		if err := a.Fill(1); err != nil {
			t.Error(err)
		}
		return own
	}); err != own {
		t.Error(err)
	}
	if p.Reclaim(pool.StepPurge); p.Sample().Live != 1024 {
		t.Errorf("after a purge %d bytes are live", p.Sample().Live)
	}
	if p.Reclaim(pool.StepDrop); p.Sample().Live != 0 {
		t.Errorf("after a drop %d bytes are live", p.Sample().Live)
	}
	w.Use(10, func(a array.Array[byte]) error { return nil })
	w.Use(5, func(a array.Array[byte]) error { return nil })
	w.Use(600, func(a array.Array[byte]) error { return nil })
	if s := p.Stats(); s.Allocs != 3 || s.Live != 1024 {
		t.Errorf("%d allocations, %d bytes live", s.Allocs, s.Live)
	}
	if w.Close(); p.Sample().Live != 0 {
		t.Error("it keeps its memory when it is closed")
	}
}
