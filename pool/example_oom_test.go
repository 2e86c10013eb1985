package pool_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

const layers = 16

// weight is that of a layer, which multiplies by it. The gradient needs the activations before each layer.
func weight(l int) float32 { return 1 + float32(l)/100 }

// run returns the activations before each of some layers and after the last.
func run(p *pool.Pool, x array.Array[float32], from, to int) (acts []array.Array[float32], err error) {
	acts = append(acts, x)
	for l := from; l < to; l++ {
		values, err := x.ToSlice()
		if err != nil {
			return nil, err
		}
		for i := range values {
			values[i] *= weight(l)
		}
		if x, err = array.From(p, values); err != nil {
			return nil, err
		}
		acts = append(acts, x)
	}
	return acts, nil
}

// train returns the gradient of a batch, so many parts of it at a time. It keeps the activations before
// every so many layers, and runs the layers between them a second time.
func train(p *pool.Pool, batch []float32, every, parts int) (grad [layers]float64, err error) {
	for part := range parts {
		x, err := array.From(p, batch[part*len(batch)/parts:(part+1)*len(batch)/parts])
		if err != nil {
			return grad, err
		}
		kept := []array.Array[float32]{x}
		for l := every; l < layers; l += every {
			acts, err := run(p, kept[len(kept)-1], l-every, l)
			if err != nil {
				return grad, err
			}
			kept = append(kept, acts[every])
		}
		var acts []array.Array[float32]
		g := 1.0
		for l := layers - 1; l >= 0; l-- {
			if k := l / every; l%every == every-1 {
				if acts, err = run(p, kept[k], k*every, l+1); err != nil {
					return grad, err
				}
				kept = kept[:k]
			}
			for _, v := range acts[l%every].All() {
				grad[l] += float64(v) * g
			}
			g *= float64(weight(l))
		}
	}
	return grad, nil
}

// A step that runs out of memory under its limit, and the same step with the two
// remedies that OUTOFMEMORY.md names for activations.
func Example_outOfMemory() {
	p, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 24 << 20}}})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	batch := make([]float32, 1<<20) // 4 MiB, and as much after each layer
	for i := range batch {
		batch[i] = float32(i % 7)
	}
	if _, err := train(p, batch, layers, 1); errors.Is(err, pool.ErrOutOfMemory) {
		fmt.Println("plain: out of memory")
	}
	if _, err := train(p, batch, 4, 1); errors.Is(err, pool.ErrOutOfMemory) {
		fmt.Println("recomputed: out of memory")
	}
	grad, err := train(p, batch, 4, 8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("recomputed, an eighth at a time: done")
	if err := p.SetLimits(pressure.Limits{}); err != nil {
		log.Fatal(err)
	}
	want, err := train(p, batch, layers, 1)
	fmt.Printf("without a limit: the same gradient to %.0e, %v\n", grad[0]/want[0]-1, err)
	// Output:
	// plain: out of memory
	// recomputed: out of memory
	// recomputed, an eighth at a time: done
	// without a limit: the same gradient to 0e+00, <nil>
}
