package pooltest

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

func arrays(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, err := array.New[float32](p, 1000)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Repeat([]float32{1, 2, 3, 4}, 250)
	got := slices.Repeat([]float32{0}, 1000)
	ok(t, a.CopyIn(want))
	ok(t, a.CopyOut(got))
	if !slices.Equal(got, want) {
		t.Error("what went in does not come out")
	}
	live := p.Stats().Live
	v := a.View(4, 8).View(1, 3)
	ok(t, v.Fill(9))
	ok(t, a.CopyOut(got))
	if want[5], want[6] = 9, 9; !slices.Equal(got, want) {
		t.Errorf("a view wrote elsewhere: %v", got[:12])
	}
	if p.Stats().Live != live || v.Len() != 2 || v.Bytes() != 8 {
		t.Error("a view counts its bytes again")
	}
	b, err := array.New[float32](p, 1000)
	ok(t, err)
	ok(t, b.CopyFrom(a))
	ok(t, b.CopyOut(got))
	if !slices.Equal(got, want) {
		t.Error("a copy differs")
	}
	if a.CopyIn(want[1:]) == nil || a.CopyOut(want[1:]) == nil || a.CopyFrom(v) == nil {
		t.Error("lengths that differ are no error")
	}
	b.Free()
	a.Free()
	a.Free()
	v.Free()
	if s := p.Stats(); s.Live != 0 || s.Frees != 2 {
		t.Errorf("freed often, counted %d times, %d bytes live", s.Frees, s.Live)
	}
	next, err := array.New[float32](p, 1000) // may have the memory of a
	ok(t, err)
	ok(t, next.Fill(5))
	for name, err := range map[string]error{
		"copy in": a.CopyIn(want), "copy out": a.CopyOut(got), "fill": v.Fill(1), "copy": a.CopyFrom(a),
		"do": a.Do(func([]float32) error { t.Error("called"); return nil }),
	} {
		if !errors.Is(err, array.ErrFreed) {
			t.Errorf("%s after Free: %v", name, err)
		}
	}
	ok(t, next.CopyOut(got))
	if slices.Max(got) != 5 || slices.Min(got) != 5 {
		t.Error("use after Free touched memory that was handed out again")
	}
	next.Free()
	freeDuringUse(t, p)
	emptyArrays(t, p)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freeDuringUse(t *testing.T, p *pool.Pool) {
	a, err := array.New[byte](p, 100)
	ok(t, err)
	if p.Memory(mustBlock(t, a)) == nil {
		a.Free()
		return
	}
	ok(t, a.Do(func(b []byte) error {
		a.Free()
		b[0] = 1
		if p.Stats().Live == 0 {
			t.Error("the memory went away under its user")
		}
		return nil
	}))
	if p.Stats().Live != 0 {
		t.Error("the memory did not go back after its last use")
	}
}

func mustBlock[T any](t testing.TB, a array.Array[T]) pool.Block {
	b, ok := a.Block()
	if !ok {
		t.Fatal("no block")
	}
	return b
}

func emptyArrays(t *testing.T, p *pool.Pool) {
	var zero array.Array[int]
	zero.Free()
	zero.Use(1)
	ok(t, zero.Fill(1))
	none, err := array.New[int](p, 0)
	ok(t, err)
	ok(t, none.CopyIn(nil))
	none.Free()
	if _, err := array.New[int](p, -1); !errors.Is(err, pool.ErrSize) {
		t.Errorf("-1 elements: %v", err)
	}
	if _, err := array.New[int](p, 1<<62); !errors.Is(err, pool.ErrSize) {
		t.Errorf("2^62 elements: %v", err)
	}
	if panics(func() { array.New[*int](p, 1) }) == "" {
		t.Error("an array of pointers is no panic")
	}
}

// drop makes arrays that nothing reaches any more.
//
//go:noinline
func drop(t *testing.T, p *pool.Pool, n, bytes int) {
	for range n {
		if _, err := array.New[byte](p, bytes); err != nil {
			t.Fatal(err)
		}
	}
}

func droppedArrays(t *testing.T, open Maker) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	drop(t, p, 50, 8<<20) // far more than fits
	kept, err := array.New[byte](p, 8<<20)
	ok(t, err)
	view := kept.View(8<<20-1, 8<<20)
	for end := time.Now().Add(time.Minute); p.Stats().Live >= 16<<20 && time.Now().Before(end); {
		p.Reclaim(pool.StepCollect) // again where one did not wait for all that it had found
	}
	if s := p.Stats(); s.Live < 8<<20 || s.Live >= 16<<20 || s.ReservedPeak > hard || s.Failures != 0 {
		t.Errorf("a view does not keep its base, or garbage stayed: %+v", s)
	}
	ok(t, view.Fill(3))
	runtime.KeepAlive(view)
	for end := time.Now().Add(time.Minute); p.Stats().Live != 0; p.Reclaim(pool.StepCollect) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes stay live", p.Stats().Live)
		}
	}
}

func batches(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	data := slices.Repeat([]int32{1, 2, 3, 4, 5}, 200)
	var sum int32
	var peak int64
	for batch, err := range array.Batches[array.Array[int32]](p, slices.Chunk(data, 256)) {
		ok(t, err)
		got := slices.Repeat([]int32{0}, batch.Len())
		ok(t, batch.CopyOut(got))
		for _, x := range got {
			sum += x
		}
		peak = max(peak, p.Stats().Live)
	}
	if sum != 3000 || p.Stats().Live != 0 || peak >= 4096 {
		t.Errorf("sum %d, want 3000; %d bytes left; peak %d", sum, p.Stats().Live, peak)
	}
	for range array.Batches[array.Array[int32]](p, slices.Chunk(data, 256)) {
		break
	}
	if p.Stats().Live != 0 {
		t.Error("a loop that is left early leaves its batch")
	}
}
