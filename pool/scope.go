package pool

import (
	"slices"
	"sync"
)

// A Scope frees at the end of a step what was allocated through it, so that a
// loop that needs the same sizes every step finds them in the pool's cache and
// leaves nothing to collect. It holds on to at most Max bytes until then; what
// goes beyond is left to the collector, so temporaries that die early do not add
// up to a step's sum of allocations (GPUArrays' @cached holds them all, which
// costs three times the peak: Flux.jl#2636). It is safe for concurrent use; a
// Scope of Max 0 holds nothing.
type Scope struct {
	Pool *Pool
	Max  int64 // bytes

	mu   sync.Mutex
	held []*memoryOf
	sum  int64
}

// ScopedArray is [NewArray] in the pool of s; [Scope.End] frees it.
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

// Keep takes an array out of the scope: it outlives the step.
func Keep[T any](s *Scope, a Array[T]) Array[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.held, a.m); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
		s.sum -= a.m.block.Bytes
	}
	return a
}

// End frees everything the scope holds. The scope can be used again.
func (s *Scope) End() {
	s.mu.Lock()
	held := s.held
	s.held, s.sum = nil, 0
	s.mu.Unlock()
	for _, m := range held {
		m.free()
	}
}
