package pool_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pool"
)

// Inputs and labels come in pairs, one pair is in memory at a time, and an error of
// one batch does not lose the next.
func TestBatches2(t *testing.T) {
	p := open(t, pool.Config{Limits: hard(8 * mib)})
	inputs, labels := make([]float32, 100), make([]int64, 50)
	for i := range inputs {
		inputs[i] = float32(i)
	}
	for i := range labels {
		labels[i] = int64(i)
	}
	seen := 0
	for batch, err := range pool.Batches2(p, 0, pool.Zip(slices.Chunk(inputs, 20), slices.Chunk(labels, 10))) {
		if err != nil {
			t.Fatal(err)
		}
		x, _ := batch.First.ToSlice()
		y, _ := batch.Second.ToSlice()
		if len(x) != 20 || len(y) != 10 || x[0] != float32(20*seen) || y[0] != int64(10*seen) {
			t.Errorf("batch %d: %v %v", seen, x, y)
		}
		if live := p.Sample().Live; live > 4096 {
			t.Errorf("%d bytes are live", live)
		}
		seen++
	}
	if seen != 5 {
		t.Errorf("%d batches", seen)
	}
	sizes := [][]byte{make([]byte, 10), make([]byte, 9*mib), make([]byte, 20)}
	var errs []error
	for batch, err := range pool.Batches2(p, 0, pool.Zip(slices.Values(sizes), slices.Values(sizes))) {
		errs = append(errs, err)
		if err == nil && batch.First.Len() != batch.Second.Len() {
			t.Error("a torn pair")
		}
	}
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], pool.ErrOutOfMemory) || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	func() {
		defer func() { recover() }()
		for range pool.Batches2(p, 0, pool.Zip(slices.Chunk(inputs, 20), slices.Chunk(labels, 10))) {
			panic("the loop's body")
		}
	}()
	for range pool.Batches2(p, 0, pool.Zip(slices.Chunk(inputs, 20), slices.Chunk(labels, 10))) {
		break
	}
	if live := p.Sample().Live; live != 0 {
		t.Errorf("%d bytes are left", live)
	}
}
