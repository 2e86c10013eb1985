package pool_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// The rules of pools, told again in the slowest way: a segment is a list of pieces, a search looks at all of them. TestReference lets pools and
// this reference take the same random steps, over a device that refuses, fails and lags. After each step all that a program can see is the same: which address a block
// has, each number of Stats, what the device was asked and what the sink and Warn were told, in that order.
type reference struct {
	*schedule
	log              []said // what has happened and the reference has not yet said
	clock            time.Duration
	total, used      int64 // bytes of the device
	next             uintptr
	lagging          bool       // fences have not passed
	failing          int        // of a hundred calls
	pools, all       []*refPool // all has those that are closed, too
	set              *pressure.Limits
	hard, soft, free int64
	began            time.Time
}

// said is a call of the device, with its answer, or what was recorded or warned of.
type said struct {
	what string
	addr uintptr
	done bool
	err  error
	has  int64 // what the upstream has reserved then, if it is a Cacher
}

type refPool struct {
	*reference
	p                     *pool.Pool
	number                int
	cfg                   pool.Config
	own                   pressure.Limits
	waits, fences, caches bool       // the upstream is a Synchronizer, a Fencer, a Cacher
	chunk                 int64      // bytes, of a Mapper; 0: it is none
	usage                 pool.Usage // of the upstream
	has, above            int64      // reserved by the upstream, when the reference heard of it last; bytes of it that count as cached there
	closed, reclaims      bool
	ids                   map[uint64]int // number of the allocation of each recorded identity

	segments         []*refSegment
	magazines, depot map[int]*refMagazine // depot has pieces in full magazines
	waiting          []refWait
	keep             int64
	emptied          int           // slot that made room last
	hoard            [2][]refBlock // freed by Purge and by Drop
	line             int           // above 0: somebody is in line
	blocks           []refBlock
	stats            pool.Stats // those that are sums
}

type refSegment struct {
	bytes  int64
	stream uint32
	small  bool
	ranged bool // it is a range of addresses
	pieces []*refPiece
}

type refPiece struct {
	of   *refSegment
	addr uintptr
	size int64
	free bool // in no cache, and nobody's
	hole bool // it has no memory
	used []uint32
}

type refMagazine struct {
	size   int64
	stream uint32
	pieces []*refPiece // the last one is on top
}

type refWait struct {
	*refPiece
	fence bool
}

type refBlock struct {
	pool.Block
	*refPiece
	number int // of its allocation
}

func (m *refPool) say(s said) {
	m.log = append(m.log, s)
	m.use()
}

// use uses the pool from inside one of its calls, which would never return if a lock of the pool's were held there.
func (m *refPool) use() {
	if m.p != nil && !m.caches { // to ask a Cacher changes the counts
		m.p.Stats()
		m.p.Holders(1)
		m.p.Register(m)()
	}
}

// heard wants that this was said next.
func (r *reference) heard(format string, args ...any) said {
	r.Helper()
	want := fmt.Sprintf(format, args...)
	if len(r.log) == 0 || r.log[0].what != want {
		r.Fatalf("want %q, and this was said: %+v", want, r.log)
	}
	s := r.log[0]
	r.log = r.log[1:]
	return s
}

// asked is heard of a call of the upstream that may change what it has.
func (m *refPool) asked(format string, args ...any) error {
	m.Helper()
	s := m.heard(format, args...)
	if !strings.Contains(format, "allocate") || s.err == nil {
		m.has = s.has
	}
	return s.err
}

// fault decides whether a call fails, or panics.
func (m *refPool) fault(what string, s said) said {
	s.what = what
	if m.IntN(100) < m.failing {
		s.err, s.addr, s.done = errors.New("fault"), 0, false
	}
	m.say(s)
	if s.err != nil && m.coin() {
		panic(s.err)
	}
	return s
}

// A refCacher keeps what is released to it, and takes memory in units of 2 MiB.
type refCacher struct{ refUpstream }

func (u refCacher) Allocate(bytes int64, stream uint32) (uintptr, error) {
	lack := max(0, bytes-(u.usage.Reserved-u.usage.Used)+2*mib-1) / (2 * mib) * (2 * mib)
	addr, err := u.allocate(bytes, lack, stream)
	if err == nil {
		u.usage.Used += bytes
		u.usage.UsedPeak = max(u.usage.UsedPeak, u.usage.Used)
		u.usage.ReservedPeak = max(u.usage.ReservedPeak, u.usage.Reserved)
	}
	return addr, err
}

func (u refCacher) Release(addr uintptr, bytes int64, stream uint32) error {
	s := u.fault(fmt.Sprintf("%d: release %#x %d of %d", u.number, addr, bytes, stream), said{has: u.usage.Reserved})
	if s.err == nil {
		u.usage.Used -= bytes
	}
	return s.err
}

func (u refCacher) Keep(bytes int64) error {
	return u.fault(fmt.Sprintf("%d: keep %d", u.number, bytes), said{has: u.usage.Reserved}).err
}

func (u refCacher) Trim(keep int64) error {
	n := min(max(0, u.usage.Reserved-keep), (u.usage.Reserved-u.usage.Used)/(2*mib)*(2*mib))
	u.usage.Reserved -= n
	u.used -= n
	return u.fault(fmt.Sprintf("%d: trim to %d", u.number, keep), said{has: u.usage.Reserved}).err
}

func (u refCacher) Usage() (pool.Usage, error) { return u.usage, nil }

// A refUpstream is what a pool sees of the device.
type refUpstream struct{ *refPool }

func (u refUpstream) Shares() pressure.Space { return pressure.Device(77) }

