package cuda

import (
	"iter"

	"github.com/eagergc/eagergc/pool"
)

// A Pipeline brings batches to a device ahead of the loop that uses them, through
// pinned memory and on streams of its own. The zero Depth means 1.
type Pipeline struct {
	Device *Device
	Memory *pool.Pool // of the device, for the batches
	Pinned *pool.Pool // of pinned memory, for the way
	Depth  int        // number of batches that are on their way or ready while the loop works on one
}

// Batches uploads batches to p's memory, one ahead of the loop: see [Feed].
func Batches[T any](p, pinned *pool.Pool, d *Device, source iter.Seq[[]T]) iter.Seq2[pool.Array[T], error] {
	return Feed(Pipeline{Device: d, Memory: p, Pinned: pinned}, source)
}

// Feed uploads batches, Depth ahead of the loop: while the loop works on one
// batch, the next ones are copied through pinned memory. Each batch is freed when
// the loop moves on or ends, so Depth + 1 of them are in memory at a time, whatever
// the collector does. Use a batch through [With]. An error belongs to one batch:
// the loop may stop there or go on with the next. The source may reuse its slice.
func Feed[T any](pl Pipeline, source iter.Seq[[]T]) iter.Seq2[pool.Array[T], error] {
	return onStream(pl.Device, func(s *Stream) iter.Seq2[pool.Array[T], error] {
		return ahead(pl.Depth, pool.Array[T].Free, func(yield func(pool.Array[T], error) bool) {
			for from := range source {
				if !yield(uploading(pl, s, from)) {
					return
				}
			}
		})
	})
}

// Feed2 is [Feed] for two slices that belong together, such as inputs and labels:
// see [pool.Zip]. Both arrays of a pair are there, or the error of either.
func Feed2[A, B any](pl Pipeline, source iter.Seq2[[]A, []B]) iter.Seq2[pool.Pair[A, B], error] {
	return onStream(pl.Device, func(s *Stream) iter.Seq2[pool.Pair[A, B], error] {
		return ahead(pl.Depth, pool.Pair[A, B].Free, func(yield func(pool.Pair[A, B], error) bool) {
			for first, second := range source {
				var x pool.Pair[A, B]
				var err error
				if x.First, err = uploading(pl, s, first); err == nil {
					x.Second, err = uploading(pl, s, second)
				}
				if err != nil {
					x.Free()
					x = pool.Pair[A, B]{}
				}
				if !yield(x, err) {
					return
				}
			}
		})
	})
}

// Map uploads batches, has compute work on them, and yields the results on the
// host, in order. Upload, computation and download run on three streams, so that
// they work on different batches at the same time: Depth + 1 batches are under way.
// Compute queues its work on the stream that it is given, and returns the result,
// which Map frees. A yielded slice is the loop's. An error belongs to one batch, as
// for [Feed].
func Map[T, U any](pl Pipeline, source iter.Seq[[]T], compute func(pool.Array[T], *Stream) (pool.Array[U], error)) iter.Seq2[[]U, error] {
	return func(yield func([]U, error) bool) {
		var streams [3]*Stream
		for k := range streams {
			s, err := pl.Device.NewStream()
			if err != nil {
				yield(nil, err)
				return
			}
			defer s.Close()
			streams[k] = s
		}
		started := ahead(pl.Depth, result[U].free, func(yield func(result[U], error) bool) {
			for from := range source {
				if !yield(queued(pl, streams, from, compute)) {
					return
				}
			}
		})
		for r, err := range started {
			var out []U
			if err == nil {
				out, err = r.wait()
			}
			if !yield(out, err) {
				return
			}
		}
	}
}

// A result is on its way to the host.
type result[U any] struct {
	stage pool.Array[U] // pinned
	ready *Event        // behind the copy to it
}

// queued queues the upload, the computation and the download of a batch.
func queued[T, U any](pl Pipeline, streams [3]*Stream, from []T, compute func(pool.Array[T], *Stream) (pool.Array[U], error)) (r result[U], err error) {
	in, err := uploading(pl, streams[0], from)
	defer in.Free()
	if err != nil {
		return r, err
	}
	out, err := compute(in, streams[1])
	defer out.Free()
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			r.free()
			r = result[U]{}
		}
	}()
	if r.stage, err = pool.NewArray[U](pl.Pinned, out.Len(), 0); err != nil {
		return r, err
	}
	if err = CopyTo(r.stage, out, streams[2]); err != nil {
		return r, err
	}
	if r.ready, err = pl.Device.NewEvent(false); err != nil {
		return r, err
	}
	return r, r.ready.Record(streams[2])
}

// wait returns a copy of the result when it has arrived.
func (r result[U]) wait() (out []U, err error) {
	if err := r.ready.Synchronize(); err != nil {
		return nil, err
	}
	out = make([]U, r.stage.Len())
	return out, r.stage.Reach(func(m pool.Memory) error { // not Do, which waits for the later results, too
		copy(out, elementsAt[U](m.Addr, len(out)))
		return nil
	})
}

func (r result[U]) free() {
	r.stage.Free()
	if r.ready != nil {
		_ = r.ready.Close() // there is nothing to be done
	}
}

// onStream returns what f makes of a new stream, which is closed when the loop
// ends.
func onStream[E any](d *Device, f func(*Stream) iter.Seq2[E, error]) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		s, err := d.NewStream()
		if err != nil {
			var none E
			yield(none, err)
			return
		}
		defer s.Close()
		f(s)(yield)
	}
}

// ahead yields what started yields, as many behind it as depth says, and frees each
// when the loop moves on or ends, also when its body panics.
func ahead[E any](depth int, free func(E), started iter.Seq2[E, error]) iter.Seq2[E, error] {
	type item struct {
		e   E
		err error
	}
	return func(yield func(E, error) bool) {
		var queue []item
		defer func() {
			for _, x := range queue {
				free(x.e)
			}
		}()
		first := func() bool {
			x := queue[0]
			queue = queue[1:]
			defer free(x.e)
			return yield(x.e, x.err)
		}
		for e, err := range started {
			if queue = append(queue, item{e, err}); len(queue) > max(depth, 1) && !first() {
				return
			}
		}
		for len(queue) > 0 && first() {
		}
	}
}

// uploading queues the upload of a batch. It does not wait for the copy.
func uploading[T any](pl Pipeline, s *Stream, from []T) (a pool.Array[T], err error) {
	stage, err := pool.FromSlice(pl.Pinned, from, 0)
	defer stage.Free() // used again once the copy has ended
	if err != nil {
		return a, err
	}
	if a, err = pool.NewArray[T](pl.Memory, len(from), s.ID()); err != nil {
		return a, err
	}
	if err = CopyTo(a, stage, s); err != nil {
		a.Free()
		return pool.Array[T]{}, err
	}
	return a, nil
}
