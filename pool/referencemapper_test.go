package pool_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/trace"
)

// What the reference knows of a pool over a Mapper: its segments are ranges of addresses whose pieces may be holes.

const refGranule = 64 * kib

// A refMapper is the device as it is mapped.
type refMapper struct{ refWaiter }

func (u refMapper) Granule() int64 { return refGranule }

func (u refMapper) Range(chunk int64, stream uint32) (uintptr, int64, error) {
	u.next = (u.next + uintptr(chunk)) &^ uintptr(chunk-1)
	bytes := oneOf[int64](u.schedule, 4*mib, 64*mib, 64*mib)
	s := u.fault(fmt.Sprintf("%d: range of %d for %d", u.number, chunk, stream), said{addr: u.next, has: bytes})
	u.next += uintptr(bytes)
	return s.addr, bytes, s.err
}

func (u refMapper) FreeRange(addr uintptr) error {
	return u.fault(fmt.Sprintf("%d: free range %#x", u.number, addr), said{}).err
}

func spansOf(list []pool.Span) (text string, bytes int64) {
	for _, s := range list {
		text += fmt.Sprintf(" %#x %d of %d", s.Addr, s.Bytes, s.Stream)
		bytes += s.Bytes
	}
	return text, bytes
}

func (u refMapper) Map(to, from []pool.Span, stream uint32) error {
	into, need := spansOf(to)
	out, has := spansOf(from)
	what := fmt.Sprintf("%d: map to%s from%s for %d", u.number, into, out, stream)
	if need-has > u.total-u.used {
		u.say(said{what: what, err: errors.New("full")})
		return errors.New("full")
	}
	s := u.fault(what, said{})
	if s.err == nil {
		u.used += need - has
	}
	return s.err
}

func (u refMapper) Unmap(x pool.Span) error {
	s := u.fault(fmt.Sprintf("%d: unmap %#x %d of %d", u.number, x.Addr, x.Bytes, x.Stream), said{})
	if s.err == nil {
		u.used -= x.Bytes
	}
	return s.err
}

// chunkSize is the largest power of two that is at most a 256th of the limit that it begins with, or of the device. 0: where there is
// no room for 16 granules, nothing is mapped.
func (m *refPool) chunkSize() int64 {
	whole := m.total
	for _, limit := range []int64{m.hard, m.soft} {
		if limit > 0 {
			whole = min(whole, limit)
		}
	}
	if limit := max(m.hard, m.soft); limit > m.total { // a limit counts, whatever there is
		whole = cmp.Or(min(cmp.Or(m.hard, limit), cmp.Or(m.soft, limit)), whole)
	}
	if whole < 16*refGranule {
		return 0
	}
	chunk := int64(refGranule)
	for 2*chunk <= whole/256 {
		chunk *= 2
	}
	return chunk
}

// A refPlace is where a block is to be: pieces side by side, of which some bytes at the ends are left out.
type refPlace struct {
	pieces      []*refPiece
	need        int64 // of memory, for the holes
	front, back int64
}

// place is the one that needs the least memory, and of those the lowest.
func (m *refPool) place(size int64, stream uint32) (best refPlace) {
	for _, s := range m.segments {
		if s.stream != stream || s.small != (size <= mib) {
			continue
		}
		for i := range s.pieces {
			var room, holes int64
			for j := i; j < len(s.pieces) && s.pieces[j].free; j++ {
				first, last := s.pieces[i], s.pieces[j]
				room += last.size
				if last.hole {
					holes += last.size
				}
				if room < size || holes == 0 {
					continue
				}
				x := refPlace{pieces: s.pieces[i : j+1], need: holes}
				switch chunks := (room - size) / m.chunk * m.chunk; {
				case last.hole && room-size >= last.size:
					continue
				case last.hole:
					x.back = chunks
					x.need -= chunks
				case first.hole:
					x.front, x.back = chunks, room-size-chunks
					x.need -= chunks
				default:
					x.back = room - size
				}
				if x.front < first.size && (best.pieces == nil || x.need < best.need || x.need == best.need && first.addr < best.pieces[0].addr) {
					best = x
				}
				if !first.hole {
					break
				}
			}
		}
	}
	return best
}

// mapMore puts memory behind the holes of a place: new one as far as the limit allows, and the rest from behind other free pieces; all of it if the device has no more.
func (m *refPool) mapMore(size int64, stream uint32) *refPiece {
	if m.hard > 0 && size > m.hard {
		return nil
	}
	at := m.place(size, stream)
	for at.pieces == nil {
		call := said{}
		if len(m.log) > 0 {
			call = m.log[0]
		}
		if m.heard("%d: range of %d for %d", m.number, m.chunk, stream).err != nil {
			return nil
		}
		if call.has < size {
			m.heard("%d: free range %#x", m.number, call.addr)
			return nil
		}
		s := &refSegment{bytes: call.has, stream: stream, small: size <= mib, ranged: true}
		s.pieces = []*refPiece{{of: s, addr: call.addr, size: call.has, free: true, hole: true}}
		m.segments = append(m.segments, s)
		at = m.place(size, stream)
	}
	mine := slices.Clone(at.pieces) // nobody else's from now on
	if at.back > 0 {
		mine[len(mine)-1].cut(mine[len(mine)-1].size - at.back)
	}
	if at.front > 0 {
		x := mine[0]
		x.cut(at.front)
		x.free = true
		mine[0] = x.of.pieces[slices.Index(x.of.pieces, x)+1]
	}
	for _, x := range mine {
		x.free = false
	}
	m.give() // what is left out
	fresh := max(0, min(at.need, m.headroom()/m.chunk*m.chunk))
	m.stats.ReservedPeak = max(m.stats.ReservedPeak, m.stats.Reserved+fresh)
	ok, limited := m.mapFrom(mine, at.need, fresh, stream)
	if !ok && !limited && fresh > 0 {
		fresh = 0
		ok, _ = m.mapFrom(mine, at.need, 0, stream)
	}
	if !ok {
		m.give(mine...)
		return nil
	}
	whole := mine[0]
	whole.hole = false
	for _, x := range mine[1:] {
		whole.size += x.size
		x.of.pieces = slices.DeleteFunc(x.of.pieces, func(y *refPiece) bool { return y == x })
	}
	whole.cut(size)
	m.give() // the rest joins its neighbour
	return whole
}

