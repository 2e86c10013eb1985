package main

import "math"

// Constants of Adam, as its paper and Flux have them.
const (
	learningRate = 1e-3
	beta1        = 0.9
	beta2        = 0.999
	epsilon      = 1e-8
)

// A shape says how large the model and its data are.
type shape struct{ observations, features, batch int }

func (s shape) batches() int { return (s.observations + s.batch - 1) / s.batch }

// The data and the first weights are numbers of one series: observations, then
// targets, then weights.
func (s shape) firstTarget() uint64 { return uint64(s.observations * s.features) }
func (s shape) firstWeight() uint64 { return s.firstTarget() + uint64(s.observations) }

// weightRange is Glorot's uniform range for a layer from features to 1.
func (s shape) weightRange() float32 { return float32(math.Sqrt(6 / float64(s.features+1))) }

// A param is a parameter with its two Adam moments. Each step replaces all
// three by new arrays.
type param struct{ value, m, v tensor }

// adam takes one step along the gradient g; t counts steps from 1.
func (p *param) adam(l *library, g tensor, t int) {
	c1, c2 := 1-math.Pow(beta1, float64(t)), 1-math.Pow(beta2, float64(t))
	p.m = l.axpby(beta1, p.m, 1-beta1, g)
	p.v = l.axpby(beta2, p.v, 1-beta2, l.each(&multiply, []tensor{g, g}))
	mhat := l.axpby(float32(1/c1), p.m, 0, p.m)
	vhat := l.axpby(float32(1/c2), p.v, 0, p.v)
	step := l.each(&divide, []tensor{mhat, l.each(&sqrtPlus, []tensor{vhat}, epsilon)})
	p.value = l.axpby(1, p.value, -learningRate, step)
}

// A model is one dense layer, features -> 1, trained on the mean squared error.
type model struct {
	shape
	lib  *library
	x, y tensor // all data
	w, b param
	t    int
}

func newModel(s shape, l *library) *model {
	m := &model{shape: s, lib: l}
	m.x = l.uniform(s.observations*s.features, 0)
	m.y = l.uniform(s.observations, s.firstTarget())
	zero, one := l.fill(s.features, 0), l.fill(s.features, 1)
	r := s.weightRange()
	m.w.value = l.axpby(2*r, l.uniform(s.features, s.firstWeight()), -r, one)
	m.w.m, m.w.v = zero, zero
	m.b = param{l.fill(1, 0), l.fill(1, 0), l.fill(1, 0)}
	return m
}

// epoch trains over all batches and returns the mean loss. Every step waits for
// its loss, as Flux's train! does to check that it is finite.
func (m *model) epoch() (loss float64, err error) {
	for at := 0; at < m.observations; at += m.batch {
		rows := min(m.batch, m.observations-at)
		l, err := m.step(at, rows)
		if err != nil {
			return 0, err
		}
		loss += float64(l) / float64(m.batches())
	}
	return loss, nil
}

// step trains on the rows from at on. Every operation allocates its result, and
// nothing is freed: that is left to the garbage collector.
func (m *model) step(at, rows int) (loss float32, err error) {
	l := m.lib
	x := l.copyOf(m.x, at*m.features, rows*m.features)
	y := l.copyOf(m.y, at, rows)

	pred := l.each(&addScalar, []tensor{l.matvec(x, m.w.value, rows), m.b.value})
	diff := l.axpby(1, pred, -1, y)
	mse := l.sum(l.each(&multiply, []tensor{diff, diff}), 1/float32(rows))
	if loss, err = l.read(mse); err != nil {
		return 0, err
	}

	g := l.axpby(2/float32(rows), diff, 0, diff)
	m.t++
	m.w.adam(l, l.tmatvec(x, g, rows), m.t)
	m.b.adam(l, l.sum(g, 1), m.t)
	return loss, l.err
}
