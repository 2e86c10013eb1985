// Package arrow gives Apache Arrow's Go library memory of a pool, and reads record batches that need
// no Release. The pool counts the memory and keeps it under a limit. The collector frees it once the
// program cannot reach it.
//
//	memory, err := pool.New(pool.Config{Collector: gc.Default()})
//	for batch, err := range arrow.Read(arrow.New(memory), file) { ... }
//
// A good limit of the pool is 1.5 times the bytes that are live at once, because dead memory waits
// for a cycle.
package arrow

import (
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Read iterates over the batches of a stream in Arrow's IPC format. It reads dictionaries and
// compressed batches, too. Each batch belongs to the caller and is managed, so it needs no Release:
// see [Allocator.Manage]. The iteration ends after the first error.
func Read(a *Allocator, from io.Reader) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		r, err := ipc.NewReader(from, ipc.WithAllocator(a))
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Release()
		for r.Next() {
			batch := r.RecordBatch()
			batch.Retain() // for the caller; the reader releases its own reference at the next batch
			for _, column := range batch.Columns() {
				if err := a.Manage(column.Data()); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(batch, nil) {
				return
			}
		}
		if err := r.Err(); err != nil {
			yield(nil, err)
		}
	}
}