func (u refUpstream) Allocate(bytes int64, stream uint32) (uintptr, error) {
	return u.allocate(bytes, bytes, stream)
}

// allocate takes lack bytes of the device for it.
func (u refUpstream) allocate(bytes, lack int64, stream uint32) (uintptr, error) {
	what := fmt.Sprintf("%d: allocate %d for %d", u.number, bytes, stream)
	if lack > u.total-u.used {
		u.say(said{what: what, err: errors.New("full"), has: u.usage.Reserved})
		return 0, errors.New("full")
	}
	u.used += lack // which is back when the call fails
	u.usage.Reserved += lack
	defer func() {
		if s := u.log[len(u.log)-1]; s.err != nil {
			u.used -= lack
			u.usage.Reserved -= lack
		}
	}()
	s := u.fault(what, said{addr: u.next, has: u.usage.Reserved})
	if u.next += uintptr(bytes); u.coin() {
		u.next += 512 // segments that lie side by side are still segments of their own
	}
	return s.addr, s.err
}

func (u refUpstream) Release(addr uintptr, bytes int64, stream uint32) error {
	s := u.fault(fmt.Sprintf("%d: release %#x %d of %d", u.number, addr, bytes, stream), said{})
	if s.err == nil {
		u.used -= bytes
	}
	return s.err
}

func (u refUpstream) Info() (pressure.Info, error) {
	return pressure.Info{Free: u.total - u.used, Total: u.total}, nil
}

type refWaiter struct{ refUpstream }

func (u refWaiter) Synchronize() error {
	return u.fault(fmt.Sprintf("%d: synchronize", u.number), said{}).err
}

type refFencer struct{ refWaiter }

func (u refFencer) Fence(stream uint32) (pool.Fence, error) {
	return refFence(u), u.fault(fmt.Sprintf("%d: fence of %d", u.number, stream), said{}).err
}

type refFence refFencer

func (f refFence) Done() (bool, error) {
	s := f.fault(fmt.Sprintf("%d: done", f.number), said{done: !f.lagging || f.coin()})
	return s.done, s.err
}

func (f refFence) Close() error { return f.fault(fmt.Sprintf("%d: close", f.number), said{}).err }

// A refSink is told of the events of a pool.
type refSink struct{ *refPool }

func (s refSink) Label(string) uint32 { return 0 }
func (s refSink) Now() time.Duration  { return s.clock }
func (s refSink) Record(e trace.Event) {
	if e.Time+int64(e.Duration) != int64(s.clock) || e.Space != s.cfg.Space || e.Duration != 0 && e.Kind != trace.Refuse && e.Kind != trace.Sync {
		s.Fatalf("an event at %v: %+v", s.clock, e)
	}
	number := 0 // of the allocation that gave the object its identity
	switch e.Kind {
	case trace.Alloc:
		number = len(s.ids) + 1
		if _, again := s.ids[e.ID]; again {
			s.Fatalf("an identity for a second object: %+v", e)
		}
		s.ids[e.ID] = number
	case trace.Free:
		number = s.ids[e.ID]
	}
	s.say(said{what: fmt.Sprintf("%d: %v of %d, %d of %d, %d", s.number, e.Kind, number, e.Bytes, e.Stream, e.Aux)})
}

func (m *refPool) event(kind trace.Kind, number int, bytes int64, stream, aux uint32) {
	m.Helper()
	m.heard("%d: %v of %d, %d of %d, %d", m.number, kind, number, bytes, stream, aux)
}

// Purge and Drop free what is hoarded for them, or panic.
func (m *refPool) Purge() { m.reclaim(0) }
func (m *refPool) Drop()  { m.reclaim(1) }

func (m *refPool) reclaim(k int) {
	if s := m.fault(fmt.Sprintf("%d: reclaim %d", m.number, k), said{}); s.err != nil {
		panic(s.err)
	}
	for _, b := range m.hoard[k] {
		m.p.Free(b.Block)
	}
}

func up(n, unit int64) int64 {
	for n%unit != 0 {
		n++
	}
	return n
}

// segmentSizes: small blocks share 2 MiB, middle ones the multiple of 2 MiB from 20 to 40 MiB, half of that under a limit below
// 1,280 MiB, that loses the smallest share to whole blocks, larger ones have their own; then what is tight.
func (m *refPool) segmentSizes(size int64) (list []int64) {
	if m.cfg.Direct {
		return []int64{up(size, 4*kib)}
	}
	var roomy int64 // for what is no middle size the next one is the same
	switch {
	case size <= mib:
		roomy = 2 * mib
	case size < 10*mib:
		most := int64(40 * mib)
		if m.hard > 0 && m.hard < 1280*mib {
			most = 20 * mib
		}
		loss := func(bytes int64) float64 { return float64(bytes%size) / float64(bytes) }
		roomy = 0
		for n := int64(1); n*size <= most; n++ {
			if bytes := (n*size + 2*mib - 1) / (2 * mib) * (2 * mib); n*size >= most/2 && (roomy == 0 || float64(bytes-n*size)/float64(bytes) < loss(roomy)) {
				roomy = bytes
			}
		}
	default:
		roomy = (size + 2*mib - 1) / (2 * mib) * (2 * mib)
	}
	return slices.Compact([]int64{roomy, (size + 2*mib - 1) / (2 * mib) * (2 * mib), (size + 64*kib - 1) / (64 * kib) * (64 * kib)})
}

// reserved is what all pools have taken, those that are closed, too.
func (r *reference) reserved() (sum int64) {
	for _, m := range r.all {
		sum += m.stats.Reserved + m.above
	}
	return sum
}

