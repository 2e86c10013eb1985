package array_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// wrapper is any wrapper that is generic in its storage, such as a diagonal matrix.
type wrapper[V any] struct {
	Name string
	note *int
	D    V
}

type module interface{ forward() string }

type layer struct {
	Name    string
	Weights array.Array[float32]
	Bias    *array.Array[float32]
}

func (l *layer) forward() string { return l.Name }

type network struct {
	Layers []layer
	Chain  []module
	Extra  map[string]array.Array[int32]
	Any    map[string]any
	Both   [2]array.Array[byte]
	Notes  *[]string
	shared []int
	other  any
	Self   any
}

// TestAdaptMovesModels: every array of a model goes, also those behind interfaces, and the old model stays as it was. What has no arrays is shared.
func TestAdaptMovesModels(t *testing.T) {
	host, dev := open(t, pool.Config{}), device(t, 0)
	bias := from[float32](t, host, 5)
	m := network{
		Layers: []layer{{"first", from[float32](t, host, 1, 2), &bias}, {"second", from[float32](t, host, 3), nil}},
		Chain:  []module{&layer{"third", from[float32](t, host, 7), nil}, nil},
		Extra:  map[string]array.Array[int32]{"x": from[int32](t, host, 6)},
		Any:    map[string]any{"w": from[int32](t, host, 8), "n": 9, "list": []any{from[int32](t, host, 10)}, "nil": nil},
		Notes:  &[]string{"kept"}, shared: []int{1},
	}
	m.other = "kept"
	loop := &wrapper[any]{}
	loop.D, m.Self = loop, loop // which has no arrays
	there, err := array.Adapt[network](dev, m)
	if err != nil {
		t.Fatal(err)
	}
	m.Layers[0].Weights.Fill(0)
	bias.Fill(0)
	all := func(m network) (values []any) {
		l := m.Chain[0].(*layer)
		values = append(values, elements(t, m.Layers[0].Weights), elements(t, *m.Layers[0].Bias), elements(t, m.Layers[1].Weights), elements(t, l.Weights), elements(t, m.Extra["x"]))
		values = append(values, elements(t, m.Any["w"].(array.Array[int32])), elements(t, m.Any["list"].([]any)[0].(array.Array[int32])))
		return append(values, m.Layers[1].Name, m.Layers[1].Bias == nil, l.Name, m.Chain[1] == nil, m.Any["n"], m.Any["nil"], *m.Notes, m.shared, m.other, len(m.Any))
	}
	want := []any{[]float32{1, 2}, []float32{5}, []float32{3}, []float32{7}, []int32{6}, []int32{8}, []int32{10}, "second", true, "third", true, 9, nil, []string{"kept"}, []int{1}, "kept", 4}
	if got := all(there); !reflect.DeepEqual(got, want) || dev.Stats().Allocs != 9 || there.Notes != m.Notes || there.Self != m.Self {
		t.Errorf("%v, want %v; %d arrays on the device", got, want, dev.Stats().Allocs)
	}
	back, err := array.Adapt[network](host, there)
	if got := all(back); err != nil || !reflect.DeepEqual(got, want) || !strings.Contains(back.Any["w"].(array.Array[int32]).String(), "host") {
		t.Errorf("back: %v, want %v: %v", got, want, err)
	}
}

// TestAdaptConverts slices and arrays in both directions, and float64 to float32, within generic wrappers whose other fields stay.
func TestAdaptConverts(t *testing.T) {
	dev, note := device(t, 0), 7
	from := wrapper[[]float64]{"diagonal", &note, make([]float64, 1001)}
	for i := range from.D {
		from.D[i] = float64(i) + 0.1
	}
	there := must[wrapper[array.Array[float64]]](t)(array.Adapt[wrapper[array.Array[float64]]](dev, from))
	if back, err := array.Adapt[wrapper[[]float64]](dev, there); err != nil || back.Name != "diagonal" || back.note != &note || !slices.Equal(back.D, from.D) {
		t.Errorf("there and back: %v", err)
	}
	narrow := elements(t, must[wrapper[array.Array[float32]]](t)(array.Adapt[wrapper[array.Array[float32]]](dev, from)).D)
	again := elements(t, must[wrapper[array.Array[float32]]](t)(array.Adapt[wrapper[array.Array[float32]]](dev, there)).D)
	for i, x := range from.D {
		if narrow[i] != float32(x) || again[i] != float32(x) {
			t.Fatalf("element %d is %v and %v", i, narrow[i], again[i])
		}
	}
	type nils[S any] struct {
		S []S
		M map[int]S
		P *S
		A any
	}
	type arrays = nils[array.Array[int]]
	if x, err := array.Adapt[arrays](dev, nils[[]int]{}); err != nil || x.S != nil || x.M != nil || x.P != nil || x.A != nil {
		t.Errorf("nothing became something: %+v, %v", x, err)
	}
	x, err := array.Adapt[arrays](dev, nils[[]int]{S: [][]int{}, M: map[int][]int{5: {6}}, P: &[]int{7}, A: 8})
	if err != nil || x.S == nil || elements(t, x.M[5])[0] != 6 || elements(t, *x.P)[0] != 7 || x.A != 8 {
		t.Errorf("%+v, %v", x, err)
	}
}

func failed[To, From any](p *pool.Pool, from From) error {
	_, err := array.Adapt[To](p, from)
	return err
}

