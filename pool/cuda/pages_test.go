package cuda

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/pool"
)

// strictChunks is a driver that holds pages to CUDA's rules: what is mapped is not
// mapped again, unmapping takes whole mappings, memory is given back once and is
// free once nothing is mapped to it, and nothing is unmapped while work uses it.
type strictChunks struct {
	next    uintptr
	last    chunk
	alive   map[chunk]bool       // created, and not released
	at      map[uintptr]mappedAt // by address
	ranges  map[uintptr]int64    // bytes
	queued  map[uint32]int       // work of each stream
	done    map[uint32]int       //
	used    map[uintptr][2]int   // stream and place in its work, of the last user of a chunk's address
	marks   int                  // not closed
	waits   int
	failing int // calls until one fails; 0: none does
}

type mappedAt struct {
	memory chunk
	bytes  int64
}

var errStrict = errors.New("call that fails")

func (d *strictChunks) fails() error {
	if d.failing > 0 {
		if d.failing--; d.failing == 0 {
			return errStrict
		}
	}
	return nil
}

func (d *strictChunks) total() (int64, error) { return 1 << 20, nil }

func (d *strictChunks) reserve(bytes int64) (uintptr, error) {
	if err := d.fails(); err != nil {
		return 0, err
	}
	d.next += 4096 // not a multiple of the chunk
	addr := d.next
	d.next += uintptr(bytes)
	d.ranges[addr] = bytes
	return addr, nil
}

func (d *strictChunks) free(addr uintptr, bytes int64) error {
	if d.ranges[addr] != bytes {
		panic(fmt.Sprintf("%d bytes at %#x are not reserved", bytes, addr))
	}
	for at := range d.at {
		if at >= addr && at < addr+uintptr(bytes) {
			panic(fmt.Sprintf("%#x is still mapped", at))
		}
	}
	delete(d.ranges, addr)
	return nil
}

func (d *strictChunks) create(_ int64, memory []chunk) error {
	if err := d.fails(); err != nil {
		return err
	}
	for k := range memory {
		d.last++
		memory[k] = d.last
		d.alive[d.last] = true
	}
	return nil
}

func (d *strictChunks) release(memory []chunk) error {
	for _, c := range memory {
		if !d.alive[c] {
			panic(fmt.Sprintf("chunk %d is given back twice", c))
		}
		delete(d.alive, c)
	}
	return nil
}

func (d *strictChunks) mapTo(addr uintptr, bytes int64, memory []chunk) error {
	if err := d.fails(); err != nil {
		return err
	}
	for k, c := range memory {
		at := addr + uintptr(k)*uintptr(bytes)
		if _, is := d.at[at]; is || !d.alive[c] {
			panic(fmt.Sprintf("%#x is mapped already, or chunk %d is gone", at, c))
		}
		d.at[at] = mappedAt{c, bytes}
	}
	return nil
}

func (d *strictChunks) unmap(addr uintptr, bytes int64) error {
	if err := d.fails(); err != nil {
		return err
	}
	for end := addr + uintptr(bytes); addr < end; {
		m, is := d.at[addr]
		if !is || addr+uintptr(m.bytes) > end {
			panic(fmt.Sprintf("%#x is not mapped, or not as a whole", addr))
		}
		if u, is := d.used[addr]; is && d.done[uint32(u[0])] < u[1] {
			panic(fmt.Sprintf("work uses %#x", addr))
		}
		delete(d.at, addr)
		delete(d.used, addr)
		addr += uintptr(m.bytes)
	}
	return nil
}

func (d *strictChunks) after(stream, before uint32) error {
	if stream == before {
		panic("a stream after itself")
	}
	return d.fails()
}

func (d *strictChunks) capturing(uint32) (bool, error)   { return false, d.fails() }
func (d *strictChunks) access(uintptr, int64, int) error { return nil }

func (d *strictChunks) end(stream uint32) (fence, error) {
	if err := d.fails(); err != nil {
		return nil, err
	}
	d.marks++
	return &strictMark{d, stream, d.queued[stream]}, nil
}

type strictMark struct {
	d      *strictChunks
	stream uint32
	place  int
}

func (m *strictMark) Done() (bool, error) { return m.d.done[m.stream] >= m.place, nil }

func (m *strictMark) wait() error {
	m.d.waits++
	m.d.done[m.stream] = max(m.d.done[m.stream], m.place)
	return nil
}

func (m *strictMark) Close() error { m.d.marks--; return nil }

