package cuda

// A Graph is recorded work that can be repeated.
type Graph struct {
	dev *Device
	h   handle
}

// Capture records the work that f gives to s into a graph, instead of doing it.
// No other goroutine may give work to s meanwhile. The graph holds addresses, not
// arrays: keep the arrays that f uses as long as the graph.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	if err := captureBegin(s); err != nil {
		return nil, err
	}
	failed := f()
	h, err := captureEnd(s) // in any case: the stream must come back to life
	if failed != nil {
		err = failed
	}
	if err != nil {
		if h != 0 {
			graphDestroy(s.dev, h)
		}
		return nil, err
	}
	return &Graph{s.dev, h}, nil
}

// Capturing reports whether work given to s is recorded into a graph instead
// of being done.
func (s *Stream) Capturing() (bool, error) { return streamCapturing(s) }

// Launch queues the work of the graph on s.
func (g *Graph) Launch(s *Stream) error { return graphLaunch(s, g.h) }

// Close gives the graph back.
func (g *Graph) Close() error { return graphDestroy(g.dev, g.h) }
