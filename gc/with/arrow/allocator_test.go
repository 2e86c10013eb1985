package arrow_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	with "github.com/eagergc/eagergc/gc/with/arrow"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// open returns a pool of 64 MiB.
func open(t *testing.T, rule policy.Spec) (*gc.Collector, *pool.Pool, *with.Allocator) {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: rule.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return c, p, with.New(p)
}

func numbers(mem memory.Allocator, n int) arrow.Array {
	b := array.NewInt64Builder(mem)
	defer b.Release()
	for i := range n {
		b.Append(int64(i))
	}
	return b.NewArray()
}

// Arrow's own check: every byte comes back, from builders, nested types,
// dictionaries, IPC and compute.
func TestArrowsChecks(t *testing.T) {
	_, p, a := open(t, policy.Spec{})
	mem := memory.NewCheckedAllocator(a)
	ctx := compute.WithAllocator(context.Background(), mem)

	x := numbers(mem, 100_000)
	sum, err := compute.Add(ctx, compute.ArithmeticOptions{}, compute.NewDatumWithoutOwning(x), compute.NewDatumWithoutOwning(x))
	if err != nil {
		t.Fatal(err)
	}
	double := sum.(*compute.ArrayDatum).MakeArray().(*array.Int64)
	for i, v := range double.Int64Values() {
		if v != int64(2*i) {
			t.Fatalf("element %d is %d", i, v)
		}
	}
	list := array.NewListBuilder(mem, arrow.BinaryTypes.String)
	for i := range 1000 {
		list.Append(i%7 != 0)
		list.ValueBuilder().(*array.StringBuilder).Append("text")
	}
	lists := list.NewArray()
	words := array.NewDictionaryBuilder(mem, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	for i := range 1000 {
		if err := words.AppendString([]string{"a", "b", "c"}[i%3]); err != nil {
			t.Fatal(err)
		}
	}
	word := words.NewArray()
	schema := arrow.NewSchema([]arrow.Field{{Name: "lists", Type: lists.DataType(), Nullable: true}, {Name: "words", Type: word.DataType()}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{lists, word}, 1000)
	var file bytes.Buffer
	w := ipc.NewWriter(&file, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&file, ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Next() || !array.RecordEqual(batch, r.RecordBatch()) {
		t.Errorf("the batch does not come back: %v", r.Err())
	}
	if p.Stats().Live == 0 {
		t.Error("nothing is in the pool")
	}
	r.Release()
	for _, v := range []interface{ Release() }{x, sum, double, list, lists, words, word, batch} {
		v.Release()
	}
	mem.AssertSize(t, 0)
	if live := p.Stats().Live; live != 0 {
		t.Errorf("%d bytes are live after everything was released", live)
	}
}

// What is dropped without a Release comes back in one cycle; what is still
// referred to, by a slice of a slice too, does not.
func TestTheCollectorReleases(t *testing.T) {
	c, p, a := open(t, policy.Spec{})
	keep := numbers(a, 1<<17)
	kept := array.NewSlice(keep, 10, 20)
	for _, x := range []arrow.Array{numbers(a, 1<<17), numbers(a, 1<<17), keep} {
		if err := a.Manage(x.Data()); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Manage(kept.Data()); err != nil {
		t.Error("managed twice:", err)
	}
	keep = nil
	pooltest.Collect(c)
	if freed, left := c.Stats().Freed, p.Stats().Live; freed < 2<<20 || left < 1<<20 || left >= 2<<20 {
		t.Errorf("freed %d, %d are left", freed, left)
	}
	if v := kept.(*array.Int64).Value(3); v != 13 {
		t.Error("slice holds", v)
	}
	runtime.KeepAlive(kept)
	kept = nil
	pooltest.Collect(c)
	if live := p.Stats().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}

func TestReleaseBeforeTheCollector(t *testing.T) {
	c, p, a := open(t, policy.Spec{})
	x := numbers(a, 1000)
	if err := a.Manage(x.Data()); err != nil {
		t.Fatal(err)
	}
	x.Release()
	if live := p.Stats().Live; live != 0 {
		t.Errorf("%d bytes are live after Release", live)
	}
	again := numbers(a, 1000) // in the same place
	pooltest.Collect(c)
	time.Sleep(time.Millisecond) // let cleanups of x run, should there be any
	if again.(*array.Int64).Value(999) != 999 || p.Stats().Live == 0 {
		t.Error("the collector took memory that had been released and handed out again")
	}
	again.Release()
}

func TestOutOfMemoryIsAPanicWithThePoolsError(t *testing.T) {
	_, p, a := open(t, policy.Spec{})
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, pool.ErrOutOfMemory) {
			t.Error("recovered", err)
		}
		if live := p.Stats().Live; live != 0 {
			t.Errorf("%d bytes are live", live)
		}
	}()
	a.Allocate(65 << 20)
}

func TestFreeOfWhatIsNotHandedOut(t *testing.T) {
	_, _, a := open(t, policy.Spec{})
	b := a.Allocate(100)
	a.Free(b)
	defer func() {
		if recover() == nil {
			t.Error("freed twice without a panic")
		}
	}()
	a.Free(b)
}

// The allocator holds to a model: contents survive, new bytes are zeroes, the
// pool's count is that of what is handed out.
func TestModel(t *testing.T) {
	_, p, a := open(t, policy.Spec{})
	rapid.Check(t, func(t *rapid.T) {
		var have, want [][]byte
		size := rapid.IntRange(0, 10000)
		pick := func(t *rapid.T) int {
			if len(have) == 0 {
				t.Skip("nothing is handed out")
			}
			return rapid.IntRange(0, len(have)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"allocate": func(t *rapid.T) {
				n := size.Draw(t, "size")
				b := a.Allocate(n)
				have, want = append(have, b), append(want, make([]byte, n))
			},
			"reallocate": func(t *rapid.T) {
				i, n := pick(t), size.Draw(t, "size")
				have[i] = a.Reallocate(n, have[i])
				grown := make([]byte, n)
				copy(grown, want[i])
				want[i] = grown
			},
			"write": func(t *rapid.T) {
				i := pick(t)
				v := rapid.Byte().Draw(t, "value")
				for j := range have[i] {
					have[i][j], want[i][j] = v, v
				}
			},
			"free": func(t *rapid.T) {
				i := pick(t)
				a.Free(have[i])
				have, want = append(have[:i:i], have[i+1:]...), append(want[:i:i], want[i+1:]...)
			},
			"": func(t *rapid.T) {
				for i := range have {
					if !bytes.Equal(have[i], want[i]) {
						t.Fatalf("block %d of %d bytes differs", i, len(want[i]))
					}
				}
			},
		})
		for _, b := range have {
			a.Free(b)
		}
		if live := p.Stats().Live; live != 0 {
			t.Fatalf("%d bytes are live at the end", live)
		}
	})
}
