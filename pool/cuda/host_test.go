package cuda

import (
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
	d.StageThrough(pinned)
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
