// Package arrow reads record batches of Apache Arrow's Go library that need no Release. A pool
// counts their memory and keeps it under a limit. The collector frees it once the program cannot
// reach it.
//
//	allocator, err := arrow.New(gc.Default(), 2<<30)
//	for batch, err := range arrow.Read(allocator, file) { ... }
package arrow

import (
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/with/arrow/arrowmem"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// New returns an allocator over a new pool of host memory, whose collector is c. Limit is the most
// bytes that the pool holds. A good limit is 1.5 times the bytes that are live at once, because
// dead memory waits for a cycle. 0 means the limit of the environment: see
// [pressure.Limits.OrFromEnv]. If all memory is in use, an allocation beyond the limit panics with
// a [pool.OutOfMemoryError], as Arrow's allocators do.
func New(c *gc.Collector, limit int64) (*arrowmem.Allocator, error) {
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}})
	if err != nil {
		return nil, err
	}
	return arrowmem.New(p), nil
}

// Manage leaves the memory of all columns of batch, with their children and dictionaries, to the
// collector. It returns the number of buffers that it left. It skips buffers that are not from a or
// are managed already. See [arrowmem.Allocator.Manage] for the rule that keeps a column alive.
func Manage(a *arrowmem.Allocator, batch arrow.RecordBatch) (buffers int, err error) {
	for i, column := range batch.Columns() {
		n, err := a.Manage(column.Data())
		buffers += n
		if err != nil {
			return buffers, fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
	}
	return buffers, nil
}

// Read iterates over the batches of a stream in Arrow's IPC format. It reads dictionaries and
// compressed batches, too. Each batch belongs to the caller and is managed, so it needs no Release.
// The iteration ends after the first error.
func Read(a *arrowmem.Allocator, from io.Reader) iter.Seq2[arrow.RecordBatch, error] {
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
			if !give(a, batch, yield) {
				return
			}
		}
		if err := r.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// ReadFile is [Read] for Arrow's file format.
func ReadFile(a *arrowmem.Allocator, from ipc.ReadAtSeeker) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		r, err := ipc.NewFileReader(from, ipc.WithAllocator(a))
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		for i := range r.NumRecords() {
			batch, err := r.RecordBatchAt(i)
			if err != nil {
				yield(nil, fmt.Errorf("batch %d: %w", i, err))
				return
			}
			if !give(a, batch, yield) {
				return
			}
		}
	}
}

// give manages a batch and yields it. It reports whether to go on.
func give(a *arrowmem.Allocator, batch arrow.RecordBatch, yield func(arrow.RecordBatch, error) bool) bool {
	if _, err := Manage(a, batch); err != nil {
		yield(nil, err)
		return false
	}
	return yield(batch, nil)
}
