package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

// A Sample is a program to be recorded: it trains a network of two layers to
// add up its inputs, on a device that is a goroutine. Every operation puts its
// result into a new array and forgets it; nothing is freed by hand. The zero
// value is usable.
type Sample struct {
	Steps int // 0: 100
	Batch int // rows per step; 0: 256
	Width int // hidden units; 0: 128
}

const (
	sampleInputs = 64
	sampleRate   = 0.5
)

// Run trains with arrays of p and returns the loss of the first and of the last
// step, each the mean squared error. It is deterministic.
func (s Sample) Run(ctx context.Context, p *pool.Pool) (first, last float32, err error) {
	s.Steps, s.Batch, s.Width = or(s.Steps, 100), or(s.Batch, 256), or(s.Width, 128)
	d := newDevice(p)
	defer d.close()
	rng := rand.New(rand.NewPCG(1, 2))
	w1 := d.random(rng, sampleInputs, s.Width)
	w2 := d.random(rng, s.Width, 1)
	step := &gc.WaitPlace{Name: "step"}
	for i := range s.Steps {
		if ctx.Err() != nil {
			return first, last, context.Cause(ctx)
		}
		x := d.random(rng, s.Batch, sampleInputs)
		y := d.rowSums(x)
		h := d.relu(d.multiply(x, w1))
		e := d.subtract(d.multiply(h, w2), y, 1) // the error of each row
		g := d.scale(e, 2/float32(s.Batch))
		w2, w1 = d.subtract(w2, d.multiply(h.transposed(), g), sampleRate),
			d.subtract(w1, d.multiply(x.transposed(), d.mask(d.multiply(g, w2.transposed()), h)), sampleRate)
		if err := p.Sync(step, d.wait); err != nil {
			return first, last, fmt.Errorf("live: sample: step %d: %w", i, err)
		}
		if last, err = e.meanSquare(); err != nil {
			return first, last, fmt.Errorf("live: sample: step %d: %w", i, err)
		}
		if i == 0 {
			first = last
		}
	}
	return first, last, nil
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// A matrix is an array with a shape. Element i, j is at i*di + j*dj.
type matrix struct {
	data       array.Array[float32]
	rows, cols int
	di, dj     int
}

func (m matrix) transposed() matrix {
	return matrix{m.data, m.cols, m.rows, m.dj, m.di}
}

func (m matrix) meanSquare() (float32, error) {
	var sum float32
	err := m.data.Do(func(v []float32) error {
		for _, x := range v {
			sum += x * x
		}
		return nil
	})
	return sum / float32(m.data.Len()), err
}

// A device runs launched work in order, beside the program. After an error
// it runs nothing more.
type device struct {
	pool    *pool.Pool
	work    chan func() error
	pending sync.WaitGroup
	gone    sync.WaitGroup
	err     error // of the goroutine's; read it after pending
	failed  error // of the program's: an allocation
}

func newDevice(p *pool.Pool) *device {
	d := &device{pool: p, work: make(chan func() error, 64)}
	d.gone.Go(func() {
		for f := range d.work {
			if d.err == nil {
				d.err = f()
			}
			d.pending.Done()
		}
	})
	return d
}

func (d *device) close() {
	close(d.work)
	d.gone.Wait()
}

// wait blocks until all that was launched is done.
func (d *device) wait() error {
	d.pending.Wait()
	if d.failed != nil {
		return d.failed
	}
	return d.err
}

// launch makes a matrix that kernel fills, later; in are the matrices that it
// reads.
func (d *device) launch(rows, cols int, kernel func(out []float32, in [][]float32), in ...matrix) matrix {
	m := matrix{rows: rows, cols: cols, di: cols, dj: 1}
	if d.failed != nil {
		return m
	}
	if m.data, d.failed = array.New[float32](d.pool, rows*cols); d.failed != nil {
		return m
	}
	d.pending.Add(1)
	d.work <- func() error {
		return m.data.Do(func(out []float32) error { return open(in, nil, func(in [][]float32) { kernel(out, in) }) })
	}
	return m
}

// open calls f with the elements of all matrices.
func open(ms []matrix, opened [][]float32, f func([][]float32)) error {
	if len(ms) == 0 {
		f(opened)
		return nil
	}
	return ms[0].data.Do(func(v []float32) error { return open(ms[1:], append(opened, v), f) })
}

func (d *device) random(rng *rand.Rand, rows, cols int) matrix {
	seed := rng.Uint64()
	return d.launch(rows, cols, func(out []float32, _ [][]float32) {
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range out {
			out[i] = (r.Float32() - 0.5) / 4
		}
	})
}

func (d *device) multiply(a, b matrix) matrix {
	return d.launch(a.rows, b.cols, func(out []float32, in [][]float32) {
		for i := range a.rows {
			for j := range b.cols {
				var sum float32
				for k := range a.cols {
					sum += in[0][i*a.di+k*a.dj] * in[1][k*b.di+j*b.dj]
				}
				out[i*b.cols+j] = sum
			}
		}
	}, a, b)
}

// each makes a matrix of a's shape, element by element.
func (d *device) each(f func(x, y float32) float32, a, b matrix) matrix {
	return d.launch(a.rows, a.cols, func(out []float32, in [][]float32) {
		for i := range out {
			out[i] = f(in[0][i], in[1][i])
		}
	}, a, b)
}

// subtract returns a - rate*b.
func (d *device) subtract(a, b matrix, rate float32) matrix {
	return d.each(func(x, y float32) float32 { return x - rate*y }, a, b)
}

func (d *device) scale(a matrix, by float32) matrix {
	return d.each(func(x, _ float32) float32 { return x * by }, a, a)
}

func (d *device) relu(a matrix) matrix {
	return d.each(func(x, _ float32) float32 { return max(x, 0) }, a, a)
}

// mask keeps the elements of a where those of b are positive.
func (d *device) mask(a, b matrix) matrix {
	return d.each(func(x, y float32) float32 {
		if y > 0 {
			return x
		}
		return 0
	}, a, b)
}

func (d *device) rowSums(a matrix) matrix {
	return d.launch(a.rows, 1, func(out []float32, in [][]float32) {
		for i := range out {
			out[i] = 0 // arrays are as their last user left them
			for _, x := range in[0][i*a.cols : (i+1)*a.cols] {
				out[i] += x
			}
		}
	}, a)
}
