package cuda

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

// A staged upload returns while the stream is busy, and arrives behind its work.
func TestStagedUploadsDoNotWait(t *testing.T) {
	d := open(t)
	p, pinned := newPool(t, d.Memory(), d.Space(), false), newPool(t, d.Pinned(), pressure.Pinned, false)
	d.stageThrough(pinned)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	want := pattern(1_000_000)
	a := must[array.Array[uint32]](t)(array.From(p, want, array.On(s.ID()))) // loads what is loaded at first use
	busy := 150 * time.Millisecond
	took, live := busy, pool.Stats{}
	for took > busy/2 && busy < 20*time.Second { // a busy machine may copy for as long
		busy *= 2
		ok(t, s.Synchronize())
		begin := time.Now()
		ok(t, w.Spin(s, busy))
		ok(t, a.CopyIn(want))
		live = pinned.Stats()
		took = time.Since(begin)
	}
	if took > busy/2 {
		t.Errorf("the upload took %v beside work of %v", took, busy)
	} else if live.Waiting == 0 {
		t.Errorf("nothing of the pinned pool waits for the copy: %+v", live)
	}
	got := must[[]uint32](t)(a.ToSlice())
	if !slices.Equal(got, want) {
		t.Error("other elements arrived")
	}
	a.Free()
	ok(t, w.Close())
}

func TestRegister(t *testing.T) {
	d := open(t)
	p := newPool(t, d.Memory(), d.Space(), false)
	s := must[*Stream](t)(d.NewStream())
	from, to := pattern(1_000_000), make([]uint32, 1_000_000)
	r, back := must[*Registered[uint32]](t)(Register(d, from)), must[*Registered[uint32]](t)(Register(d, to))
	a := must[array.Array[uint32]](t)(array.New[uint32](p, len(from), array.On(s.ID())))
	ok(t, r.Upload(a, s))
	ok(t, back.Download(a, s))
	ok(t, s.Synchronize())
	if !slices.Equal(from, back.Slice()) {
		t.Error("other elements came back")
	}
	if err := r.Upload(a.View(0, 3), s); err == nil {
		t.Error("another length is accepted")
	}
	ok(t, r.Close())
	ok(t, r.Close())
	again := must[*Registered[uint32]](t)(Register(d, from)) // its pages are free again
	if _, err := Register(d, from); err == nil {
		t.Error("pages are locked twice")
	}
	ok(t, again.Close())
	if _, err := Register(d, from[:0]); err == nil {
		t.Error("an empty slice is accepted")
	}
	ok(t, back.Close())
	func() { must[*Registered[uint32]](t)(Register(d, to)) }() // dropped
	for end := time.Now().Add(time.Minute); ; {
		runtime.GC()
		if x, err := Register(d, to); err == nil {
			ok(t, x.Close())
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	a.Free()
}

// Managed memory moves to where it is used, by With, and is what was written on
// either side.
func TestManagedMemoryMoves(t *testing.T) {
	d := open(t)
	p := newPool(t, d.Managed(), pressure.Managed, false)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	wrong := must[*HostBuffer](t)(d.NewHostBuffer(8))
	const n = 16 << 20
	a := must[array.Array[uint32]](t)(array.New[uint32](p, n/4, array.On(s.ID())))
	prefetches := func() int64 { return byName(Calls())["cuMemPrefetchAsync"].Calls }
	begun := prefetches()
	for round := range uint32(3) {
		ok(t, With(a, s, func(addr uintptr) error {
			return errors.Join(w.Spin(s, 20*time.Millisecond), w.Stamp(s, addr, n, round))
		}))
		ok(t, With(a.View(0, 10), s, func(uintptr) error { return nil }))
		if moved := prefetches() - begun; moved != int64(round+1) && !several() {
			t.Errorf("round %d: moved %d times so far", round, moved)
		}
		first := must[uint32](t)(a.At(0)) // waits for the kernel
		if z := round * 0x85ebca6b; first != z^z>>13 {
			t.Errorf("round %d: the processor reads %#x", round, first)
		}
		ok(t, a.Set(0, first+1))
		ok(t, a.Set(0, first))
		ok(t, With(a, s, func(addr uintptr) error { return w.Verify(s, addr, n, round, wrong.Addr()) }))
		ok(t, s.Synchronize())
		if wrong.Uint32(0) != 0 {
			t.Fatalf("round %d: %d words differ", round, wrong.Uint32(0))
		}
	}
	// Advice of every kind is taken, and changes no contents.
	advised := byName(Calls())["cuMemAdvise"].Calls
	ok(t, a.Reach(func(m array.Memory) error {
		for _, advice := range []Advice{ReadMostly, PreferLocation} {
			ok(t, d.Advise(m.Addr, m.Bytes, advice, d.Index()))
		}
		if n := byName(Calls())["cuMemAdvise"].Calls - advised; n != 2 {
			t.Errorf("the driver heard %d of 2 pieces of advice", n)
		}
		for _, where := range []int{HostMemory, d.Index()} {
			ok(t, s.Prefetch(m.Addr, m.Bytes, where))
		}
		return nil
	}))
	ok(t, With(a, s, func(addr uintptr) error { return w.Verify(s, addr, n, 2, wrong.Addr()) }))
	ok(t, s.Synchronize())
	if wrong.Uint32(0) != 0 {
		t.Errorf("%d words differ after advice", wrong.Uint32(0))
	}
	a.Free()
	ok(t, wrong.Close())
	ok(t, w.Close())
}

// Batches that are uploaded ahead, on a stream of their own, arrive whole beside the
// work of the loop.
func TestPipeline(t *testing.T) {
	d := open(t)
	p, pinned := newPool(t, d.Memory(), d.Space(), false), newPool(t, d.Pinned(), pressure.Pinned, false)
	d.stageThrough(pinned)
	defer d.stageThrough(nil)
	uploads := must[*Stream](t)(d.NewStream())
	type batch[V any] struct{ Inputs, Labels V }
	data := pattern(1_000_000)
	source := func(yield func(batch[[]uint32]) bool) {
		for part := range slices.Chunk(data, 50_000) {
			if !yield(batch[[]uint32]{part, part[:1000]}) {
				return
			}
		}
	}
	for _, depth := range []int{1, 4} {
		seen := 0
		for b, err := range array.Ahead[batch[array.Array[uint32]]](p, depth, source, array.On(uploads.ID())) {
			ok(t, err)
			x, y := must[[]uint32](t)(b.Inputs.ToSlice()), must[[]uint32](t)(b.Labels.ToSlice())
			if want := data[seen : seen+50_000]; !slices.Equal(x, want) || !slices.Equal(y, want[:1000]) {
				t.Fatalf("depth %d: other elements at %d", depth, seen)
			}
			seen += 50_000
		}
		if seen != len(data) {
			t.Errorf("depth %d: %d of %d elements", depth, seen, len(data))
		}
	}
	ok(t, uploads.Close())
}
