package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/eagergc/eagergc/pool"
)

// pages maps memory of one device behind addresses: the part of [deviceMemory]
// that is a [pool.Mapper]. Memory that moves keeps its chunks. It is mapped at
// the new addresses at once, and its old addresses are unmapped when the work
// that may still use them has ended: until then the chunk has both. Nobody waits,
// unless the old addresses are wanted again before that.
type pages struct {
	driver  chunkDriver
	granule int64 // bytes; 0: the device cannot map memory

	mu     sync.Mutex // held while the driver maps: it does one thing at a time, too
	ranges []addresses
	memory map[uintptr]chunk // by the address that it is mapped at
	old    []oldRun
}

// A chunk is a handle of memory that is not tied to an address.
type chunk uint64

// addresses is a range of them, all in chunks of one size.
type addresses struct {
	base     uintptr // the first chunk
	bytes    int64
	chunk    int64
	reserved pool.Span // what the driver gave, which may begin below base
}

// An oldRun is addresses that are still mapped, and the end of the work that uses them.
type oldRun struct {
	addr  uintptr
	bytes int64
	end   fence
}

// A chunkDriver is what pages needs of the driver. Calls that fail change nothing.
type chunkDriver interface {
	reserve(bytes int64) (uintptr, error)
	free(addr uintptr, bytes int64) error
	create(bytes int64, memory []chunk) error // as many as there is room for
	release(memory []chunk) error
	mapTo(addr uintptr, bytes int64, memory []chunk) error
	unmap(addr uintptr, bytes int64) error         // addresses of several whole chunks
	after(stream, before uint32) error             // later work of stream comes after the work of before
	end(stream uint32) (fence, error)              // of the work of stream so far
	capturing(stream uint32) (bool, error)         // whether work of stream is recorded
	total() (int64, error)                         // bytes of the device
	access(addr uintptr, bytes int64, n int) error // lets device n use mapped memory
}

// A fence is a place in the work of a stream that can be waited for.
type fence interface {
	pool.Fence
	wait() error
}

func newPages(driver chunkDriver, granule int64) *pages {
	return &pages{driver: driver, granule: granule, memory: map[uintptr]chunk{}}
}

// Granule is that of [pool.Mapper]: 0 where the device cannot map memory.
func (p *pages) Granule() int64 {
	if p == nil {
		return 0
	}
	return p.granule
}