func (r *reference) headroom() int64 {
	if r.hard == 0 {
		return pool.MaxBytes
	}
	return r.hard - r.reserved()
}

// take is the best fit: the smallest piece that suffices, and of those the lowest.
func (m *refPool) take(size int64, stream uint32) *refPiece {
	var best *refPiece
	for _, s := range m.segments {
		for _, x := range s.pieces {
			if s.stream == stream && s.small == (size <= mib) && x.free && !x.hole && x.size >= size &&
				(best == nil || x.size < best.size || x.size == best.size && x.addr < best.addr) {
				best = x
			}
		}
	}
	if best != nil {
		best.cut(size)
	}
	return best
}

// cut makes x a piece of size bytes that is somebody's, and a free one of the rest.
func (x *refPiece) cut(size int64) {
	s := x.of
	x.free = false
	if rest := x.size - size; rest > 0 {
		at := slices.Index(s.pieces, x)
		s.pieces = slices.Insert(s.pieces, at+1, &refPiece{of: s, addr: x.addr + uintptr(size), size: rest, free: true, hole: x.hole})
		x.size = size
	}
}

// give frees pieces: free neighbours are one piece.
func (m *refPool) give(pieces ...*refPiece) {
	for _, x := range pieces {
		x.free = true
	}
	for _, s := range m.segments {
		for k := len(s.pieces) - 1; k > 0; k-- {
			if a, b := s.pieces[k-1], s.pieces[k]; a.free && b.free && a.hole == b.hole {
				a.size += b.size
				s.pieces = slices.Delete(s.pieces, k, k+1)
			}
		}
	}
}

// retire: a pool that caches nothing gives a segment back once all of it is free.
func (m *refPool) retire(x *refPiece) {
	m.give(x)
	if s := x.of; !m.cfg.Direct && !m.closed {
		return
	} else if s.ranged {
		m.release(pool.MaxBytes)
	} else if len(s.pieces) == 1 {
		m.giveBack(s)
	}
}

// giveBack gives a segment to the device, if that takes it.
func (m *refPool) giveBack(s *refSegment) int64 {
	if m.asked("%d: release %#x %d of %d", m.number, s.pieces[0].addr, s.bytes, s.stream) != nil {
		m.heard("%d: warned", m.number)
		return 0
	}
	m.cachedAbove(m.above + s.bytes)
	m.segments = slices.DeleteFunc(m.segments, func(x *refSegment) bool { return x == s })
	m.stats.Reserved -= s.bytes
	m.event(trace.Release, 0, s.bytes, s.stream, 0)
	return s.bytes
}

// cachedAbove sets what counts as cached by the upstream; of a closed pool nothing does.
func (m *refPool) cachedAbove(bytes int64) {
	if m.above = max(0, bytes); m.closed || !m.caches {
		m.above = 0
	}
}

// look reads what the upstream has.
func (m *refPool) look() { m.cachedAbove(m.has - m.stats.Reserved) }

// trimAbove has the upstream give back that much of its cache.
func (m *refPool) trimAbove(bytes int64) int64 {
	if !m.caches {
		return 0
	}
	m.look()
	before := m.has
	if m.asked("%d: trim to %d", m.number, max(0, before-bytes)) != nil {
		m.heard("%d: warned", m.number)
	}
	m.look()
	return before - m.has
}

// yields gives back what the pool caches, and then what its upstream does.
func (m *refPool) yields(bytes int64) int64 {
	released := m.release(bytes)
	if released < bytes {
		released += m.trimAbove(bytes - released)
	}
	return released
}

// wholes are the segments that are free, the smallest first.
func (m *refPool) wholes() (list []*refSegment, bytes int64) {
	for _, s := range m.segments {
		if len(s.pieces) == 1 && s.pieces[0].free && !s.ranged {
			list = append(list, s)
			bytes += s.bytes
		}
	}
	slices.SortFunc(list, func(a, b *refSegment) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.pieces[0].addr, b.pieces[0].addr))
	})
	return list, bytes
}

// release gives back whole segments: the smallest that suffices; if none does, the largest, and so on; all of them if they are too few.
func (m *refPool) release(bytes int64) (released int64) {
	if m.chunk > 0 {
		return m.unmap(bytes)
	}
	list, sum := m.wholes()
	if sum >= bytes {
		list = pick(list, bytes, func(s *refSegment) int64 { return s.bytes })
	}
	for _, s := range list {
		released += m.giveBack(s)
	}
	return released
}

// pick is that choice, of a list that suffices, the smallest first.
func pick[T any](list []T, bytes int64, size func(T) int64) (chosen []T) {
	for bytes > 0 {
		k := slices.IndexFunc(list, func(x T) bool { return size(x) >= bytes })
		if k < 0 {
			k = len(list) - 1
		}
		chosen = append(chosen, list[k])
		bytes -= size(list[k])
		list = slices.Delete(list, k, k+1)
	}
	return chosen
}

// flush empties magazines and depot.
func (m *refPool) flush() (any bool) {
	a, b := m.empty(m.magazines), m.empty(m.depot)
	return a || b
}

func (m *refPool) empty(list map[int]*refMagazine) (any bool) {
	for _, g := range list {
		any = any || len(g.pieces) > 0
		m.give(g.pieces...)
		g.pieces = nil
	}
	return any
}

func (m *refPool) cached() (bytes int64) {
	for _, g := range m.magazines {
		bytes += int64(len(g.pieces)) * g.size
	}
	return bytes
}

