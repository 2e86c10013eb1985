package array

import (
	"sync"

	"github.com/eagergc/eagergc/pool"
)

// A Workspace is memory that a computation needs again and again, without keeping the contents. It
// grows to the largest size that was asked for. If a refusal asks for memory ([pool.StepDrop])
// while the workspace is not in use, it gives its memory back. Make one with [NewWorkspace]. It is
// safe for concurrent use; its users take turns.
type Workspace[T any] struct {
	pool   *pool.Pool
	on     []On
	cancel func()

	using sync.Mutex // held while the workspace is in use
	array Array[T]
}

// NewWorkspace returns an empty workspace. The caller closes it.
func NewWorkspace[T any](p *pool.Pool, on ...On) *Workspace[T] {
	w := &Workspace[T]{pool: p, on: on}
	w.cancel = p.Register(w)
	return w
}

// Use calls f with n elements, whose values are those that the last user left, and returns f's
// error. The elements are f's until it returns. Work that f has queued on other streams may use
// them after that: see [Array.Use]. The errors are those of [New]. F must not use the workspace.
func (w *Workspace[T]) Use(n int, f func(Array[T]) error) error {
	w.using.Lock()
	defer w.using.Unlock()
	if n > w.array.Len() {
		w.array.Free() // first: both need not fit
		var err error
		if w.array, err = New[T](w.pool, n, w.on...); err != nil {
			return err
		}
	}
	return f(w.array.View(0, n))
}

// Purge does nothing: to grow again is not cheap.
func (w *Workspace[T]) Purge() {}

// Drop gives the memory back, unless it is in use.
func (w *Workspace[T]) Drop() {
	if w.using.TryLock() {
		defer w.using.Unlock()
		w.array.Free()
		w.array = Array[T]{}
	}
}

// Close gives the memory back for good. The workspace must not be used after that.
func (w *Workspace[T]) Close() {
	w.cancel()
	w.using.Lock()
	defer w.using.Unlock()
	w.array.Free()
}