func (m *refPool) mapFrom(mine []*refPiece, need, fresh int64, stream uint32) (ok, limited bool) {
	parts, ok := m.parts(need - fresh)
	if !ok {
		return false, true
	}
	var to, from []pool.Span
	for _, x := range mine {
		if x.hole {
			to = append(to, pool.Span{Addr: x.addr, Bytes: x.size, Stream: stream})
		}
	}
	for _, x := range parts {
		from = append(from, pool.Span{Addr: x.addr, Bytes: x.size, Stream: x.of.stream})
	}
	into, _ := spansOf(to)
	out, _ := spansOf(from)
	if m.heard("%d: map to%s from%s for %d", m.number, into, out, stream).err != nil {
		m.give(parts...)
		return false, false
	}
	for _, x := range parts {
		x.hole = true
	}
	m.give(parts...)
	for _, s := range from {
		m.event(trace.Release, 0, s.Bytes, s.Stream, 0)
	}
	for _, s := range to {
		m.event(trace.Reserve, 0, s.Bytes, stream, 0)
	}
	m.stats.Reserved += fresh
	return true, false
}

// chunksIn returns the first and the last address of whole chunks in a piece, and how many bytes they are.
func (m *refPool) chunksIn(x *refPiece) (from, to uintptr, bytes int64) {
	chunk := uintptr(m.chunk)
	from, to = (x.addr+chunk-1)/chunk*chunk, (x.addr+uintptr(x.size))/chunk*chunk
	return from, to, max(0, int64(to)-int64(from))
}

func (m *refPool) withChunks() (list []*refPiece) {
	for _, s := range m.segments {
		for _, x := range s.pieces {
			if m.chunk > 0 && x.free && !x.hole && s.ranged {
				if _, _, n := m.chunksIn(x); n > 0 {
					list = append(list, x)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b *refPiece) int {
		_, _, n := m.chunksIn(a)
		_, _, k := m.chunksIn(b)
		return cmp.Or(cmp.Compare(n, k), cmp.Compare(a.addr, b.addr))
	})
	return list
}

// loose is the memory behind free pieces that could move.
func (m *refPool) loose() (bytes int64) {
	for _, x := range m.withChunks() {
		_, _, n := m.chunksIn(x)
		bytes += n
	}
	return bytes
}

// parts cuts so many bytes in whole chunks out of free pieces: of each at the end that lies beside a hole, if that is the lower one, else at the upper.
func (m *refPool) parts(bytes int64) (parts []*refPiece, ok bool) {
	if bytes > m.loose() {
		return nil, false
	}
	for _, x := range pick(m.withChunks(), bytes, func(x *refPiece) int64 { _, _, n := m.chunksIn(x); return n }) {
		from, to, has := m.chunksIn(x)
		n := min(has, bytes)
		bytes -= n
		s := x.of
		k := slices.Index(s.pieces, x)
		if below := k > 0 && s.pieces[k-1].hole; !below || from != x.addr {
			from = to - uintptr(n)
		}
		if from > x.addr {
			x.cut(int64(from - x.addr))
			x.free = true
			x = s.pieces[k+1]
		}
		x.cut(n)
		parts = append(parts, x)
	}
	return parts, true
}

// unmap gives memory from behind free pieces back; with all of it the ranges that are left without.
func (m *refPool) unmap(bytes int64) (released int64) {
	want := (bytes + m.chunk - 1) / m.chunk * m.chunk
	parts, _ := m.parts(min(want, m.loose()))
	for _, x := range parts {
		if m.heard("%d: unmap %#x %d of %d", m.number, x.addr, x.size, x.of.stream).err != nil {
			m.heard("%d: warned", m.number)
			m.give(x)
			continue
		}
		n := x.size
		x.hole = true
		m.give(x)
		m.stats.Reserved -= n
		m.event(trace.Release, 0, n, x.of.stream, 0)
		released += n
	}
	if want < pool.MaxBytes {
		return released
	}
	for len(m.log) > 0 { // in any order
		k := slices.IndexFunc(m.segments, func(s *refSegment) bool {
			return len(s.pieces) == 1 && s.pieces[0].hole && m.log[0].what == fmt.Sprintf("%d: free range %#x", m.number, s.pieces[0].addr)
		})
		if k < 0 {
			break
		}
		if m.heard("%d: free range %#x", m.number, m.segments[k].pieces[0].addr).err != nil {
			m.heard("%d: warned", m.number)
		}
		m.segments = slices.Delete(m.segments, k, k+1)
	}
	for _, s := range m.segments {
		if len(s.pieces) == 1 && s.pieces[0].hole && s.pieces[0].free {
			m.Fatalf("the range at %#x has no memory, and was not given back", s.pieces[0].addr)
		}
	}
	return released
}
