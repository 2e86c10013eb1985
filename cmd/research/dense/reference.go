package main

import (
	"math"
	"runtime"
	"sync"
)

// uniform is the number in [0, 1) that belongs to index i: splitmix64's mixer,
// as in kernels.cu.
func uniform(i uint64) float32 {
	z := (i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float32(z>>40) * (1.0 / (1 << 24))
}

// parallel calls f for consecutive ranges that cover [0, n), one per core.
func parallel(n int, f func(from, to int)) {
	cores := runtime.GOMAXPROCS(0)
	each := (n + cores - 1) / cores
	var wg sync.WaitGroup
	for from := 0; from < n; from += each {
		wg.Go(func() { f(from, min(from+each, n)) })
	}
	wg.Wait()
}

// reference trains the model in float64 on the CPU and returns the mean loss of
// each epoch.
func reference(s shape, epochs int) []float64 {
	w, b := make([]float64, s.features), 0.0
	for k := range w {
		w[k] = float64(uniform(s.firstWeight()+uint64(k))*2-1) * float64(s.weightRange())
	}
	adamW, adamB := newAdam64(s.features), newAdam64(1)
	x := make([]float32, s.batch*s.features)
	g, dw := make([]float64, s.batch), make([]float64, s.features)
	losses := make([]float64, epochs)
	for e := range losses {
		for at := 0; at < s.observations; at += s.batch {
			rows := min(s.batch, s.observations-at)
			parallel(rows, func(from, to int) {
				for i := from; i < to; i++ {
					row := x[i*s.features : (i+1)*s.features]
					pred := b
					for k := range row {
						row[k] = uniform(uint64((at+i)*s.features + k))
						pred += float64(row[k]) * w[k]
					}
					g[i] = pred - float64(uniform(s.firstTarget()+uint64(at+i)))
				}
			})
			var loss, db float64
			for i := range g[:rows] {
				loss += g[i] * g[i] / float64(rows)
				g[i] *= 2 / float64(rows)
				db += g[i]
			}
			losses[e] += loss / float64(s.batches())
			parallel(s.features, func(from, to int) {
				clear(dw[from:to])
				for i := range rows {
					for k := from; k < to; k++ {
						dw[k] += g[i] * float64(x[i*s.features+k])
					}
				}
			})
			adamW.step(w, dw)
			bias := []float64{b}
			adamB.step(bias, []float64{db})
			b = bias[0]
		}
	}
	return losses
}

// adam64 is Adam with the constants of its paper, as Flux has them.
type adam64 struct {
	m, v []float64
	t    int
}

func newAdam64(n int) *adam64 { return &adam64{m: make([]float64, n), v: make([]float64, n)} }

func (a *adam64) step(w, g []float64) {
	a.t++
	c1, c2 := 1-math.Pow(beta1, float64(a.t)), 1-math.Pow(beta2, float64(a.t))
	for k := range w {
		a.m[k] = beta1*a.m[k] + (1-beta1)*g[k]
		a.v[k] = beta2*a.v[k] + (1-beta2)*g[k]*g[k]
		w[k] -= learningRate * (a.m[k] / c1) / (math.Sqrt(a.v[k]/c2) + epsilon)
	}
}
