package main

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/cuda"
	"github.com/eagergc/eagergc/pressure"
)

// A session is a fresh pool with its collector, and the arithmetic on its memory.
type session struct {
	lib       *library
	pool      *pool.Pool
	collector *gc.Collector
	stream    *cuda.Stream // nil on the host
	closers   []func() error
}

// open makes a session for one training under the policy.
func (o *options) open(spec policy.Spec) (s *session, err error) {
	hard, err := pressure.ParseLimit(o.limit)
	if err != nil {
		return nil, err
	}
	s = new(session)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.collector, err = gc.New(gc.Config{Policy: spec.New()}); err != nil {
		return nil, err
	}
	s.closing(func() error { s.collector.Close(); return s.collector.Err() })
	cfg := pool.Config{Limits: pressure.Limits{Hard: hard}, Collector: s.collector}
	s.lib = &library{math: cpu{}}
	if o.pool != "host" {
		if err := s.openGPU(o, &cfg); err != nil {
			return s, err
		}
	}
	if s.pool, err = pool.New(cfg); err != nil {
		return s, err
	}
	s.closing(func() error {
		s.collector.Collect(policy.TriggerExplicit) // the model is garbage by now
		s.pool.Close()
		return nil
	})
	s.lib.pool = s.pool
	if s.stream != nil {
		s.lib.stream = s.stream.ID()
		s.stream.Device().SyncThrough(s.pool)
	}
	return s, nil
}

// openGPU opens the device and says where the pool gets its memory.
func (s *session) openGPU(o *options, cfg *pool.Config) error {
	d, err := cuda.Open(o.device)
	if err != nil {
		return err
	}
	s.closing(d.Close)
	d.PollFor(o.poll)

	if s.stream, err = d.NewStream(); err != nil {
		return err
	}
	g, err := newGPU(s.stream)
	if err != nil {
		return err
	}
	s.closing(g.close)
	s.lib.math, cfg.Space = g, d.Space()
	switch o.pool {
	case "cuda":
		chunks, err := sizes(o.chunk)
		if err != nil || len(chunks) != 1 {
			return errors.Join(fmt.Errorf("--chunk %s: want one size", o.chunk), err)
		}
		cfg.Upstream, cfg.Chunk = d.Memory(), chunks[0]
	case "cuda-async":
		p, err := d.NewDriverPool(-1)
		if err != nil {
			return err
		}
		s.closing(p.Close)
		cfg.Upstream, cfg.Direct = p.Upstream(), true
	default:
		return fmt.Errorf("unknown pool %q (want host, cuda or cuda-async)", o.pool)
	}
	return nil
}

func (s *session) closing(f func() error) { s.closers = append(s.closers, f) }

// wait waits for the GPU's work, outside any sync point.
func (s *session) wait() error {
	if s.lib.err != nil || s.stream == nil {
		return s.lib.err
	}
	return s.stream.Synchronize()
}

// report fills in what the pool and the collector have counted.
func (s *session) report(r *result) {
	st := s.pool.Stats()
	r.gc = s.collector.Stats()
	r.peak, r.reserved, r.refusals = st.LivePeak, st.ReservedPeak, st.Refusals
}

// close undoes open in reverse order.
func (s *session) close() (err error) {
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	return err
}
