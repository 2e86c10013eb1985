package array

import (
	"iter"

	"github.com/eagergc/eagergc/pool"
)

// Batches adapts one value after the other, such as a slice, or a struct of inputs and labels, and
// yields what [Adapt] returns. Its arrays are freed when the loop moves on or ends, whatever the
// collector does. A loop that wants to keep a batch copies it. After an error the loop may go on
// with the next batch.
//
//	for batch, err := range array.Batches[array.Array[float32]](p, 0, slices.Chunk(samples, 256)) {
//
// Batches adapts the next ahead batches before the loop works on one. So ahead + 1 batches are in
// memory at a time. That pays where uploads are queued, such as those that a device stages through
// pinned memory. On a stream of their own they run beside the work of the loop. The source may reuse
// the slices that become arrays. It must not reuse those that stay slices, because they are shared.
func Batches[To, From any](p *pool.Pool, ahead int, source iter.Seq[From], on ...On) iter.Seq2[To, error] {
	type batch struct {
		to   To
		made []anyArray
		err  error
	}
	return func(yield func(To, error) bool) {
		var queue []batch
		defer func() {
			for _, b := range queue {
				free(b.made)
			}
		}()
		first := func() bool {
			b := queue[0]
			queue = queue[1:]
			defer free(b.made) // also when the loop's body panics
			return yield(b.to, b.err)
		}
		for from := range source {
			to, made, err := adapt[To](p, from, on)
			if queue = append(queue, batch{to, made, err}); len(queue) > ahead && !first() {
				return
			}
		}
		for len(queue) > 0 && first() {
		}
	}
}