func magazine(of map[int]*refMagazine, size int64, stream uint32) *refMagazine {
	slot := pool.SlotOf(size, stream)
	if of[slot] == nil {
		of[slot] = new(refMagazine)
	}
	return of[slot]
}

func (g *refMagazine) has(size int64, stream uint32) bool {
	return len(g.pieces) > 0 && g.size == size && g.stream == stream
}

func (g *refMagazine) pop() *refPiece {
	x := g.pieces[len(g.pieces)-1]
	g.pieces = g.pieces[:len(g.pieces)-1]
	return x
}

// push puts a freed piece on its magazine. What is in a full one goes to the depot if that has room, and else, like what has to make
// room, is free. A size has a quarter of the cache at most, but for one piece.
func (m *refPool) push(x *refPiece) {
	g := magazine(m.magazines, x.size, x.of.stream)
	same := g.size == x.size && g.stream == x.of.stream
	switch n := int64(len(g.pieces)); {
	case same && n == 64:
		d := magazine(m.depot, x.size, x.of.stream)
		if full := m.inDepot(); full < 256 && (len(d.pieces) == 0 || d.has(x.size, x.of.stream)) {
			d.size, d.stream = x.size, x.of.stream
			d.pieces = append(d.pieces, g.pieces...)
		} else {
			defer m.give(g.pieces...)
		}
		g.pieces = nil
	case same && n > 0 && (n+1)*x.size > m.keep/4:
		m.give(x)
		return
	case m.cached()+x.size > m.keep:
		m.makeRoom(x.size)
		m.give(x)
		return
	case !same:
		defer m.give(g.pieces...)
		*g = refMagazine{size: x.size, stream: x.of.stream}
	}
	g.pieces = append(g.pieces, x)
}

// makeRoom empties the next magazine of another size, round and round.
func (m *refPool) makeRoom(size int64) {
	if size > m.keep {
		return
	}
	for range 128 {
		m.emptied = (m.emptied + 1) % 128
		if g := m.magazines[m.emptied]; g != nil && len(g.pieces) > 0 && g.size != size {
			m.give(g.pieces...)
			g.pieces = nil
			return
		}
	}
}

func (m *refPool) inDepot() (magazines int) {
	for _, d := range m.depot {
		magazines += len(d.pieces) / 64
	}
	return magazines
}

// find looks in the depot, at free pieces, at what waited and is done, at all that is cached, at the device, and at it again once others have made room.
func (m *refPool) find(size int64, stream uint32) *refPiece {
	if !m.cfg.Direct {
		g, d := magazine(m.magazines, size, stream), magazine(m.depot, size, stream)
		if len(g.pieces) == 0 && m.cached()+64*size <= m.keep && d.has(size, stream) {
			n := len(d.pieces) - 64
			*g = refMagazine{size, stream, slices.Clone(d.pieces[n:])}
			d.pieces = d.pieces[:n]
			return g.pop()
		}
		if x := m.take(size, stream); x != nil {
			return x
		}
		if m.poll() {
			if x := m.take(size, stream); x != nil {
				return x
			}
		}
		if m.flush() {
			if x := m.take(size, stream); x != nil {
				return x
			}
		}
	}
	x := m.grow(size, stream)
	for _, bytes := range []int64{(size + 2*mib - 1) / (2 * mib) * (2 * mib), pool.MaxBytes} {
		if x == nil && m.yield(bytes) > 0 {
			x = m.grow(size, stream)
		}
	}
	return x
}

// grow asks for a segment of each size. Then whole segments are given back for what is lacking; under the limit, all, since others use the device.
func (m *refPool) grow(size int64, stream uint32) *refPiece {
	if m.chunk > 0 {
		return m.mapMore(size, stream)
	}
	sizes := m.segmentSizes(size)
	var x *refPiece
	var limited bool
	for _, bytes := range sizes {
		if x, limited = m.growBy(bytes, size, stream); x != nil {
			return x
		}
	}
	tight := sizes[len(sizes)-1]
	lacking := tight
	if limited {
		lacking -= m.headroom()
	}
	if _, bytes := m.wholes(); bytes >= lacking && m.release(lacking) >= lacking {
		if x, limited = m.growBy(tight, size, stream); x != nil {
			return x
		}
	}
	if !limited && m.release(pool.MaxBytes) > 0 {
		x, _ = m.growBy(tight, size, stream)
	}
	return x
}

func (m *refPool) growBy(bytes, size int64, stream uint32) (x *refPiece, limited bool) {
	if m.caches && m.hard > 0 {
		m.look()
	}
	m.cachedAbove(m.above - bytes) // it takes what it has cached first
	if m.caches && bytes > m.headroom() {
		m.trimAbove(pool.MaxBytes)
		m.cachedAbove(m.above - bytes)
	}
	if bytes > m.headroom() {
		return nil, true
	}
	m.stats.ReservedPeak = max(m.stats.ReservedPeak, m.stats.Reserved+bytes) // counted first
	if len(m.log) > 0 {
		x = &refPiece{addr: m.log[0].addr, size: bytes}
	}
	if m.asked("%d: allocate %d for %d", m.number, bytes, stream) != nil {
		return nil, false
	}
	m.stats.Reserved += bytes
	m.event(trace.Reserve, 0, bytes, stream, 0)
	s := &refSegment{bytes: bytes, stream: stream, small: size <= mib, pieces: []*refPiece{x}}
	x.of = s
	m.segments = append(m.segments, s)
	if m.caches && m.hard > 0 { // it may have taken more
		if m.look(); m.headroom() < 0 {
			m.trimAbove(pool.MaxBytes)
		}
		if m.headroom() < 0 {
			s.small = false
			m.give(x)
			m.giveBack(s)
			m.trimAbove(pool.MaxBytes)
			return nil, true
		}
	}
	x.cut(size)
	return x, false
}

