package cuda

import (
	"iter"

	"github.com/eagergc/eagergc/pool"
)

// Batches uploads batches to p's memory, one ahead of the loop. While the loop
// works on one batch, the next is copied through pinned memory on a stream of its
// own. Each batch is freed when the loop moves on or ends. So two are in memory at
// a time, whatever the collector does. Use a batch through [With]. After an error
// the loop may go on with the next batch. The source may reuse its slice.
func Batches[T any](p, pinned *pool.Pool, d *Device, source iter.Seq[[]T]) iter.Seq2[pool.Array[T], error] {
	return func(yield func(pool.Array[T], error) bool) {
		s, err := d.NewStream()
		if err != nil {
			yield(pool.Array[T]{}, err)
			return
		}
		defer s.Close()
		var ready pending[T]
		defer func() { ready.Free() }() // also when the loop's body panics
		for from := range source {
			next := uploading(p, pinned, s, from)
			if ready.set && !yield(ready.Array, ready.err) {
				next.Free()
				return
			}
			ready.Free()
			ready = next
		}
		if ready.set {
			yield(ready.Array, ready.err)
		}
	}
}

// A pending batch is on its way.
type pending[T any] struct {
	pool.Array[T]
	err error
	set bool
}

// uploading queues the upload of a batch. It does not wait for the copy.
func uploading[T any](p, pinned *pool.Pool, s *Stream, from []T) pending[T] {
	stage, err := pool.NewArray[T](pinned, len(from), 0)
	defer stage.Free() // reused once the copy has ended
	if err == nil {
		err = stage.CopyIn(from)
	}
	if err != nil {
		return pending[T]{err: err, set: true}
	}
	a, err := pool.NewArray[T](p, len(from), s.ID())
	if err == nil {
		err = CopyTo(a, stage, s)
	}
	return pending[T]{a, err, true}
}
