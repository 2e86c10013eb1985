package cuda

import (
	"errors"
	"sync"
)

// A Graph is recorded work that can be repeated.
type Graph struct {
	dev  *Device
	h    handle
	mu   sync.Mutex
	kept []func() // give back the memory of the arrays that it uses
}

// Capture records the work that f gives to s into a graph, instead of doing it.
// No other goroutine may give work to s meanwhile. The graph keeps the memory of the
// arrays that f uses by [With] and [Launch], until it is closed.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	if err := captureBegin(s); err != nil {
		return nil, err
	}
	g := &Graph{dev: s.dev}
	s.graph.Store(g)
	s.dev.captured.Store(g)
	failed := f()
	s.graph.Store(nil)
	graph, err := captureEnd(s) // in any case: the stream must come back to life
	if err == nil && failed == nil {
		err = s.dev.retry(func() (err error) { g.h, err = graphInstantiate(s.dev, graph); return err })
	}
	err = errors.Join(failed, err)
	if graph != 0 {
		err = errors.Join(err, graphFree(s.dev, graph))
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// capturing reports whether work given to s is recorded into a graph instead
// of being done.
func (s *Stream) capturing() (bool, error) { return streamCapturing(s) }

// Launch queues the work of the graph on s.
func (g *Graph) Launch(s *Stream) error {
	defer s.spend("graph", 0)()
	return graphLaunch(s, g.h)
}

// keep has the graph that is being captured keep memory until it is closed. A stream
// may have joined the capture of another one of the device.
func (s *Stream) keep(done func()) {
	g := s.graph.Load()
	if g == nil {
		g = s.dev.captured.Load()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = append(g.kept, done)
}

// Close waits for the device, whose work may still use the arrays, and gives the graph
// and its hold on their memory back. To close twice is harmless.
func (g *Graph) Close() error {
	g.mu.Lock()
	h, kept := g.h, g.kept
	g.h, g.kept = 0, nil
	g.mu.Unlock()
	var err error
	if h != 0 {
		err = errors.Join(syncContext(g.dev), graphDestroy(g.dev, h))
	}
	for _, done := range kept {
		done()
	}
	return err
}