// yield has the others give back that much.
func (m *refPool) yield(bytes int64) (released int64) {
	for _, q := range m.pools {
		if q != m && released < bytes {
			q.poll()
			q.flush()
			released += q.yields(bytes - released)
		}
	}
	return released
}

// alloc is what Alloc does; b is what it has returned, and err its error.
func (m *refPool) alloc(bytes int64, stream uint32, b pool.Block, err error) {
	m.Helper()
	if bytes < 0 || bytes > pool.MaxBytes {
		if !errors.Is(err, pool.ErrSize) {
			m.Fatalf("%d bytes: %v", bytes, err)
		}
		return
	}
	size := up(max(1, bytes), 512)
	var x *refPiece
	if g := magazine(m.magazines, size, stream); g.has(size, stream) {
		x = g.pop()
		m.stats.Hits++
	} else if m.closed {
		if !errors.Is(err, pool.ErrClosed) {
			m.Fatalf("closed: %v", err)
		}
		return
	} else if x = m.find(size, stream); x == nil {
		x = m.climb(size, stream, err)
	}
	if (x == nil) != (err != nil) {
		m.Fatalf("%d bytes: %v, want a block: %v", bytes, err, x != nil)
	}
	if x == nil {
		return
	}
	m.event(trace.Alloc, int(m.stats.Allocs)+1, size, stream, 0)
	if b.Addr != x.addr || b.Bytes != bytes || x.size != size {
		m.Fatalf("%d bytes at %#x for %d, want %d at %#x", b.Bytes, b.Addr, bytes, x.size, x.addr)
	}
	m.stats.Live += size
	m.stats.LivePeak = max(m.stats.LivePeak, m.stats.Live)
	m.stats.Allocated += size
	m.stats.Allocs++
	m.blocks = append(m.blocks, refBlock{b, x, int(m.stats.Allocs)})
}

// climb tries again in line, and after each step. The error says what each did.
func (m *refPool) climb(size int64, stream uint32, err error) *refPiece {
	m.stats.Refusals++
	m.line++
	defer func() { m.line-- }()
	if x := m.find(size, stream); x != nil {
		return x
	}
	var steps []pool.Climb
	for s := pool.StepReap; s <= pool.StepDrop; s++ {
		live, reserved := m.sampled()
		failed := m.step(s)
		after, left := m.sampled()
		steps = append(steps, pool.Climb{Step: s, Freed: max(0, live-after), Released: max(0, reserved-left), Err: failed})
		m.event(trace.Refuse, 0, size, 0, uint32(s))
		if x := m.find(size, stream); x != nil {
			return x
		}
	}
	m.stats.Failures++
	var oom *pool.OutOfMemoryError
	if !errors.As(err, &oom) || !errors.Is(err, pool.ErrOutOfMemory) {
		m.Fatalf("refused: %v", err)
	}
	m.refused(oom, size)
	for k, s := range oom.Steps {
		if want := steps[min(k, len(steps)-1)]; s.Step != want.Step || s.Freed != want.Freed || s.Released != want.Released || (s.Err != nil) != (want.Err != nil) {
			m.Fatalf("step %d of %+v, want %+v", k, s, want)
		}
	}
	if len(oom.Steps) != len(steps) {
		m.Fatalf("%d steps, want %d", len(oom.Steps), len(steps))
	}
	return nil
}

func (m *refPool) refused(oom *pool.OutOfMemoryError, size int64) {
	want := pressure.Sample{Space: m.cfg.Space, Live: m.stats.Live, Reserved: m.stats.Reserved, Limit: m.budget(oom.Sample.Limit)}
	m.look() // for the report
	if oom.Bytes != size || oom.Sample != want || oom.Err == nil || oom.Report == "" || (len(oom.Holders) > 0) != (m.cfg.Sites == 1 && m.stats.Live > 0) {
		m.Fatalf("%+v, want %d bytes and %+v", oom, size, want)
	}
}

// sampled is what the device's pools have live and reserved.
func (r *reference) sampled() (live, reserved int64) {
	for _, q := range r.pools {
		live += q.stats.Live
	}
	return live, max(live, r.reserved())
}

// each calls do for m and then for the others, and returns the first error.
func (m *refPool) each(do func(*refPool) error) (first error) {
	first = do(m)
	for _, q := range m.pools {
		if q == m {
			continue
		}
		if err := do(q); first == nil {
			first = err
		}
	}
	return first
}

func (m *refPool) step(s pool.Step) error {
	switch s {
	case pool.StepPurge:
		return m.each(func(q *refPool) error { return q.reclaimed(0) })
	case pool.StepSynchronize:
		return m.each((*refPool).synchronize)
	case pool.StepDrop:
		return m.each(func(q *refPool) error { return q.reclaimed(1) })
	}
	return nil // nothing was left to a collector
}

func (m *refPool) reclaimed(k int) error {
	if !m.reclaims {
		return nil
	}
	if err := m.heard("%d: reclaim %d", m.number, k).err; err != nil {
		return err
	}
	for _, b := range m.hoard[k] {
		m.free(b)
	}
	m.hoard[k] = nil
	return nil
}

