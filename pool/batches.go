package pool

import "iter"

// Batches copies one slice after the other to an array of p and yields the array,
// or the error of that. Each array is freed when the loop moves on or ends. So one
// batch is in memory at a time, whatever the collector does. A loop that wants to
// keep a batch copies it. After an error the loop may go on with the next batch.
//
//	for batch, err := range pool.Batches(p, 0, slices.Chunk(samples, 256)) {
func Batches[T any](p *Pool, stream uint32, source iter.Seq[[]T]) iter.Seq2[Array[T], error] {
	return func(yield func(Array[T], error) bool) {
		for from := range source {
			if !oneBatch(p, stream, from, yield) {
				return
			}
		}
	}
}

func oneBatch[T any](p *Pool, stream uint32, from []T, yield func(Array[T], error) bool) bool {
	a, err := NewArray[T](p, len(from), stream)
	defer a.Free() // also when the loop's body panics
	if err == nil {
		err = a.CopyIn(from)
	}
	return yield(a, err)
}
