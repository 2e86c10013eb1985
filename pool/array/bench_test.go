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

// What an element costs: the processor's own memory, and memory that it shares
// with a device.
func BenchmarkAt(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  pool.Config
	}{{"host", pool.Config{}}, {"managed", pool.Config{Upstream: new(counting), Space: pressure.Managed}}} {
		p := open(b, c.cfg)
		a, err := array.Zeros[float32](p, 1000)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("memory="+c.name+"/via=At", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := a.At(i % 1000); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("memory="+c.name+"/via=Do", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := a.Do(func(s []float32) error { _ = s[i%1000]; return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("memory="+c.name+"/via=Do/elements=1000", func(b *testing.B) {
			for b.Loop() {
				if err := a.Do(func(s []float32) error {
					var sum float32
					for _, x := range s {
						sum += x
					}
					_ = sum
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