// free is what Free does.
func (m *refPool) free(b refBlock) {
	x := b.refPiece
	m.event(trace.Free, b.number, x.size, x.of.stream, trace.FreeExplicit)
	m.stats.Live -= x.size
	m.stats.Freed += x.size
	m.stats.Frees++
	used := x.used
	x.used = nil
	if !m.cfg.Direct && !m.closed && m.line == 0 && len(used) == 0 {
		m.push(x)
	} else if len(used) == 0 || !m.wait(x, used) {
		m.retire(x)
	}
}

// wait puts x among those that wait for a fence of the one stream that uses them, else for the device.
func (m *refPool) wait(x *refPiece, used []uint32) bool {
	fence := false
	if m.fences && len(used) == 1 {
		if fence = m.heard("%d: fence of %d", m.number, used[0]).err == nil; !fence {
			m.heard("%d: warned", m.number)
		}
	}
	if !fence && !m.waits {
		return false
	}
	m.waiting = append(m.waiting, refWait{x, fence})
	return true
}

// poll frees what waits no longer.
func (m *refPool) poll() (any bool) {
	var still, done []refWait
	for _, w := range m.waiting {
		passed := false
		if w.fence {
			call := m.heard("%d: done", m.number)
			if passed = call.done; call.err != nil {
				m.heard("%d: warned", m.number)
			}
		}
		if !passed {
			still = append(still, w)
			continue
		}
		done = append(done, w)
		m.leave(w)
	}
	m.waiting = still
	return len(done) > 0
}

func (m *refPool) leave(w refWait) {
	if w.fence && m.heard("%d: close", m.number).err != nil {
		m.heard("%d: warned", m.number)
	}
	m.retire(w.refPiece)
}

func (m *refPool) synchronize() error {
	if !m.waits {
		m.poll()
		return nil
	}
	if err := m.heard("%d: synchronize", m.number).err; err != nil {
		return err
	}
	all := m.waiting
	m.waiting = nil
	for _, w := range all {
		m.leave(w)
	}
	return nil
}

// trim gives back what the device's pools cache above the soft limit.
func (m *refPool) trim() {
	m.look()
	over := m.reserved() - m.soft
	if m.soft == 0 || over <= 0 {
		return
	}
	m.flush()
	if released := m.yields(over); released < over {
		m.yield(over - released)
	}
}

func (m *refPool) freeAll() int64 {
	m.poll()
	m.flush()
	return m.yields(pool.MaxBytes)
}

// limit works out the limits: those that were set, else the smallest of the pools' own; set ones last until all pools are closed. If they have changed,
// what is cached above them goes back.
func (r *reference) limit() {
	soft, hard := r.soft, r.hard
	if r.soft, r.hard = 0, 0; r.set != nil {
		r.soft, r.hard = r.set.Soft.Bytes, r.set.Hard.Bytes
	}
	for _, m := range r.pools {
		if s := m.own.Soft.Bytes; s > 0 && (r.soft == 0 || s < r.soft) {
			r.soft = s
		}
		if h := m.own.Hard.Bytes; h > 0 && (r.hard == 0 || h < r.hard) {
			r.hard = h
		}
	}
	for _, m := range r.pools {
		if soft == r.soft && hard == r.hard {
			continue
		}
		m.empty(m.magazines)
		if m.keep = 64 * mib; r.hard > 0 {
			m.keep = min(m.keep, r.hard)
		}
		m.tellSoft()
		if over := -m.headroom(); over > 0 {
			m.flush()
			m.yields(over)
		}
		m.trim()
	}
	r.free = r.total - r.used + r.reserved()
}

// tellSoft tells a Cacher the soft limit.
func (m *refPool) tellSoft() {
	if m.caches && m.soft > 0 && m.asked("%d: keep %d", m.number, m.soft) != nil {
		m.heard("%d: warned", m.number)
	}
}

// budget is a limit, or what was free or reserved when limits or pools changed last. That holds for ten seconds: on a machine that takes longer
// the pool's own is taken for right.
func (r *reference) budget(got int64) int64 {
	if r.hard+r.soft == 0 && time.Since(r.began) > 9*time.Second {
		return got
	}
	return cmp.Or(r.hard, r.soft, r.free)
}

// someLimits are above and below what is reserved.
func (r *reference) someLimits() (l pressure.Limits) {
	if r.coin() {
		l.Hard.Bytes = int64(r.between(2, 64)) * mib
	}
	if r.IntN(3) == 0 {
		l.Soft.Bytes = int64(r.between(1, 32)) * mib
	}
	return l
}

func (r *reference) open() bool {
	if len(r.pools) == 3 {
		return false
	}
	m := &refPool{reference: r, number: len(r.all), ids: map[uint64]int{}, magazines: map[int]*refMagazine{}, depot: map[int]*refMagazine{}}
	m.waits, m.fences, m.reclaims, m.caches, m.keep = r.IntN(3) > 0, r.coin(), r.coin(), r.IntN(4) == 0, 64*mib
	mapper := r.IntN(3) == 0
	m.caches = m.caches && !mapper
	m.cfg = pool.Config{
		Space: oneOf(r.schedule, pressure.Device(0), pressure.Managed), Direct: r.IntN(4) == 0, ExactPeaks: r.coin(), Sites: int64(r.IntN(2)), Trace: refSink{m}, Limits: r.someLimits(),
		Warn: func(err error) {
			m.say(said{what: fmt.Sprintf("%d: warned", m.number), err: err})
			if m.coin() {
				panic("who warns the warner")
			}
		},
	}
	if m.cfg.Direct && !m.caches {
		m.cfg.Limits.Soft = pressure.Limit{}
	}
	m.cfg.Upstream = refUpstream{m}
	if mapper {
		m.cfg.Upstream = refMapper{refWaiter{refUpstream{m}}}
		m.waits, m.fences = true, false
	}
	if m.caches {
		m.waits, m.fences = false, false
		m.cfg.Upstream = refCacher{refUpstream{m}}
	}
	if m.fences = m.fences && m.waits; m.fences {
		m.cfg.Upstream = refFencer{refWaiter{refUpstream{m}}}
	} else if m.waits && !mapper {
		m.cfg.Upstream = refWaiter{refUpstream{m}}
	}
	p, err := pool.New(m.cfg)
	if err != nil {
		r.Fatal(err)
	}
	m.p, m.own = p, m.cfg.Limits
	r.all = append(r.all, m)
	r.pools = append(r.pools, m)
	r.limit()
	m.tellSoft()
	if mapper && !m.cfg.Direct {
		m.chunk = m.chunkSize()
	}
	p.OneCache()
	if m.flush(); r.hard > 0 {
		m.keep = min(m.keep, r.hard)
	}
	if m.reclaims {
		p.Register(m)
	}
	return true
}

