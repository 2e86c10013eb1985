// Roaring answers queries over sets of integers of CRoaring. The finalizers of gocroaring free
// them.
package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/RoaringBitmap/gocroaring"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const members = 200_000 // of a set

func main() {
	frame.Main("roaring", frame.Client{Workers: 2, Requests: 300, Start: start})
}

// start makes the sets that all queries read.
func start(w *frame.Way) (frame.Service, error) {
	random := rand.New(rand.NewPCG(1, 2))
	var sets []*gocroaring.Bitmap
	for range 8 {
		all := make([]uint32, members)
		for i := range all {
			all[i] = random.Uint32N(1 << 26)
		}
		sets = append(sets, gocroaring.New(all...))
	}
	return func(i int) error {
		a, b, c := sets[i%8], sets[(i+1)%8], sets[(i+3)%8]
		either := gocroaring.Or(a, b)
		defer hold(w, either)()
		only := gocroaring.AndNot(either, c)
		defer hold(w, only)()
		copied := only.Clone()
		defer hold(w, copied)()
		copied.AddRange(0, uint64(i%100)<<10)
		if copied.Cardinality() < members {
			return fmt.Errorf("query %d has %d members", i, copied.Cardinality())
		}
		return nil
	}, nil
}

func hold(w *frame.Way, set *gocroaring.Bitmap) (done func()) {
	return frame.Hold(w, set, int64(set.SerializedSizeInBytes()), set.Free)
}
