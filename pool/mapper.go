package pool

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/trace"
)

// A Mapper is an upstream that can put memory behind addresses, and behind others later, in chunks
// of one size. A pool over it lays all but the small blocks of a stream in one range of addresses.
// The memory that a block lacks is mapped beside a free piece, so that the two become one piece. At
// the limit that memory comes from behind other free pieces, and no more of it moves than the block
// lacks.
type Mapper interface {
	// Granule returns the smallest chunk in bytes, a power of two; 0 if the memory cannot be
	// mapped, and all of it comes from Allocate. It does not block.
	Granule() int64
	// Range returns addresses with nothing behind them, for memory of stream in chunks of that
	// size. The address and bytes are multiples of chunk.
	Range(chunk int64, stream uint32) (addr uintptr, bytes int64, err error)
	// FreeRange gives back what Range returned. There is nothing behind it.
	FreeRange(addr uintptr) error
	// Map backs the addresses in to with memory, for work that stream queues from now on. It first
	// moves the memory that backs from, and takes new memory for the rest. The addresses in from then
	// have no memory. Work that the streams of from have queued may still use the old addresses. All
	// spans are whole chunks. If Map fails, nothing has changed.
	Map(to, from []Span, stream uint32) error
	// Unmap gives back the memory behind s, which is whole chunks, once the work that the stream of
	// s has queued is done. If it fails, nothing has changed.
	Unmap(s Span) error
}

// A Span is a run of neighbouring bytes of one stream.
type Span struct {
	Addr   uintptr
	Bytes  int64
	Stream uint32
}

// A chunk is the 256th part of the limit that the pool is made with, or of
// all memory. It is a power of two and at most 128 MiB. DALI's cuda_vm_resource has the same rule
// with at most 64 MiB (NVIDIA/DALI, include/dali/core/mm/cuda_vm_resource.h, commit 044add05). To
// move memory takes 26 to 30 us for a chunk of 64 MiB or less, for access alone, and 33 us for one
// of 128 MiB, on an H200 (results/2026-11-22-cuda-mapping). The loss to fragments grows with the
// size of a chunk.
const (
	chunksOfPool = 256
	mostChunk    = 128 << 20
	leastChunks  = 16 // a limit of fewer granules has segments
)

func (p *Pool) openMapper() error {
	m, ok := p.cfg.Upstream.(Mapper)
	if !ok || p.cfg.Direct {
		return nil
	}
	granule, err := guard.Value(func() (int64, error) { return m.Granule(), nil })
	if err != nil || granule == 0 {
		return err
	}
	if granule < quantum || granule&(granule-1) != 0 {
		return fmt.Errorf("pool: granule of %d bytes: want a power of two, %d or more", granule, quantum)
	}
	whole := p.group.hard.Load()
	if soft := p.group.soft.Load(); soft > 0 && (whole == 0 || soft < whole) {
		whole = soft
	}
	if whole == 0 {
		info, _ := p.upstreamInfo() // without it chunks are the smallest
		whole = max(info.Total, leastChunks*granule)
	}
	if whole < leastChunks*granule {
		return nil
	}
	chunk := int64(1) << (bits.Len64(uint64(whole/chunksOfPool)|1) - 1)
	p.mapper, p.core.chunk = m, min(max(chunk, granule), max(mostChunk, granule))
	return nil
}

// mapMore makes a piece of size bytes out of free pieces and the holes beside them, with as little
// memory as that takes.
func (p *Pool) mapMore(size int64, stream uint32) (uint32, error) {
	p.group.estimate()
	if hard := p.group.hard.Load(); hard > 0 && size > hard {
		return 0, errHardLimit
	}
	place, need := p.core.claimPlace(size, stream)
	for place == nil {
		if err := p.addRange(size, stream); err != nil {
			return 0, err
		}
		place, need = p.core.claimPlace(size, stream)
	}
	fresh := p.reserveUpTo(need)
	err := p.mapFrom(place, need, fresh, stream)
	if err != nil && err != errHardLimit && fresh > 0 {
		fresh = 0 // the upstream has no more, so it all has to come from here
		err = p.mapFrom(place, need, 0, stream)
	}
	if err != nil {
		p.core.unclaim(place)
		return 0, err
	}
	return p.core.fill(place, size), nil
}

