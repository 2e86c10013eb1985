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
	a, err := FromSlice(p, from, stream)
	defer a.Free() // also when the loop's body panics
	return yield(a, err)
}

// A Pair is two arrays that belong together, such as a batch's inputs and labels.
type Pair[A, B any] struct {
	First  Array[A]
	Second Array[B]
}

// Free gives both back.
func (x Pair[A, B]) Free() {
	x.First.Free()
	x.Second.Free()
}

// PairOf returns copies of two slices in p, or the error of either and nothing.
func PairOf[A, B any](p *Pool, first []A, second []B, stream uint32) (x Pair[A, B], err error) {
	if x.First, err = FromSlice(p, first, stream); err != nil {
		return Pair[A, B]{}, err
	}
	if x.Second, err = FromSlice(p, second, stream); err != nil {
		x.First.Free()
		return Pair[A, B]{}, err
	}
	return x, nil
}

// Batches2 is [Batches] for two slices that belong together, such as inputs and
// labels. Both arrays of a pair are there, or the error of either.
//
//	for batch, err := range pool.Batches2(p, 0, pool.Zip(slices.Chunk(inputs, 256*8), slices.Chunk(labels, 256))) {
func Batches2[A, B any](p *Pool, stream uint32, source iter.Seq2[[]A, []B]) iter.Seq2[Pair[A, B], error] {
	return func(yield func(Pair[A, B], error) bool) {
		for first, second := range source {
			x, err := PairOf(p, first, second, stream)
			more := func() bool {
				defer x.Free()
				return yield(x, err)
			}()
			if !more {
				return
			}
		}
	}
}

// Zip yields the elements of two sequences side by side, until either ends.
func Zip[A, B any](first iter.Seq[A], second iter.Seq[B]) iter.Seq2[A, B] {
	return func(yield func(A, B) bool) {
		next, stop := iter.Pull(second)
		defer stop()
		for a := range first {
			b, ok := next()
			if !ok || !yield(a, b) {
				return
			}
		}
	}
}