// TestPagesAgainstModel maps, moves and unmaps random runs of chunks over a strict
// driver, whose calls fail, and holds what lies where to a model.
func TestPagesAgainstModel(t *testing.T) {
	const unit = 1 << 16
	rapid.Check(t, func(rt *rapid.T) {
		d := &strictChunks{alive: map[chunk]bool{}, at: map[uintptr]mappedAt{}, ranges: map[uintptr]int64{},
			queued: map[uint32]int{}, done: map[uint32]int{}, used: map[uintptr][2]int{}}
		p := newPages(d, unit)
		base, bytes, err := p.Range(unit, 0)
		if err != nil || base%unit != 0 || bytes < 2<<20 {
			rt.Fatal(base, bytes, err)
		}
		const places = 32
		model := map[int]chunk{} // by place
		run := func(label string, mapped bool) []pool.Span {
			var spans []pool.Span
			for k := rapid.IntRange(0, places-1).Draw(rt, label); k < places; k++ {
				if _, is := model[k]; is != mapped {
					break
				}
				spans = append(spans, pool.Span{Addr: base + uintptr(k)*unit, Bytes: unit, Stream: uint32(rapid.IntRange(0, 2).Draw(rt, "stream"))})
			}
			return spans
		}
		place := func(s pool.Span) int { return int((s.Addr - base) / unit) }
		rt.Repeat(map[string]func(*rapid.T){
			"work": func(rt *rapid.T) {
				for _, s := range run("used", true) {
					d.queued[s.Stream]++
					d.used[s.Addr] = [2]int{int(s.Stream), d.queued[s.Stream]}
				}
			},
			"pass": func(rt *rapid.T) {
				stream := uint32(rapid.IntRange(0, 2).Draw(rt, "stream"))
				d.done[stream] = d.queued[stream]
			},
			"fail": func(rt *rapid.T) { d.failing = rapid.IntRange(1, 8).Draw(rt, "calls") },
			"map": func(rt *rapid.T) {
				to, from := run("to", false), run("from", true)
				from = from[:min(len(from), len(to))]
				for k, s := range from { // the pool gives what is free for later work of its stream
					if u, is := d.used[s.Addr]; is {
						from[k].Stream = uint32(u[0])
					}
				}
				if len(to) == 0 {
					return
				}
				err := p.Map(to, from, uint32(rapid.IntRange(0, 2).Draw(rt, "stream")))
				if err != nil {
					if !errors.Is(err, errStrict) {
						rt.Fatal(err)
					}
					return
				}
				for k, s := range to {
					if k < len(from) {
						model[place(s)] = model[place(from[k])]
						delete(model, place(from[k]))
					} else {
						model[place(s)] = p.memory[s.Addr]
					}
				}
			},
			"unmap": func(rt *rapid.T) {
				for _, s := range run("out", true) {
					if u, is := d.used[s.Addr]; is {
						s.Stream = uint32(u[0])
					}
					if err := p.Unmap(s); err == nil {
						delete(model, place(s))
					} else if !errors.Is(err, errStrict) {
						rt.Fatal(err)
					}
				}
			},
			"refused": func(rt *rapid.T) {
				for k := range places {
					s := pool.Span{Addr: base + uintptr(k)*unit, Bytes: unit}
					_, mapped := model[k]
					if mapped && p.Map([]pool.Span{s}, nil, 0) == nil || !mapped && p.Unmap(s) == nil {
						rt.Fatal("mapped twice, or unmapped what has no memory")
					}
					s.Addr += 512
					if p.Unmap(s) == nil || p.Map([]pool.Span{s}, nil, 0) == nil {
						rt.Fatal("less than a chunk is taken")
					}
				}
			},
			"": func(rt *rapid.T) {
				if len(p.memory) != len(model) || len(d.alive) != len(model) || d.marks != len(p.old) {
					rt.Fatalf("%d chunks mapped, %d alive, %d marks, %d old runs; want %d", len(p.memory), len(d.alive), d.marks, len(p.old), len(model))
				}
				for k, c := range model {
					if at := base + uintptr(k)*unit; p.memory[at] != c || d.at[at].memory != c {
						rt.Fatalf("place %d has chunk %d, the driver's %d, want %d", k, p.memory[at], d.at[at].memory, c)
					}
				}
			},
		})
		d.failing = 0
		for k := range model {
			s := pool.Span{Addr: base + uintptr(k)*unit, Bytes: unit}
			if u, is := d.used[s.Addr]; is {
				s.Stream = uint32(u[0])
			}
			if err := p.Unmap(s); err != nil {
				rt.Fatal(err)
			}
		}
		if err := p.FreeRange(base); err != nil {
			rt.Fatal(err)
		}
		if len(d.at) != 0 || len(d.alive) != 0 || len(d.ranges) != 0 || d.marks != 0 {
			rt.Fatalf("left: %d mappings, %d chunks, %d ranges, %d marks", len(d.at), len(d.alive), len(d.ranges), d.marks)
		}
	})
}

// Memory that moves waits for nobody, and what is mapped side by side is one call.
func TestMovingDoesNotWait(t *testing.T) {
	const unit = 1 << 16
	d := &strictChunks{alive: map[chunk]bool{}, at: map[uintptr]mappedAt{}, ranges: map[uintptr]int64{},
		queued: map[uint32]int{1: 5}, done: map[uint32]int{}, used: map[uintptr][2]int{}}
	p := newPages(d, unit)
	base, _, err := p.Range(unit, 0)
	ok(t, err)
	span := func(place, n int, stream uint32) []pool.Span {
		return []pool.Span{{Addr: base + uintptr(place)*unit, Bytes: int64(n) * unit, Stream: stream}}
	}
	ok(t, p.Map(span(0, 4, 1), nil, 1))
	ok(t, p.Map(span(8, 4, 1), span(0, 4, 1), 2))
	if d.waits != 0 || len(p.old) != 1 || len(d.at) != 8 {
		t.Errorf("%d waits, %d old runs, %d mapped", d.waits, len(p.old), len(d.at))
	}
	d.done[1] = 5
	ok(t, p.Map(span(16, 1, 0), nil, 0)) // the work has ended meanwhile
	if d.waits != 0 || len(p.old) != 0 || len(d.at) != 5 {
		t.Errorf("%d waits, %d old runs, %d mapped", d.waits, len(p.old), len(d.at))
	}
}
