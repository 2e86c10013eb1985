package pool

import (
	"slices"
	"sync"
)

// A Scope frees at the end of a step the arrays that were allocated through it. A
// loop that needs the same sizes in every step then finds them in the pool's
// cache, and leaves nothing to collect.
//
// A Scope holds at most Max bytes. Arrays beyond that are left to the collector.
// So temporaries that die early do not add up to all that a step allocates.
// (GPUArrays' @cached holds everything, which costs three times the peak:
// Flux.jl#2636.) A Scope with Max 0 holds nothing. It is safe for concurrent use.
type Scope struct {
	Pool *Pool
	Max  int64 // bytes

	mu   sync.Mutex
	held []*memoryOf
	sum  int64
}

// ScopedArray is [NewArray] in the pool of s. [Scope.End] frees the array.
func ScopedArray[T any](s *Scope, n int, stream uint32) (Array[T], error) {
	a, err := NewArray[T](s.Pool, n, stream)
	if err == nil {
		s.hold(a.m)
	}
	return a, err
}

func (s *Scope) hold(m *memoryOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := s.sum + m.block.Bytes; sum <= s.Max {
		s.held, s.sum = append(s.held, m), sum
	}
}

// Keep takes an array out of the scope, so that End does not free it.
func Keep[T any](s *Scope, a Array[T]) Array[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.held, a.m); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
		s.sum -= a.m.block.Bytes
	}
	return a
}

// End frees all arrays that the scope holds. The scope can be used again.
func (s *Scope) End() {
	s.mu.Lock()
	held := s.held
	s.held, s.sum = nil, 0
	s.mu.Unlock()
	for _, m := range held {
		m.free()
	}
}
