package array

import (
	"sync"

	"github.com/eagergc/eagergc/pool"
)

// A Scope frees at the end of a step the arrays that it holds. A loop that needs
// the same sizes in every step then finds them in the pool's cache, and leaves
// nothing to collect.
//
// A Scope holds at most Max bytes. Arrays beyond that are left to the collector.
// So temporaries that die early do not add up to all that a step allocates.
// (GPUArrays' @cached holds everything, which costs three times the peak:
// Flux.jl#2636.) It is safe for concurrent use.
type Scope struct {
	Max int64 // bytes

	mu   sync.Mutex
	held []func()
	sum  int64
}

// Hold returns a, which [Scope.End] frees if it fits.
func Hold[T any](s *Scope, a Array[T]) Array[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := s.sum + a.Bytes(); sum <= s.Max {
		s.held, s.sum = append(s.held, a.Free), sum
	}
	return a
}

// End frees all arrays that the scope holds. The scope can be used again.
func (s *Scope) End() {
	s.mu.Lock()
	held := s.held
	s.held, s.sum = nil, 0
	s.mu.Unlock()
	for _, free := range held {
		free()
	}
}

// A Workspace is memory that a computation needs again and again and whose
// contents it does not keep. It grows to the largest size that was asked for, and
// gives its memory back when a refusal asks for it ([pool.StepDrop]) and nobody uses
// it. Make one with [NewWorkspace]. It is safe for concurrent use; its users take
// turns.
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

// Use calls f with n elements, whose values are those that the last user left, and
// returns f's error. The elements are f's until it returns. Work that f has queued
// on other streams may use them after that: see [Array.Use]. The errors are those
// of [New]. F must not use the workspace.
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