// a is any pool; of those that are closed some.
func (r *reference) a() *refPool {
	if r.IntN(10) > 0 {
		return oneOf(r.schedule, r.pools...)
	}
	return oneOf(r.schedule, r.all...)
}

// compare looks at all pools.
func (r *reference) compare() {
	if len(r.log) > 0 {
		r.Fatalf("nobody expects %+v", r.log)
	}
	for _, m := range r.all {
		want := m.stats
		for _, s := range m.segments {
			for _, x := range s.pieces {
				if x.free && !x.hole {
					want.FreeBlocks++
					want.Largest = max(want.Largest, x.size)
				}
			}
		}
		for _, list := range []map[int]*refMagazine{m.magazines, m.depot} {
			for _, g := range list {
				if n := len(g.pieces); n > 0 {
					want.FreeBlocks += int64(n)
					want.Largest = max(want.Largest, g.size)
				}
			}
		}
		want.Segments, want.Waiting, want.Cached = int64(len(m.segments)), int64(len(m.waiting)), want.Reserved-want.Live
		got := m.p.Stats()
		m.look()
		if m.caches {
			want.Upstream = m.usage
		}
		if !m.closed { // else the limits are those of the last moment
			want.Limits.Soft, want.Limits.Hard, want.Limits.Budget = r.soft, r.hard, r.budget(got.Limits.Budget)
			if soft, hard := m.p.Limits(); soft != r.soft || hard != r.hard {
				r.Fatalf("limits %d and %d, want %d and %d", soft, hard, r.soft, r.hard)
			}
		} else {
			want.Limits = got.Limits
		}
		if !reflect.DeepEqual(got, want) {
			r.Fatalf("pool %d:\n%+v, want\n%+v", m.number, got, want)
		}
		if s := m.p.Sample(); s.Live != want.Live || s.Reserved != want.Reserved || s.Space != m.cfg.Space || !m.closed && s.Limit != r.budget(s.Limit) || m.p.Allocated() != want.Allocated {
			r.Fatalf("pool %d: sample %+v, %d allocated, want %+v", m.number, s, m.p.Allocated(), want)
		}
		var held pool.Holder
		for _, h := range m.p.Holders(math.MaxInt) {
			held.Bytes, held.Blocks = held.Bytes+h.Bytes, held.Blocks+h.Blocks
		}
		if sum := (pool.Holder{Bytes: want.Live, Blocks: want.Allocs - want.Frees}); m.cfg.Sites == 1 && held != sum {
			r.Fatalf("pool %d: holders %+v, want %+v", m.number, held, sum)
		}
	}
}

// someBytes has sizes of each class, few of them, so that they meet again.
func (r *reference) someBytes() int64 {
	return oneOf(r.schedule, 0, 1, 512, 513, int64(r.between(0, 4))*4096, int64(r.between(1, 2*mib)), mib, mib+1, 3*mib, 10*mib-512, 10*mib, 10*mib+1,
		int64(r.between(1, 24))*mib, int64(r.between(1, 24))*64*kib)
}

func (r *reference) alloc(m *refPool, bytes int64, stream uint32) {
	b, err := m.p.Alloc(bytes, stream)
	m.alloc(bytes, stream, b, err)
}

// freeOne frees some block of m.
func (m *refPool) freeOne(k int) {
	b := m.blocks[k]
	m.blocks = slices.Delete(m.blocks, k, k+1)
	m.p.Free(b.Block)
	m.free(b)
}

