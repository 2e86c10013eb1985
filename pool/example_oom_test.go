package pool_test

import (
	"errors"
	"fmt"
	"log"
	"math"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

const (
	layers = 16
	every  = 4 // recompute: keep the activations before every 4th layer
)

// chain is a network of layers that multiply by one weight each. Its gradient needs
// the activations before each layer.
type chain struct {
	p       *pool.Pool
	weights [layers]float32
}

// forward returns the activations after layer l.
func (c *chain) forward(l int, x array.Array[float32]) (array.Array[float32], error) {
	y, err := array.New[float32](c.p, x.Len())
	if err != nil {
		return y, err
	}
	return y, x.Do(func(in []float32) error {
		return y.Do(func(out []float32) error {
			for i, v := range in {
				out[i] = v * c.weights[l]
			}
			return nil
		})
	})
}

// run returns the activations before each layer from the given one up to the next
// border.
func (c *chain) run(x array.Array[float32], from, to int) (acts []array.Array[float32], err error) {
	acts = append(acts, x)
	for l := from; l < to; l++ {
		if x, err = c.forward(l, x); err != nil {
			return nil, err
		}
		acts = append(acts, x)
	}
	return acts, nil
}

// backward adds to grad what layers from..to have, given the activations before
// them and the gradient g behind them, and returns the gradient before them.
func (c *chain) backward(grad *[layers]float64, acts []array.Array[float32], from, to int, g float64) (float64, error) {
	for l := to - 1; l >= from; l-- {
		err := acts[l-from].Do(func(x []float32) error {
			for _, v := range x {
				grad[l] += float64(v) * g
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		g *= float64(c.weights[l])
	}
	return g, nil
}

// plain keeps all activations of the whole batch.
func (c *chain) plain(grad *[layers]float64, batch []float32) error {
	x, err := array.From(c.p, batch)
	if err != nil {
		return err
	}
	acts, err := c.run(x, 0, layers)
	if err != nil {
		return err
	}
	_, err = c.backward(grad, acts, 0, layers, 1)
	return err
}

// recomputed keeps the activations before every 4th layer, and runs the layers
// between them a second time.
func (c *chain) recomputed(grad *[layers]float64, batch []float32) error {
	x, err := array.From(c.p, batch)
	if err != nil {
		return err
	}
	var borders []array.Array[float32]
	for l := 0; l < layers; l += every {
		borders = append(borders, x)
		acts, err := c.run(x, l, l+every)
		if err != nil {
			return err
		}
		x = acts[every]
	}
	g := 1.0
	for k := len(borders) - 1; k >= 0; k-- {
		acts, err := c.run(borders[k], k*every, (k+1)*every)
		if err != nil {
			return err
		}
		if g, err = c.backward(grad, acts, k*every, (k+1)*every, g); err != nil {
			return err
		}
		borders = borders[:k]
	}
	return nil
}

// accumulated works on an eighth of the batch at a time, and adds the gradients up.
func (c *chain) accumulated(grad *[layers]float64, batch []float32) error {
	const parts = 8
	for k := range parts {
		if err := c.recomputed(grad, batch[k*len(batch)/parts:(k+1)*len(batch)/parts]); err != nil {
			return err
		}
	}
	return nil
}

// A step that runs out of memory under its limit, and the same step with the two
// remedies that OUTOFMEMORY.md names for activations.
func Example_outOfMemory() {
	p, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 24 << 20}}})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	c := &chain{p: p}
	for l := range c.weights {
		c.weights[l] = 1 + float32(l)/100
	}
	batch := make([]float32, 1<<20) // 4 MiB, and as much after each layer
	for i := range batch {
		batch[i] = float32(i%7) - 3
	}

	var grad [layers]float64
	if err := c.plain(&grad, batch); errors.Is(err, pool.ErrOutOfMemory) {
		fmt.Println("plain: out of memory")
	}
	grad = [layers]float64{}
	if err := c.recomputed(&grad, batch); errors.Is(err, pool.ErrOutOfMemory) {
		fmt.Println("recomputed: out of memory")
	}
	grad = [layers]float64{}
	if err := c.accumulated(&grad, batch); err != nil {
		log.Fatal(err)
	}
	fmt.Println("recomputed and accumulated: done")

	// The same gradient without a limit.
	if err := p.SetLimits(pressure.Limits{}); err != nil {
		log.Fatal(err)
	}
	var want [layers]float64
	if err := c.plain(&want, batch); err != nil {
		log.Fatal(err)
	}
	for l := range want {
		if math.Abs(grad[l]-want[l]) > 1e-6*math.Abs(want[l]) {
			fmt.Println("another gradient:", grad[l], want[l])
		}
	}

	// Output:
	// plain: out of memory
	// recomputed: out of memory
	// recomputed and accumulated: done
}

// A loop that leaves nothing to collect: a scope frees the temporaries of a step, a
// workspace keeps what every step needs.
func Example_scopeAndWorkspace() {
	p, err := pool.New(pool.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	scope := &array.Scope{Max: 64 << 20}
	workspace := array.NewWorkspace[float32](p)
	defer workspace.Close()

	m, err := p.Measure(func() error {
		for step := range 100 {
			squares, err := array.New[float32](p, 1000)
			if err != nil {
				return err
			}
			array.Hold(scope, squares)
			err = workspace.Use(1000+step, func(scratch array.Array[float32]) error {
				if err := scratch.Fill(float32(step)); err != nil {
					return err
				}
				return squares.CopyFrom(scratch.View(0, 1000))
			})
			if err != nil {
				return err
			}
			scope.End()
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Cycles, "cycles; reserved", pressure.Bytes(p.Stats().Reserved))

	// Output:
	// 0 cycles; reserved 2.00 MiB
}
