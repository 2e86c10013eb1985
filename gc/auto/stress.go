package auto

import (
	"runtime"
	"sync"
)

// A stress runs one cycle after another. Code that relies on no cycle coming at a certain moment
// then fails.
type stress struct {
	done chan struct{}
	ends sync.WaitGroup
}

func startStress() *stress {
	s := &stress{done: make(chan struct{})}
	s.ends.Add(1)
	go s.run()
	return s
}

func (s *stress) run() {
	defer s.ends.Done()
	for {
		select {
		case <-s.done:
			return
		default:
			runtime.GC()
		}
	}
}

func (s *stress) stop() {
	close(s.done)
	s.ends.Wait()
}
