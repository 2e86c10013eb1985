package pool

import (
	"reflect"
	"sync/atomic"

	"github.com/eagergc/eagergc/trace"
)

// A sink takes the events of a pool and knows which blocks the recording has. A nil sink takes no
// events.
type sink struct {
	trace.Sink
	beginning atomic.Bool     // SetTrace records the live blocks, under Pool.once
	objects   table[recorded] // by header
	rest      recorded        // live blocks beyond the number that can be recorded one by one
}

// recorded is a block in a recording. The goroutine that changes id from 0 to claimed writes the
// other fields and then the identity.
type recorded struct {
	id     atomic.Uint64 // 0 = the recording does not have the block
	bytes  int64
	stream uint32
	gen    uint32 // of the header
}

const claimed = ^uint64(0)

// identities counts the recorded blocks of all pools, because pools share recordings. Collectors
// have the identities with the highest bit.
var identities atomic.Uint64

// beginMax is how many blocks a recording takes over one by one when it begins. The buffer of a
// [trace.Recorder] has room for them.
const beginMax = 1 << 14

// SetTrace sends events from now on to s; nil stops that. If the pool made its collector itself,
// the collector's events go there too. A recording begins with the live blocks, up to 16384 of them
// one by one, and the others as one object that stays. If the last sink is set again, its recording
// continues: what was freed meanwhile is freed in it.
func (p *Pool) SetTrace(s trace.Sink) {
	p.once.Lock()
	defer p.once.Unlock()
	var to *sink
	switch {
	case s == nil:
	case p.last != nil && reflect.TypeOf(s).Comparable() && p.last.Sink == s:
		to = p.last
	default:
		to = &sink{Sink: s}
		p.last = to
	}
	if to != nil {
		to.beginning.Store(true)
		defer to.beginning.Store(false)
	}
	p.sink.Store(to)
	if c := p.collect.Load(); c != nil && c.private {
		c.c.SetRecorder(to.orNil())
	}
	if to == nil {
		return
	}
	if p.sites.rate > 1 {
		p.recordIn(to, trace.Event{Kind: trace.Mark, Bytes: p.sites.rate, Aux: to.Label(trace.SiteRateLabel)})
	}
	p.recordLive(to)
}

func (s *sink) orNil() trace.Sink {
	if s == nil {
		return nil
	}
	return s.Sink
}

// begun returns the sink. While SetTrace records the live blocks, it waits.
func (p *Pool) begun() *sink {
	s := p.sink.Load()
	if s != nil && s.beginning.Load() {
		p.once.Lock()
		defer p.once.Unlock()
	}
	return s
}

// object returns what s knows of the block of header i.
func (s *sink) object(i uint32) *recorded {
	s.objects.grow(i)
	return s.objects.at(i)
}

// recordLive records the live blocks when a recording begins. Calls that allocate or free meanwhile
// wait until it returns. They then record the events that it has not recorded.
func (p *Pool) recordLive(s *sink) {
	p.core.mu.Lock()
	used := p.core.headers.used
	p.core.mu.Unlock()
	p.recordFree(s, &s.rest, s.rest.id.Load(), trace.FreeExplicit)
	begun, rest := 0, int64(0)
	for n := uint32(0); n <= used|63; n++ {
		i := spread(n)
		h := p.core.headers.find(i)
		if h == nil {
			continue
		}
		x, gen := s.object(i), h.gen.Load()
		if id := x.id.Load(); id != 0 && id != claimed && x.gen != gen {
			p.recordFree(s, x, id, trace.FreeExplicit)
		}
		switch {
		case gen%2 == 0 || x.id.Load() != 0:
		case begun < beginMax:
			p.recordAlloc(s, x, h, gen, s.Label(trace.BeforeLabel))
			begun++
		default:
			rest += h.size
		}
	}
	if rest > 0 {
		p.recordAlloc(s, &s.rest, &header{size: rest}, 0, s.Label(trace.BeforeLabel))
	}
}

// recordAlloc records a block that is handed out, unless the recording has it.
func (p *Pool) recordAlloc(s *sink, x *recorded, h *header, gen, label uint32) {
	if !x.id.CompareAndSwap(0, claimed) {
		return
	}
	x.bytes, x.stream, x.gen = h.size, h.stream, gen
	id := identities.Add(1)
	x.id.Store(id)
	p.recordIn(s, trace.Event{Kind: trace.Alloc, ID: id, Bytes: x.bytes, Stream: x.stream, Aux: label})
}

// recordFree records that a block is gone, if the recording has it as id.
func (p *Pool) recordFree(s *sink, x *recorded, id uint64, cause uint32) {
	if id == 0 {
		return
	}
	e := trace.Event{Kind: trace.Free, ID: id, Bytes: x.bytes, Stream: x.stream, Aux: cause}
	if x.id.CompareAndSwap(id, 0) {
		p.recordIn(s, e)
	}
}

// record sends an event that ends now, if there is a sink.
func (p *Pool) record(e trace.Event) {
	if s := p.sink.Load(); s != nil {
		p.recordIn(s, e)
	}
}

func (p *Pool) recordIn(s *sink, e trace.Event) {
	e.Space = p.cfg.Space
	e.Time = int64(s.Now() - e.Duration)
	s.Record(e)
}