func (r *reference) steps() map[string]func(*schedule) bool {
	of := func(do func(m *refPool) bool) func(*schedule) bool {
		return func(*schedule) bool {
			r.clock += time.Millisecond
			return do(r.a())
		}
	}
	alloc := of(func(m *refPool) bool {
		r.alloc(m, oneOf(r.schedule, r.someBytes(), r.someBytes(), r.someBytes(), -1, pool.MaxBytes+1), uint32(r.IntN(2)))
		return true
	})
	free := of(func(m *refPool) bool {
		if len(m.blocks) > 0 {
			m.freeOne(r.IntN(len(m.blocks)))
		}
		return len(m.blocks) > 0
	})
	return map[string]func(*schedule) bool{
		"alloc": alloc, "alloc again": alloc, "alloc once more": alloc, "free": free, "free again": free,
		"burst": of(func(m *refPool) bool { // fills magazines, and the depot
			bytes, n := oneOf[int64](r.schedule, 512, 1024, 4096, 64*kib, 300*kib, int64(r.between(1, 100))*512), r.between(60, 200)
			for range n {
				r.alloc(m, bytes, 0)
			}
			for range min(n, len(m.blocks)) {
				m.freeOne(len(m.blocks) - 1)
			}
			return true
		}),
		"use": of(func(m *refPool) bool {
			if len(m.blocks) == 0 {
				return false
			}
			b := oneOf(r.schedule, m.blocks...)
			s := oneOf[uint32](r.schedule, 0, 1, 7, 8)
			m.p.Use(b.Block, s)
			if s != b.of.stream && !slices.Contains(b.used, s) {
				b.used = append(b.used, s)
			}
			return true
		}),
		"hoard": of(func(m *refPool) bool {
			if len(m.blocks) == 0 || !m.reclaims {
				return false
			}
			k, at := r.IntN(2), r.IntN(len(m.blocks))
			m.hoard[k] = append(m.hoard[k], m.blocks[at])
			m.blocks = slices.Delete(m.blocks, at, at+1)
			return true
		}),
		"free all": of(func(m *refPool) bool {
			if got, want := m.p.FreeAllBlocks(), m.freeAll(); got != want {
				r.Fatalf("%d bytes were given back, want %d", got, want)
			}
			return true
		}),
		"synchronize": of(func(m *refPool) bool {
			err, want := error(nil), error(nil)
			if r.coin() {
				err, want = m.p.Synchronize(), m.synchronize()
			} else { // a wait for something else
				err = m.p.Sync(nil, func() error { return nil })
			}
			if (err != nil) != (want != nil) {
				r.Fatalf("%v, want %v", err, want)
			}
			m.event(trace.Sync, 0, 0, 0, 0)
			m.poll()
			m.trim()
			return true
		}),
		"reclaim": of(func(m *refPool) bool {
			level := pool.Step(r.IntN(int(pool.StepDrop) + 1))
			before := r.reserved()
			got := m.p.Reclaim(level)
			for s := pool.StepReap; s <= level; s++ {
				if m.step(s) != nil {
					m.heard("%d: warned", m.number)
				}
			}
			m.freeAll()
			if want := max(0, before-r.reserved()); got != want {
				r.Fatalf("%d bytes were reclaimed, want %d", got, want)
			}
			return true
		}),
		"set limits": of(func(m *refPool) bool {
			if m.closed {
				return false
			}
			l := r.someLimits()
			if err := m.p.SetLimits(l); (err != nil) != (m.cfg.Direct && l.Soft.Bytes > 0 && !m.caches) {
				r.Fatal(err)
			} else if err == nil {
				r.set = &l
				for _, q := range r.pools {
					q.own = pressure.Limits{}
				}
				r.limit()
			}
			return true
		}),
		"reset peaks": of(func(m *refPool) bool {
			m.p.ResetPeaks()
			m.stats.LivePeak, m.stats.ReservedPeak = m.stats.Live, m.stats.Reserved
			return true
		}),
		"open": func(*schedule) bool { return r.open() },
		"close": of(func(m *refPool) bool {
			if r.IntN(4) > 0 || m.closed || len(r.pools) == 1 {
				return false
			}
			m.close()
			return true
		}),
		"weather": func(*schedule) bool {
			r.lagging, r.failing = r.coin(), oneOf(r.schedule, 0, 0, 0, 20)
			return true
		},
	}
}

// close keeps what is handed out, and says so.
func (m *refPool) close() {
	m.p.Close()
	m.closed = true
	if m.synchronize() != nil {
		m.heard("%d: warned", m.number)
	}
	m.look()
	if s := m.stats; s.Live > 0 {
		err := m.heard("%d: warned", m.number).err
		if want := fmt.Sprintf("pool: %v pool closed with %v live in %d blocks", m.cfg.Space, pressure.Bytes(s.Live), s.Allocs-s.Frees); !strings.HasPrefix(err.Error(), want) || m.cfg.Sites == 0 && err.Error() != want {
			m.Errorf("closed with %q, want %q", err, want)
		}
	}
	m.freeAll()
	m.cachedAbove(0)
	m.pools = slices.DeleteFunc(m.pools, func(q *refPool) bool { return q == m })
	if len(m.pools) == 0 {
		m.set = nil
	}
	m.limit()
}

func TestReference(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("there are too few addresses to use each of them once")
	}
	n := 60
	if testing.Short() {
		n *= 5 // of which a fifth are run
	}
	schedules(t, n, func(rt *schedule) {
		r := &reference{schedule: rt, total: int64(rt.between(16, 96)) * mib, next: 1 << (bits.UintSize - 24), began: time.Now(), failing: 10 * rt.IntN(2)}
		r.open()
		for range 4 {
			rt.repeat(r.steps(), r.compare)
		}
		r.failing = 0
		for _, m := range slices.Clone(r.pools) {
			m.close()
			r.compare()
		}
		for _, m := range r.all {
			m.blocks = append(m.blocks, append(m.hoard[0], m.hoard[1]...)...)
			for len(m.blocks) > 0 {
				m.freeOne(0)
			}
			m.p.FreeAllBlocks()
			m.freeAll()
			if err := m.p.Synchronize(); err != nil {
				r.Fatal(err)
			}
			m.synchronize()
			m.event(trace.Sync, 0, 0, 0, 0)
			m.p.FreeAllBlocks()
			m.freeAll()
		}
		r.compare()
		for _, m := range r.all {
			if m.caches {
				r.used -= m.usage.Reserved // which it keeps
			}
		}
		if r.used != 0 {
			r.Fatalf("%d bytes are left on the device", r.used)
		}
	})
}