// TestAdaptSaysWhatItCannot, and where, and leaves nothing in the pool.
func TestAdaptSaysWhatItCannot(t *testing.T) {
	host, dev := open(t, pool.Config{}), device(t, 0)
	a, freed := from[byte](t, host, 1), from[byte](t, host, 1)
	freed.Free()
	type hidden struct {
		Open   array.Array[byte]
		secret any
	}
	type embeds struct {
		array.Array[byte]
		Scale float64
	}
	type pair struct{ A, B array.Array[byte] }
	for want, err := range map[string]error{
		"field .secret is not exported":                                   failed[hidden](dev, hidden{a, []any{a}}),
		"field [1]: array: used after Free (it had 1 B)":                  failed[[]array.Array[byte]](dev, []array.Array[byte]{a, freed}),
		"field [w][1]: array: used after Free (it had 1 B)":               failed[any](dev, any(map[string]any{"w": []any{a, freed}})),
		"value: field 1 of struct { A []uint8; C []uint8 } is not B":      failed[pair](dev, struct{ A, C []byte }{}),
		"value: cannot make array_test.pair of struct { A []uint8 }":      failed[pair](dev, struct{ A []byte }{}),
		"field .D: cannot make []int32 of array.Array[uint8]":             failed[wrapper[[]int32]](dev, wrapper[array.Array[byte]]{D: a}),
		"value: cannot make array.Array[float32] of []int":                failed[array.Array[float32]](dev, []int{1}),
		"value: cannot make array.Array[int] of int":                      failed[array.Array[int]](dev, 1),
		"value: cannot make []array.Array[int] of [1][]int":               failed[[]array.Array[int]](dev, [1][]int{{1}}),
		"value: cannot make map[int]array.Array[int] of map[string][]int": failed[map[int]array.Array[int]](dev, map[string][]int{"a": {1}}),
		"field .D[0].D: cannot make array.Array[int] of []string":         failed[wrapper[[2]wrapper[array.Array[int]]]](dev, wrapper[[2]wrapper[[]string]]{}),
		"value: cannot make array_test.module of interface {}":            failed[module](dev, any(a)),
	} {
		if err == nil || err.Error() != "array: adapt: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if live := dev.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left on the device", live)
	}
	if x, err := array.Adapt[embeds](dev, embeds{a, 2}); err != nil || x.Scale != 2 || elements(t, x.Array)[0] != 1 {
		t.Errorf("an embedded array: %v, %v", x, err)
	}
	type mine []float32
	if x, err := array.Adapt[array.Array[float32]](dev, mine{math.Pi}); err != nil || elements(t, x)[0] != math.Pi {
		t.Errorf("a slice with a name: %v", err)
	}
}

type (
	batch[X, Y, M any] struct {
		Inputs X
		Labels Y
		Masks  []M
	}
	given = batch[[]float32, []int64, []byte]
	taken = batch[array.Array[float32], array.Array[int64], array.Array[byte]]
)

// TestBatches are of any number of slices that belong together. So many as asked for are made ahead of the loop, all are freed, and an error of one does not lose the next.
func TestBatches(t *testing.T) {
	p := open(t, pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 8 * mib}}})
	source := func(sizes ...int) func(func(given) bool) {
		return func(yield func(given) bool) {
			for k, n := range sizes {
				if !yield(given{slices.Repeat([]float32{float32(k)}, 2*n), make([]int64, n), [][]byte{make([]byte, n), {byte(k)}}}) {
					return
				}
			}
		}
	}
	ten := slices.Repeat([]int{10}, 10)
	for depth := range 4 {
		begun, seen := p.Stats().Allocs, 0
		for b, err := range array.Batches[taken](p, depth, source(ten...), array.On(5)) {
			if err != nil {
				t.Fatal(err)
			}
			reach(t, b.Masks[1], func(m array.Memory) {
				if m.LastStream() != 5 {
					t.Errorf("a batch for stream %d", m.LastStream())
				}
			})
			x, m, s := elements(t, b.Inputs), elements(t, b.Masks[1]), p.Stats()
			if len(x) != 20 || b.Labels.Len() != 10 || x[19] != float32(seen) || m[0] != byte(seen) {
				t.Errorf("batch %d: %v %v", seen, x, m)
			}
			if made, live := (s.Allocs-begun)/4, s.Live/512/4; made != int64(min(seen+1+depth, 10)) || live != min(int64(depth+1), 10-int64(seen)) {
				t.Errorf("depth %d: %d batches are made at the %d., %d live", depth, made, seen, live)
			}
			if seen++; depth == 3 && seen == 5 {
				break
			}
		}
		if live := p.Sample().Live; live != 0 || depth < 3 && seen != 10 {
			t.Errorf("depth %d: %d batches, %d bytes are left", depth, seen, live)
		}
	}
	var errs []error
	for _, err := range array.Batches[taken](p, 0, source(10, 2*mib, 20)) {
		errs = append(errs, err)
	}
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], pool.ErrOutOfMemory) || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	panicked(func() {
		for range array.Batches[taken](p, 0, source(10)) {
			panic("the loop's body")
		}
	})
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}

// A slice that holds itself and no array is the same, and shared.
func TestAdaptEndsOnASliceOfItself(t *testing.T) {
	s := []any{nil, 7}
	s[0] = s
	got, err := array.Adapt[[]any](open(t, pool.Config{}), s)
	if err != nil || &got[0] != &s[0] {
		t.Errorf("%v", err)
	}
}
