package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// A Graph is recorded work that can be repeated. It holds the arrays that the work uses, freed or
// not, until it is closed. Its methods are safe for concurrent use.
type Graph struct {
	dev   *Device
	begun *event // behind the work that the stream had before the capture

	mu   sync.Mutex // held during each call
	h    handle     // 0: closed
	uses []array.Memory
	kept []func() // give back the arrays
}

// Capture records the work that f gives to s into a graph, instead of doing it. Work of [With],
// [Launch], [CopyTo] and [Fill] becomes part of the graph, with its arrays. So does work with raw
// addresses, whose memory the caller keeps. Other calls that need s fail: waits, allocation from a
// [DriverPool], another graph.
//
// The methods of arrays name no stream and are done at once. During f they fail for arrays that the
// graph uses already, and for arrays of device memory that s used last. No other goroutine may give
// work to s during f. The default stream cannot be captured.
func (s *Stream) Capture(f func() error) (g *Graph, err error) {
	g = &Graph{dev: s.dev}
	if s == &s.dev.null {
		return nil, errors.New("cuda: the default stream cannot be captured: make one with NewStream")
	}
	if g.begun, err = s.dev.newEvent(); err != nil {
		return nil, err
	}
	if err := s.begin(g); err != nil {
		return nil, errors.Join(err, g.begun.Close())
	}
	var graph handle
	func() {
		defer func() { // also if f panics: the stream must come back to life
			var ended error
			graph, ended = s.end(g)
			err = errors.Join(err, ended)
		}()
		err = f()
	}()
	if err == nil {
		err = s.dev.retry(func() (err error) { g.h, err = graphInstantiate(s.dev, graph); return err })
	}
	if graph != 0 {
		err = errors.Join(err, graphFree(s.dev, graph))
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// begin begins the capture of g.
func (s *Stream) begin(g *Graph) error {
	s.dev.settling.Lock()
	defer s.dev.settling.Unlock()
	s.marking.Lock()
	defer s.marking.Unlock()
	if err := s.takes("another capture"); err != nil {
		return err
	}
	if err := eventRecord(s, g.begun.h); err != nil {
		return err
	}
	if err := captureBegin(s); err != nil {
		return err
	}
	s.dev.capturing++
	s.graph.Store(g)
	return nil
}

// end ends the capture of g.
func (s *Stream) end(g *Graph) (graph handle, err error) {
	s.dev.settling.Lock()
	defer s.dev.settling.Unlock()
	s.marking.Lock()
	defer s.marking.Unlock()
	graph, err = captureEnd(s)
	s.graph.Store(nil)
	s.dev.capturing--
	for _, m := range g.uses {
		m.Untaint()
	}
	return graph, err
}

// use has the graph, which is being captured, use an array until it is closed.
func (g *Graph) use(m array.Memory) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.uses, m) {
		m.Taint()
		g.uses = append(g.uses, m)
		g.kept = append(g.kept, m.Keep())
	}
}

// Launch queues the work of the graph on s, a stream of the same device. It comes after all work
// that has used the arrays of the graph, on any stream. Later uses of these arrays come after it,
// as after [With]. Launch fails after Close, and while s is being captured.
func (g *Graph) Launch(s *Stream) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.h == 0:
		return errors.New("cuda: launch of a graph that was closed")
	case s.dev.index != g.dev.index:
		return fmt.Errorf("cuda: a graph of %v launched on a stream of %v", g.dev, s.dev)
	}
	if err := s.takes("another graph"); err != nil {
		return err
	}
	for _, m := range g.uses {
		if m.Space == pressure.Managed {
			s.bring(m)
		}
	}
	return s.inOrder(func() error { return graphLaunch(s, g.h) }, g.uses...)
}

// Close waits for the device, whose work may still be the graph's, and gives the graph and its hold
// on the arrays back. To close twice is harmless.
func (g *Graph) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	if g.h != 0 {
		err = errors.Join(g.dev.settle(), graphDestroy(g.dev, g.h))
	}
	if g.begun != nil {
		err = errors.Join(err, g.begun.Close())
	}
	for _, done := range g.kept {
		done()
	}
	g.h, g.begun, g.uses, g.kept = 0, nil, nil, nil
	return err
}
