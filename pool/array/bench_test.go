package array_test

import (
	"fmt"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
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

// What an element costs, in the processor's own memory and in memory that it shares with a device.
func BenchmarkAt(b *testing.B) {
	for name, cfg := range map[string]pool.Config{"host": {}, "managed": {Upstream: new(far), Space: pressure.Managed}} {
		a := from(b, open(b, cfg), make([]float32, 1000)...)
		b.Run("memory="+name+"/via=At", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				a.At(i % 1000)
			}
		})
		b.Run("memory="+name+"/via=Do", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				a.Do(func(s []float32) error { _ = s[i%1000]; return nil })
			}
		})
	}
}