// Range is that of [pool.Mapper]. A range has twice as many addresses as the
// device has memory, as in DALI's cuda_vm_resource: the pool asks for another one
// when it is used up.
func (p *pages) Range(chunk int64, _ uint32) (uintptr, int64, error) {
	total, err := p.driver.total()
	if err != nil {
		return 0, 0, err
	}
	bytes := roundUp(2*total, chunk)
	base, err := p.driver.reserve(bytes + chunk)
	if err != nil {
		return 0, 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := addresses{base: uintptr(roundUp(int64(base), chunk)), bytes: bytes, chunk: chunk, reserved: pool.Span{Addr: base, Bytes: bytes + chunk}}
	p.ranges = append(p.ranges, r)
	mapped.Store(p, nil)
	return r.base, r.bytes, nil
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// FreeRange is that of [pool.Mapper].
func (p *pages) FreeRange(addr uintptr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := slices.IndexFunc(p.ranges, func(r addresses) bool { return r.base == addr })
	if k < 0 {
		return fmt.Errorf("cuda: no range of addresses begins at %#x", addr)
	}
	r := p.ranges[k]
	if err := p.vacate(r.base, r.bytes); err != nil {
		return err
	}
	if err := p.driver.free(r.reserved.Addr, r.reserved.Bytes); err != nil {
		return err
	}
	p.ranges = slices.Delete(p.ranges, k, k+1)
	if len(p.ranges) == 0 {
		mapped.Delete(p)
	}
	return nil
}

// chunks returns the addresses of the chunks of spans, and their size. They must
// be whole, of one size, and all mapped or none of them. The caller holds mu.
func (p *pages) chunks(spans []pool.Span, mapped bool) (all []uintptr, size int64, err error) {
	for _, s := range spans {
		k := slices.IndexFunc(p.ranges, func(r addresses) bool {
			return s.Addr >= r.base && s.Addr+uintptr(s.Bytes) <= r.base+uintptr(r.bytes)
		})
		if k < 0 || size != 0 && size != p.ranges[k].chunk {
			return nil, 0, fmt.Errorf("cuda: %d bytes at %#x are of no range, or of one with other chunks", s.Bytes, s.Addr)
		}
		size = p.ranges[k].chunk
		if s.Bytes <= 0 || s.Bytes%size != 0 || int64(s.Addr)%size != 0 {
			return nil, 0, fmt.Errorf("cuda: %d bytes at %#x are not whole chunks of %d", s.Bytes, s.Addr, size)
		}
		for at := s.Addr; at < s.Addr+uintptr(s.Bytes); at += uintptr(size) {
			if _, is := p.memory[at]; is != mapped {
				return nil, 0, fmt.Errorf("cuda: memory at %#x: %v, want %v", at, is, mapped)
			}
			all = append(all, at)
		}
	}
	return all, size, nil
}

// Map is that of [pool.Mapper]. It does not wait, unless a place has old
// addresses that are still in use.
func (p *pages) Map(to, from []pool.Span, stream uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	places, size, err := p.chunks(to, false)
	if err != nil {
		return err
	}
	sources, sourceSize, err := p.chunks(from, true)
	if err != nil {
		return err
	}
	if len(sources) > len(places) || len(sources) > 0 && sourceSize != size {
		return fmt.Errorf("cuda: %d chunks of %d bytes for %d places of %d", len(sources), sourceSize, len(places), size)
	}
	if err := p.unmapOld(); err != nil {
		return err
	}
	for _, s := range to {
		if err := p.vacate(s.Addr, s.Bytes); err != nil {
			return err
		}
	}
	ends, err := p.follow(from, stream)
	if err != nil {
		return err
	}
	memory := make([]chunk, len(places))
	for k, at := range sources {
		memory[k] = p.memory[at]
	}
	fresh := memory[len(sources):]
	if err := p.driver.create(size, fresh); err != nil {
		return errors.Join(err, closeAll(ends))
	}
	if err := p.mapAll(to, size, memory); err != nil {
		return errors.Join(err, p.driver.release(fresh), closeAll(ends))
	}
	for _, at := range sources {
		delete(p.memory, at)
	}
	for k, at := range places {
		p.memory[at] = memory[k]
	}
	for k, s := range from {
		p.old = append(p.old, oldRun{s.Addr, s.Bytes, ends[k]})
	}
	return nil
}

// follow makes later work of stream come after the work that uses from, and returns
// the end of that work for each span.
func (p *pages) follow(from []pool.Span, stream uint32) (ends []fence, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(ends))
			ends = nil
		}
	}()
	for _, s := range from {
		for _, id := range []uint32{s.Stream, stream} {
			switch recorded, err := p.driver.capturing(id); {
			case err != nil:
				return ends, err
			case recorded:
				return ends, fmt.Errorf("cuda: memory cannot move while the work of stream %d is recorded", id)
			}
		}
		if s.Stream != stream {
			if err := p.driver.after(stream, s.Stream); err != nil {
				return ends, err
			}
		}
		end, err := p.driver.end(s.Stream)
		if err != nil {
			return ends, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

func closeAll(ends []fence) (err error) {
	for _, e := range ends {
		err = errors.Join(err, e.Close())
	}
	return err
}

// mapAll maps memory at spans, or nothing.
func (p *pages) mapAll(to []pool.Span, size int64, memory []chunk) error {
	for k, s := range to {
		n := s.Bytes / size
		if err := p.driver.mapTo(s.Addr, size, memory[:n]); err != nil {
			for _, done := range to[:k] {
				err = errors.Join(err, p.driver.unmap(done.Addr, done.Bytes))
			}
			return err
		}
		memory = memory[n:]
	}
	return nil
}

// unmapOld unmaps old addresses that nobody uses any more, neighbours at once.
func (p *pages) unmapOld() error {
	slices.SortFunc(p.old, func(a, b oldRun) int { return cmp.Compare(a.addr, b.addr) })
	var keep []oldRun
	for k := 0; k < len(p.old); {
		run, n, err := p.endedFrom(k)
		if err == nil && n > 0 {
			err = p.driver.unmap(run.Addr, run.Bytes)
		}
		if err != nil {
			p.old = append(keep, p.old[k:]...)
			return err
		}
		for _, x := range p.old[k : k+n] {
			err = errors.Join(err, x.end.Close())
		}
		if err != nil {
			p.old = append(keep, p.old[k+n:]...)
			return err
		}
		if n == 0 {
			keep = append(keep, p.old[k])
			n = 1
		}
		k += n
	}
	p.old = keep
	return nil
}

// endedFrom returns the neighbours from p.old[k] on whose users have ended, and how
// many they are.
func (p *pages) endedFrom(k int) (run pool.Span, n int, err error) {
	run.Addr = p.old[k].addr
	for _, x := range p.old[k:] {
		if x.addr != run.Addr+uintptr(run.Bytes) {
			break
		}
		done, err := x.end.Done()
		if err != nil || !done {
			return run, n, err
		}
		run.Bytes += x.bytes
		n++
	}
	return run, n, nil
}

// vacate unmaps the old addresses that overlap bytes at addr, and waits for their users.
func (p *pages) vacate(addr uintptr, bytes int64) error {
	for k := 0; k < len(p.old); {
		x := p.old[k]
		if x.addr+uintptr(x.bytes) <= addr || addr+uintptr(bytes) <= x.addr {
			k++
			continue
		}
		if err := x.end.wait(); err != nil {
			return err
		}
		if err := p.driver.unmap(x.addr, x.bytes); err != nil {
			return err
		}
		p.old = slices.Delete(p.old, k, k+1)
		if err := x.end.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Unmap is that of [pool.Mapper]. It waits for the work of the stream.
func (p *pages) Unmap(s pool.Span) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	places, _, err := p.chunks([]pool.Span{s}, true)
	if err != nil {
		return err
	}
	if err := p.vacate(0, 1<<62); err != nil { // a chunk is free once all its addresses are
		return err
	}
	end, err := p.driver.end(s.Stream)
	if err != nil {
		return err
	}
	if err := errors.Join(end.wait(), end.Close()); err != nil {
		return err
	}
	if err := p.driver.unmap(s.Addr, s.Bytes); err != nil {
		return err
	}
	memory := make([]chunk, len(places))
	for k, at := range places {
		memory[k] = p.memory[at]
		delete(p.memory, at)
	}
	return p.driver.release(memory)
}

// grant lets device n use all that is mapped.
func (p *pages) grant(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.memory {
		k := slices.IndexFunc(p.ranges, func(r addresses) bool { return at >= r.base && at < r.base+uintptr(r.bytes) })
		if err := p.driver.access(at, p.ranges[k].chunk, n); err != nil {
			return err
		}
	}
	return nil
}

// mapped are all pages of the process that have addresses.
var mapped sync.Map // of *pages

// grantMapped lets a device that has been opened use what others have mapped before.
func grantMapped(n int) (err error) {
	mapped.Range(func(p, _ any) bool {
		err = errors.Join(err, p.(*pages).grant(n))
		return true
	})
	return err
}
