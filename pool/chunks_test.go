package pool_test

import (
	"errors"
	"fmt"
	"sync"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// Chunks is a [pool.Mapper] that has addresses and no memory: it counts what a
// pool asks of it, and refuses what breaks the promises of the interface. On Linux
// [HostChunks] has memory, too. The zero value has granules of 2 MiB and no end of
// memory. Fields must not change after the first call. It is safe for concurrent use.
type Chunks struct {
	Size  int64 // bytes of a granule, a power of two; 0: 2 MiB
	Bytes int64 // of memory; 0: as much as is asked for
	Room  int64 // bytes of a range of addresses; 0: 1 TiB

	mu     sync.Mutex
	next   uintptr
	ranges map[uintptr]rangeOf
	plain  map[uintptr]int64 // bytes, by address
	mapped map[uintptr]int64 // bytes of the chunk at an address
	count  ChunkCounts
	behind memory // nil: addresses alone
}

type rangeOf struct {
	bytes, chunk int64
	base         uintptr // of real addresses
}

// memory is what lies behind the addresses.
type memory interface {
	pool.Upstream
	reserve(bytes int64) (addr uintptr, err error) // addresses
	forget(addr uintptr, bytes int64) error        // addresses
	put(to, from uintptr, bytes int64) error       // new memory if from is 0; none any more if to is 0
}

// ChunkCounts says what a pool has asked of [Chunks].
type ChunkCounts struct {
	Created  int64 // chunks that were made
	Mapped   int64 // chunks that were put behind addresses, moved ones included
	Unmapped int64 // bytes whose addresses were taken from them, those moved included
	Runs     int64 // runs of neighbours that were mapped or unmapped: a call of a driver each
	Allocs   int64 // calls of Allocate
	Released int64 // bytes given back by Release
	Held     int64 // bytes that are out now
}

var (
	errChunks = errors.New("broken promise")
	errFull   = errors.New("no more memory")
)

// Counts returns what was asked for so far.
func (c *Chunks) Counts() ChunkCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Has reports whether there is memory behind all of bytes at addr.
func (c *Chunks) Has(addr uintptr, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for start, n := range c.plain {
		if addr >= start && addr+uintptr(bytes) <= start+uintptr(n) {
			return true
		}
	}
	r, ok := c.rangeOf(pool.Span{Addr: addr, Bytes: bytes})
	for at := addr &^ uintptr(r.chunk-1); ok && at < addr+uintptr(bytes); at += uintptr(r.chunk) {
		_, ok = c.mapped[at]
	}
	return ok
}

// Left returns an error if there is a range, a chunk or a segment that was not given back.
func (c *Chunks) Left() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ranges)+len(c.mapped)+len(c.plain) > 0 || c.count.Held != 0 {
		return fmt.Errorf("%d ranges, %d chunks, %d segments and %d bytes are left", len(c.ranges), len(c.mapped), len(c.plain), c.count.Held)
	}
	return nil
}

// Granule is that of [pool.Mapper].
func (c *Chunks) Granule() int64 {
	if c.Size == 0 {
		return 2 << 20
	}
	return c.Size
}

// Range is that of [pool.Mapper].
func (c *Chunks) Range(chunk int64, _ uint32) (uintptr, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := c.Room
	if bytes == 0 {
		bytes = 1 << 40
	}
	if chunk < c.Granule() || chunk%c.Granule() != 0 || bytes%chunk != 0 {
		return 0, 0, fmt.Errorf("%w: chunks of %d bytes in a range of %d", errChunks, chunk, bytes)
	}
	addr, base := c.place(bytes, chunk), uintptr(0)
	if c.behind != nil {
		var err error
		if base, err = c.behind.reserve(bytes + chunk); err != nil {
			return 0, 0, err
		}
		addr = (base + uintptr(chunk-1)) &^ uintptr(chunk-1)
	}
	if c.ranges == nil {
		c.ranges, c.mapped = map[uintptr]rangeOf{}, map[uintptr]int64{}
	}
	c.ranges[addr] = rangeOf{bytes, chunk, base}
	return addr, bytes, nil
}

// place returns addresses that were never used before; the caller holds mu.
func (c *Chunks) place(bytes, unit int64) uintptr {
	if c.next == 0 {
		c.next = 1 << 44
	}
	addr := (c.next + uintptr(unit-1)) / uintptr(unit) * uintptr(unit)
	c.next = addr + uintptr(bytes)
	return addr
}

// FreeRange is that of [pool.Mapper].
func (c *Chunks) FreeRange(addr uintptr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.ranges[addr]
	if !ok {
		return fmt.Errorf("%w: no range at %#x", errChunks, addr)
	}
	for at := range c.mapped {
		if at >= addr && at < addr+uintptr(r.bytes) {
			return fmt.Errorf("%w: the range at %#x has memory at %#x", errChunks, addr, at)
		}
	}
	delete(c.ranges, addr)
	if c.behind != nil {
		return c.behind.forget(r.base, r.bytes+r.chunk)
	}
	return nil
}

