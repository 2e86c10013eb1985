package pool

import "fmt"

// Check looks at the whole structure of the pool and returns the first fault as an
// error; nil if there is none. It holds every lock of the pool meanwhile. It is for
// tests, and for programs that suspect a stray write.
func (p *Pool) Check() error {
	for k := range p.caches {
		p.caches[k].mu.Lock()
		defer p.caches[k].mu.Unlock()
	}
	p.depot.mu.Lock()
	defer p.depot.mu.Unlock()
	p.core.mu.Lock()
	defer p.core.mu.Unlock()
	if err := p.core.check(); err != nil {
		return err
	}
	if err := p.depot.check(&p.core.headers); err != nil {
		return err
	}
	for k := range p.caches {
		if err := p.caches[k].check(&p.core.headers); err != nil {
			return err
		}
	}
	return nil
}

func (c *core) check() error {
	var pieces, bytes int64
	for key, t := range c.bins {
		var last *header
		for i := range t.from(&c.headers, 0) {
			h := c.headers.at(i)
			switch {
			case h.hole && (h.addr|uintptr(h.size))&uintptr(c.chunk-1) != 0:
				return fmt.Errorf("pool: hole %d is not whole chunks", i)
			case !h.free || h.gen.Load()%2 == 1:
				return fmt.Errorf("pool: piece %d is in a bin and in use", i)
			case h.bin() != key:
				return fmt.Errorf("pool: piece %d is in the wrong bin", i)
			case last != nil && !last.before(h.size, h.addr):
				return fmt.Errorf("pool: piece %d is out of order", i)
			}
			last = h
			if !key.hole {
				pieces++
				bytes += h.size
			}
		}
	}
	if pieces != c.pieces || bytes != c.freed {
		return fmt.Errorf("pool: %d pieces of %d bytes in bins, counted %d of %d", pieces, bytes, c.pieces, c.freed)
	}
	return c.checkNeighbours()
}

func (c *core) checkNeighbours() error {
	for n := uint32(1); n <= c.headers.used; n++ {
		i := spread(n)
		h := c.headers.at(i)
		if h.size == 0 || h.next == 0 {
			continue
		}
		n := c.headers.at(h.next)
		switch {
		case n.prev != i || n.addr != h.addr+uintptr(h.size):
			return fmt.Errorf("pool: pieces %d and %d are no neighbours", i, h.next)
		case n.free && h.free && n.hole == h.hole:
			return fmt.Errorf("pool: free pieces %d and %d were not merged", i, h.next)
		}
	}
	return nil
}

func (f *cache) check(hs *headers) error {
	var cached int64
	for _, r := range f.magazines {
		if err := r.check(hs); err != nil {
			return err
		}
		cached += int64(r.n) * r.size
	}
	if cached != f.cached || cached > f.keep {
		return fmt.Errorf("pool: %d bytes in magazines, counted %d, at most %d", cached, f.cached, f.keep)
	}
	return nil
}

func (r magazine) check(hs *headers) error {
	n := uint32(0)
	for i := r.head; i != 0 && n <= r.n; i = hs.at(i).left {
		if h := hs.at(i); h.size != r.size || h.stream != r.stream || h.free || h.gen.Load()%2 == 1 {
			return fmt.Errorf("pool: piece %d does not belong in its magazine", i)
		}
		n++
	}
	if n != r.n || n > magazineMax {
		return fmt.Errorf("pool: %d pieces in a magazine of %d, at most %d", n, r.n, magazineMax)
	}
	return nil
}

func (d *depot) check(hs *headers) error {
	var full int64
	for _, s := range d.slots {
		chain := s.head
		for range s.n {
			if err := (magazine{size: s.size, stream: s.stream, head: chain, n: magazineMax}).check(hs); err != nil {
				return err
			}
			chain = hs.at(chain).right
		}
		if chain != 0 {
			return fmt.Errorf("pool: more magazines in the depot than the %d counted", s.n)
		}
		full += int64(s.n)
	}
	if counted := d.full.Load(); full != counted || full > depotMax {
		return fmt.Errorf("pool: %d magazines in the depot, counted %d, at most %d", full, counted, depotMax)
	}
	return nil
}