// addRange enters a new range of addresses that has room for size bytes.
func (p *Pool) addRange(size int64, stream uint32) error {
	s := span{stream: stream, small: size <= smallMax}
	return guard.Error(func() (err error) {
		if s.addr, s.bytes, err = p.mapper.Range(p.core.chunk, stream); err != nil {
			return err
		}
		if s.bytes < size {
			err = fmt.Errorf("pool: a range of addresses has %d bytes, and %d are wanted", s.bytes, size)
			return errors.Join(err, p.mapper.FreeRange(s.addr))
		}
		p.core.addRange(s)
		return nil
	})
}

// reserveUpTo counts as much of need as taken from the upstream as the limit allows, in whole
// chunks, and returns how much that is.
func (p *Pool) reserveUpTo(need int64) int64 {
	for {
		bytes := min(need, p.headroom()&-p.core.chunk)
		if bytes <= 0 {
			return 0
		}
		if p.tracker.Reserve(bytes, p.group.hard.Load()) {
			return bytes
		}
	}
}

// mapFrom maps the holes of place, which need that many bytes. Fresh of them are new and counted
// already; the rest comes from behind other free pieces. If mapFrom fails, fresh is not counted any
// more.
func (p *Pool) mapFrom(place []uint32, need, fresh int64, stream uint32) error {
	parts, ok := p.core.claimParts(need - fresh)
	if !ok {
		p.tracker.Release(fresh)
		return errHardLimit
	}
	to, from := p.core.spans(place, true), p.core.spans(parts, false)
	if err := guard.Error(func() error { return p.mapper.Map(to, from, stream) }); err != nil {
		p.core.unclaim(parts)
		p.tracker.Release(fresh)
		return err
	}
	p.core.makeHoles(parts)
	for _, s := range from {
		p.record(trace.Event{Kind: trace.Release, Bytes: s.Bytes, Stream: s.Stream})
	}
	for _, s := range to {
		p.record(trace.Event{Kind: trace.Reserve, Bytes: s.Bytes, Stream: stream})
	}
	return nil
}

// unmap gives back bytes of memory from behind free pieces, or as many as there are, and returns
// how many.
func (p *Pool) unmap(bytes int64) (released int64) {
	bytes = roundUp(bytes, p.core.chunk)
	parts, ok := p.core.claimParts(min(bytes, p.core.loose()))
	for !ok { // another goroutine was quicker
		parts, ok = p.core.claimParts(min(bytes, p.core.loose()))
	}
	released = p.unmapPieces(parts)
	if bytes >= MaxBytes {
		p.freeRanges()
	}
	return released
}

// unmapPieces gives back the memory behind pieces that are claimed and no holes. It returns the
// bytes that it gave back.
func (p *Pool) unmapPieces(parts []uint32) (released int64) {
	for k, s := range p.core.spans(parts, false) {
		if err := guard.Error(func() error { return p.mapper.Unmap(s) }); err != nil {
			p.warn(err)
			p.core.unclaim(parts[k : k+1])
			continue
		}
		p.core.makeHoles(parts[k : k+1])
		p.tracker.Release(s.Bytes)
		p.record(trace.Event{Kind: trace.Release, Bytes: s.Bytes, Stream: s.Stream})
		released += s.Bytes
	}
	return released
}

// freeRanges gives back the ranges of addresses that have no memory.
func (p *Pool) freeRanges() {
	for _, s := range p.core.takeEmptyRanges() {
		if err := guard.Error(func() error { return p.mapper.FreeRange(s.addr) }); err != nil {
			p.warn(err) // addresses are lost, and no memory
		}
	}
}