// chunks returns the addresses of the chunks of spans and their size. All are
// to be mapped, or none of them; the caller holds mu.
func (c *Chunks) chunks(spans []pool.Span, mapped bool) (all []uintptr, chunk int64, err error) {
	for _, s := range spans {
		r, ok := c.rangeOf(s)
		if !ok || chunk != 0 && chunk != r.chunk || s.Bytes <= 0 || s.Addr%uintptr(r.chunk) != 0 || s.Bytes%r.chunk != 0 {
			return nil, 0, fmt.Errorf("%w: %d bytes at %#x are not whole chunks", errChunks, s.Bytes, s.Addr)
		}
		chunk = r.chunk
		for at := s.Addr; at < s.Addr+uintptr(s.Bytes); at += uintptr(chunk) {
			if _, is := c.mapped[at]; is != mapped {
				return nil, 0, fmt.Errorf("%w: memory at %#x: %v, want %v", errChunks, at, is, mapped)
			}
			all = append(all, at)
		}
	}
	return all, chunk, nil
}

func (c *Chunks) rangeOf(s pool.Span) (rangeOf, bool) {
	for addr, r := range c.ranges {
		if s.Addr >= addr && s.Addr+uintptr(s.Bytes) <= addr+uintptr(r.bytes) {
			return r, true
		}
	}
	return rangeOf{}, false
}

// Map is that of [pool.Mapper].
func (c *Chunks) Map(to, from []pool.Span, _ uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	places, chunk, err := c.chunks(to, false)
	if err != nil {
		return err
	}
	old, _, err := c.chunks(from, true)
	if err != nil {
		return err
	}
	fresh := int64(len(places)-len(old)) * chunk
	if fresh < 0 {
		return fmt.Errorf("%w: %d chunks for %d places", errChunks, len(old), len(places))
	}
	if err := c.hold(fresh); err != nil {
		return err
	}
	for k, at := range places {
		source := uintptr(0)
		if k < len(old) {
			source = old[k]
			delete(c.mapped, source)
		} else {
			c.count.Created++
		}
		c.mapped[at] = chunk
		c.put(at, source, chunk)
	}
	c.count.Mapped += int64(len(places))
	c.count.Unmapped += int64(len(old)) * chunk
	c.count.Runs += int64(len(to) + len(from))
	return nil
}

// put lets real memory follow.
func (c *Chunks) put(to, from uintptr, bytes int64) {
	if c.behind == nil {
		return
	}
	if err := c.behind.put(to, from, bytes); err != nil {
		panic(err)
	}
}

// hold counts more bytes as out, if there are so many; the caller holds mu.
func (c *Chunks) hold(bytes int64) error {
	if c.Bytes > 0 && c.count.Held+bytes > c.Bytes {
		return errFull
	}
	c.count.Held += bytes
	return nil
}

// Unmap is that of [pool.Mapper].
func (c *Chunks) Unmap(s pool.Span) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, chunk, err := c.chunks([]pool.Span{s}, true)
	if err != nil {
		return err
	}
	for _, at := range old {
		delete(c.mapped, at)
		c.put(0, at, chunk)
	}
	c.count.Unmapped += s.Bytes
	c.count.Held -= s.Bytes
	c.count.Runs++
	return nil
}

// Allocate is that of [pool.Upstream].
func (c *Chunks) Allocate(bytes int64, stream uint32) (addr uintptr, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.hold(bytes); err != nil {
		return 0, err
	}
	if c.behind == nil {
		addr = c.place(bytes, 512)
	} else if addr, err = c.behind.Allocate(bytes, stream); err != nil {
		return 0, err
	}
	if c.plain == nil {
		c.plain = map[uintptr]int64{}
	}
	c.plain[addr] = bytes
	c.count.Allocs++
	return addr, nil
}

// Release is that of [pool.Upstream].
func (c *Chunks) Release(addr uintptr, bytes int64, stream uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held, ok := c.plain[addr]; !ok || held != bytes {
		return fmt.Errorf("%w: no segment of %d bytes at %#x", errChunks, bytes, addr)
	}
	delete(c.plain, addr)
	c.count.Held -= bytes
	c.count.Released += bytes
	if c.behind != nil {
		return c.behind.Release(addr, bytes, stream)
	}
	return nil
}

// Info is that of [pool.Upstream].
func (c *Chunks) Info() (pressure.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.Bytes
	if total == 0 {
		total = 1 << 46
	}
	return pressure.Info{Free: total - c.count.Held, Total: total}, nil
}

// Synchronize has nothing to wait for.
func (c *Chunks) Synchronize() error { return nil }

// Upload, Download, Copy and Fill are those of [array.Mover], and move nothing.
func (c *Chunks) Upload(uintptr, []byte, uint32) error { return nil }

func (c *Chunks) Download([]byte, uintptr, uint32) error { return nil }

func (c *Chunks) Copy(uintptr, uintptr, int64, uint32) error { return nil }

func (c *Chunks) Fill(uintptr, []byte, int64, uint32) error { return nil }
