package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/eagergc/eagergc/pool"
)

// pages maps memory of one device behind addresses. It is the part of [deviceMemory] that is a
// [pool.Mapper]. Memory that moves keeps its chunks. It is mapped at the new addresses at once. Its
// old addresses are unmapped when the work that may still use them has ended; until then the chunk
// has both. A caller waits only if the old addresses are wanted again before that.
type pages struct {
	dev     *Device
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
	reserved pool.Span // the driver's range, which may begin below base
}

// An oldRun is addresses that are still mapped, and the end of the work that uses them.
type oldRun struct {
	addr  uintptr
	bytes int64
	end   *event
}

// after makes later work of a stream come after the work of another one.
func (d *Device) after(stream, before uint32) error {
	if s := d.stream(stream); s != nil && !s.closed.Load() && s.graph.Load() == nil {
		return s.after(before)
	}
	end, err := d.end(before) // an unknown or closed stream cannot wait, nor can one that captures
	if err != nil {
		return err
	}
	return errors.Join(end.wait(), end.Close())
}

// end returns the end of the work that a stream has so far. It is nil for a stream that was closed
// and whose work has ended.
func (d *Device) end(stream uint32) (*event, error) {
	s := d.stream(stream)
	if s == nil {
		return nil, nil
	}
	e, err := s.dev.newEvent() // an event records streams of its own device only
	if err != nil {
		return nil, err
	}
	if err := s.recordEnd(e); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Granule is that of [pool.Mapper]: 0 where the device cannot map memory.
func (p *pages) Granule() int64 {
	if p == nil {
		return 0
	}
	return p.granule
}

// Range implements [pool.Mapper]. A range has twice as many addresses as the device has memory, as
// in DALI's cuda_vm_resource. The pool asks for another one when it is used up.
func (p *pages) Range(chunk int64, _ uint32) (uintptr, int64, error) {
	bytes := roundUp(2*p.dev.total, chunk)
	base, err := addressReserve(p.dev, bytes+chunk)
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
	if err := addressFree(p.dev, r.reserved.Addr, r.reserved.Bytes); err != nil {
		return err
	}
	p.ranges = slices.Delete(p.ranges, k, k+1)
	if len(p.ranges) == 0 {
		mapped.Delete(p)
	}
	return nil
}

// rangeOf returns the range that an address is of. The caller holds mu.
func (p *pages) rangeOf(at uintptr) addresses {
	return p.ranges[slices.IndexFunc(p.ranges, func(r addresses) bool { return at >= r.base && at < r.base+uintptr(r.bytes) })]
}

// chunks returns the addresses of the chunks of spans, which are whole and all of one size, and that
// size. The caller holds mu.
func (p *pages) chunks(spans []pool.Span) (all []uintptr, size int64) {
	for _, s := range spans {
		size = p.rangeOf(s.Addr).chunk
		for at := s.Addr; at < s.Addr+uintptr(s.Bytes); at += uintptr(size) {
			all = append(all, at)
		}
	}
	return all, size
}

// Map is that of [pool.Mapper]. It does not wait, unless a place has old addresses that are still
// in use.
func (p *pages) Map(to, from []pool.Span, stream uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	places, size := p.chunks(to)
	sources, _ := p.chunks(from)
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
		return errors.Join(err, closeAll(ends))
	}
	memory := make([]chunk, len(places))
	for k, at := range sources {
		memory[k] = p.memory[at]
	}
	fresh := memory[len(sources):]
	if err := chunksCreate(p.dev, size, fresh); err != nil {
		return errors.Join(err, closeAll(ends))
	}
	if err := p.mapAll(to, size, memory); err != nil {
		return errors.Join(err, chunksRelease(p.dev, fresh), closeAll(ends))
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

// follow makes later work of stream come after the work that uses from, and returns the end of that
// work for each span. The caller closes what it returns, also with an error.
func (p *pages) follow(from []pool.Span, stream uint32) (ends []*event, err error) {
	for _, s := range from {
		if s.Stream != stream {
			if err := p.dev.after(stream, s.Stream); err != nil {
				return ends, err
			}
		}
		end, err := p.dev.end(s.Stream)
		if err != nil {
			return ends, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

func closeAll(ends []*event) (err error) {
	for _, e := range ends {
		err = errors.Join(err, e.Close())
	}
	return err
}

// mapAll maps memory at spans, or nothing.
func (p *pages) mapAll(to []pool.Span, size int64, memory []chunk) error {
	users := []int32{int32(p.dev.index)}
	for n := range openContexts() {
		if can, err := p.usedBy(n); can && err == nil {
			users = append(users, int32(n))
		}
	}
	for k, s := range to {
		n := s.Bytes / size
		if err := mapChunks(p.dev, s.Addr, size, memory[:n], users); err != nil {
			for _, done := range to[:k] {
				err = errors.Join(err, unmapChunks(p.dev, done.Addr, done.Bytes))
			}
			return err
		}
		memory = memory[n:]
	}
	return nil
}

// unmapOld unmaps old addresses that are no longer in use, neighbours in one call.
func (p *pages) unmapOld() error {
	slices.SortFunc(p.old, func(a, b oldRun) int { return cmp.Compare(a.addr, b.addr) })
	var keep []oldRun
	for k := 0; k < len(p.old); {
		run, n, err := p.endedFrom(k)
		if err == nil && n > 0 {
			err = unmapChunks(p.dev, run.Addr, run.Bytes)
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

// endedFrom returns the neighbours from p.old[k] on whose users have ended, and how many they are.
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
		if err := unmapChunks(p.dev, x.addr, x.bytes); err != nil {
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
	places, _ := p.chunks([]pool.Span{s})
	if err := p.vacate(0, 1<<62); err != nil { // a chunk is free once all its addresses are
		return err
	}
	end, err := p.dev.end(s.Stream)
	if err != nil {
		return err
	}
	if err := errors.Join(end.wait(), end.Close()); err != nil {
		return err
	}
	if err := unmapChunks(p.dev, s.Addr, s.Bytes); err != nil {
		return err
	}
	memory := make([]chunk, len(places))
	for k, at := range places {
		memory[k] = p.memory[at]
		delete(p.memory, at)
	}
	return chunksRelease(p.dev, memory)
}

// usedBy reports whether another device can use the memory of this one.
func (p *pages) usedBy(n int) (bool, error) {
	if n == p.dev.index {
		return false, nil
	}
	return canPeer(n, p.dev.index)
}

// grant lets device n use all that is mapped.
func (p *pages) grant(n int) error {
	if can, err := p.usedBy(n); !can || err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.memory {
		if err := mapAccess(p.dev, at, p.rangeOf(at).chunk, []int32{int32(n)}); err != nil {
			return err
		}
	}
	return nil
}

// mapped are all pages of the process that have addresses.
var mapped sync.Map // of *pages

// grantMapped lets a newly opened device use memory that others have mapped before.
func grantMapped(n int) (err error) {
	mapped.Range(func(p, _ any) bool {
		err = errors.Join(err, p.(*pages).grant(n))
		return true
	})
	return err
}
