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

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns an array, which must fit.
func made[T any](t testing.TB, p *pool.Pool, n int) array.Array[T] {
	t.Helper()
	a, err := array.New[T](p, n)
	ok(t, err)
	return a
}

func arrays(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, b := made[float32](t, p, 1000), made[float32](t, p, 1000)
	live := p.Stats().Live
	want, v := slices.Repeat([]float32{1, 2, 3, 4}, 250), a.View(5, 7)
	ok(t, errors.Join(a.CopyIn(want), v.Fill(9), b.CopyFrom(a)))
	want[5], want[6] = 9, 9
	for _, x := range []array.Array[float32]{a, b} {
		if got, err := x.ToSlice(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v of %v, %v", got, want, err)
		}
	}
	if p.Stats().Live != live {
		t.Error("a view counts its bytes again")
	}
	b.Free()
	a.Free()
	v.Free()
	next := made[float32](t, p, 1000) // may have the memory of a
	ok(t, next.Fill(5))
	for name, err := range map[string]error{"copy in": a.CopyIn(want), "copy out": a.CopyOut(want), "fill": v.Fill(1), "copy": a.CopyFrom(a)} {
		if !errors.Is(err, array.ErrFreed) {
			t.Errorf("%s after Free: %v", name, err)
		}
	}
	if got, err := next.ToSlice(); err != nil || slices.Max(got) != 5 || slices.Min(got) != 5 {
		t.Errorf("use after Free touched memory that was handed out again: %v", err)
	}
	next.Free()
	if s := p.Stats(); s.Live != 0 || s.Frees != 3 {
		t.Errorf("%d frees of 3 arrays, %d bytes live", s.Frees, s.Live)
	}
}

// drop makes arrays that nothing reaches any more.
//
//go:noinline
func drop(t *testing.T, p *pool.Pool, n, bytes int) {
	for range n {
		made[byte](t, p, bytes)
	}
}

func droppedArrays(t *testing.T, open Maker) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	drop(t, p, 50, 8<<20) // far more than fits
	view := made[byte](t, p, 8<<20).View(8<<20-1, 8<<20)
	collected := func(most int64) { // repeats the step, because one step may return before all dead memory is freed
		for end := time.Now().Add(time.Minute); p.Stats().Live > most; p.Reclaim(pool.StepCollect) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes stay live", p.Stats().Live)
			}
		}
	}
	collected(16<<20 - 1)
	if s := p.Stats(); s.Live < 8<<20 || s.ReservedPeak > hard || s.Failures != 0 {
		t.Errorf("a view does not keep its base: %+v", s)
	}
	ok(t, view.Fill(3))
	runtime.KeepAlive(view)
	collected(0)
}
