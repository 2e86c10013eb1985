package array_test

import (
	"fmt"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

// One op is a new array and its Free, beside kept arrays that stay.
func BenchmarkArray(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("kept=%d", n), func(b *testing.B) {
			p := open(b, pool.Config{})
			kept := make([]array.Array[float32], n)
			for i := range kept {
				kept[i], _ = array.New[float32](p, 100)
			}
			b.ReportAllocs()
			for b.Loop() {
				a, _ := array.New[float32](p, 1000)
				a.Free()
			}
			for _, a := range kept {
				a.Free()
			}
		})
	}
}
