// Numbers multiplies large integers of GMP. The finalizers of the binding free them.
package main

import (
	"fmt"

	"github.com/ncw/gmp"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const digits = 1 << 20 // of a factor, in bits

func main() {
	frame.Main("numbers", frame.Client{Workers: 2, Requests: 600, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	one := gmp.NewInt(1)
	return func(i int) error {
		number := func() *gmp.Int { return new(gmp.Int) }
		a := number().Lsh(one, digits+uint(i%64))
		defer frame.Hold(w, a, digits/8, a.Clear)()
		b := number().Sub(a, one)
		defer frame.Hold(w, b, digits/8, b.Clear)()
		product := number().Mul(a, b)
		defer frame.Hold(w, product, digits/4, product.Clear)()
		sum := number().Add(product, a)
		defer frame.Hold(w, sum, digits/4, sum.Clear)()
		if got, want := sum.BitLen(), 2*(digits+i%64)+1; got != want {
			return fmt.Errorf("a number of %d bits, want %d", got, want)
		}
		return nil
	}, nil
}
