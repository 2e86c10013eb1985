package pool_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// TestPoolAgainstAModelOfADevice runs random schedules over a device whose
// streams lag and whose calls fail and panic. No memory is handed out twice, or
// to a stream other than that of its segment, or given back, before all work
// that uses it is done; views keep it; a second free is a panic that changes
// nothing; the device has what the pool counts as reserved, after every step, and
// nothing when a closed pool's last block is back.
func TestPoolAgainstAModelOfADevice(t *testing.T) {
	schedules(t, 150, func(rt *schedule) {
		c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		up := &shaky{segments: map[uintptr]segment{}, queued: map[uint32]int{}, done: map[uint32]int{}}
		cfg := pool.Config{
			Upstream: up, Collector: c, Space: pressure.Device(0), Direct: rt.between(0, 3) == 0,
			Warn: func(err error) {
				live := new(*pool.LiveError)
				if !errors.As(err, live) && !errors.Is(err, errShaky) && !strings.Contains(err.Error(), "contained panic") {
					rt.Error(err)
				}
			},
		}
		if rt.between(0, 3) == 0 {
			cfg.Limits.Hard.Bytes = 48 << 20
		}
		p, err := pool.New(cfg)
		if err != nil {
			rt.Fatal(err)
		}
		m := &deviceModel{p: p, c: c, up: up}
		up.inUse = m.inUse
		defer p.Close()
		rt.repeat(map[string]func(*schedule) bool{
			"alloc":       m.alloc,
			"alloc again": m.alloc,
			"use":         m.use,
			"free":        m.free,
			"free twice":  m.freeTwice,
			"array":       m.array,
			"view":        m.view,
			"drop":        m.drop,
			"free array":  m.freeArray,
			"pass":        m.pass,
			"synchronize": m.synchronize,
			"trim":        func(*schedule) bool { p.FreeAllBlocks(); return true },
			"collect":     m.collect,
			"faults":      m.faults,
			"close":       m.close,
		}, func() { m.check(rt) })
		m.end(rt)
	})
}

var errShaky = errors.New("shaky device")

// shaky is a device without memory. It fails as often as it is told to.
type shaky struct {
	mu       sync.Mutex
	next     uintptr
	segments map[uintptr]segment
	queued   map[uint32]int // work given to each stream
	done     map[uint32]int // work that it has done
	fences   int
	wrong    string                                 // what the pool must not do
	inUse    func(addr uintptr, bytes int64) string // says who uses memory, or ""

	refuse, keep, stuck int // calls of Allocate, Release and Synchronize to fail
	panics              bool
	kept                bool // a Release has failed
}

type segment struct {
	bytes  int64
	stream uint32
}

// fails counts down; the caller holds mu.
func (d *shaky) fails(n *int) error {
	if *n == 0 {
		return nil
	}
	if *n--; d.panics {
		panic(errShaky)
	}
	return errShaky
}

func (d *shaky) Allocate(bytes int64, stream uint32) (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fails(&d.refuse); err != nil {
		return 0, err
	}
	d.next += 1 << 32
	d.segments[d.next] = segment{bytes, stream}
	return d.next, nil
}

func (d *shaky) Release(addr uintptr, bytes int64, stream uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = d.kept || d.keep > 0
	if err := d.fails(&d.keep); err != nil {
		return err
	}
	if d.segments[addr] != (segment{bytes, stream}) {
		d.wrong = fmt.Sprintf("release of %d bytes at %#x of stream %d, which is %+v", bytes, addr, stream, d.segments[addr])
	}
	if who := d.inUse(addr, bytes); who != "" {
		d.wrong = "release of memory in use: " + who
	}
	delete(d.segments, addr)
	return nil
}

func (d *shaky) Info() (pressure.Info, error) {
	return pressure.Info{Free: 1 << 36, Total: 1 << 36}, nil
}

func (d *shaky) Synchronize() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fails(&d.stuck); err != nil {
		return err
	}
	for s, n := range d.queued {
		d.done[s] = n
	}
	return nil
}

func (d *shaky) Fence(stream uint32) (pool.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fails(&d.stuck); err != nil {
		return nil, err
	}
	d.fences++
	return &shakyFence{d, stream, d.queued[stream]}, nil
}

type shakyFence struct {
	d      *shaky
	stream uint32
	at     int
}

func (f *shakyFence) Done() (bool, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.fails(&f.d.stuck); err != nil {
		return false, err
	}
	return f.d.done[f.stream] >= f.at, nil
}

func (f *shakyFence) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.fences--
	return nil
}

// deviceModel is what the program knows.
type deviceModel struct {
	p      *pool.Pool
	c      *gc.Collector
	up     *shaky
	held   []*lent // handed out, and not given back
	past   []*lent // given back; their work may still be queued
	closed bool
	cycles int
}

// lent is memory that was handed out.
type lent struct {
	block  pool.Block
	size   int64
	uses   map[uint32]int // by other streams: the number of their last work
	array  array.Array[byte]
	object bool // it is an array's
	lost   bool // nothing refers to the array: a collection may take it
}

func (x *lent) overlaps(addr uintptr, bytes int64) bool {
	return x.block.Addr < addr+uintptr(bytes) && addr < x.block.Addr+uintptr(x.size)
}

// inUse says who uses some memory, or "". The caller holds the device's lock.
func (m *deviceModel) inUse(addr uintptr, bytes int64) string {
	for _, x := range m.held {
		if !x.lost && x.overlaps(addr, bytes) {
			return fmt.Sprintf("%d bytes that were not given back", x.size)
		}
	}
	for _, x := range m.past {
		for s, n := range x.uses {
			if m.up.done[s] < n && x.overlaps(addr, bytes) {
				return fmt.Sprintf("work %d of stream %d, which has done %d", n, s, m.up.done[s])
			}
		}
	}
	return ""
}

// took checks memory that was handed out, or why it was not.
func (m *deviceModel) took(t *schedule, x *lent, stream uint32, err error) {
	if m.closed != errors.Is(err, pool.ErrClosed) || err != nil && !m.closed && !errors.Is(err, pool.ErrOutOfMemory) {
		t.Fatalf("closed %v: %v", m.closed, err)
	}
	if err != nil {
		return
	}
	m.up.mu.Lock()
	defer m.up.mu.Unlock()
	if who := m.inUse(x.block.Addr, x.size); who != "" {
		t.Fatalf("memory in use is handed out again: %s", who)
	}
	base := x.block.Addr &^ (1<<32 - 1)
	if s := m.up.segments[base]; s.stream != stream || x.block.Addr+uintptr(x.size) > base+uintptr(s.bytes) {
		t.Fatalf("%d bytes at %#x for stream %d are of %+v", x.size, x.block.Addr, stream, s)
	}
	x.uses = map[uint32]int{}
	m.held = append(m.held, x)
}

func sizeOf(n int64) int64 { return (max(n, 1) + 511) / 512 * 512 }

func (m *deviceModel) alloc(t *schedule) bool {
	n, stream := sizeIn(t), uint32(t.between(0, 2))
	b, err := m.p.Alloc(n, stream)
	m.took(t, &lent{block: b, size: sizeOf(n)}, stream, err)
	return true
}

func (m *deviceModel) array(t *schedule) bool {
	n, stream := sizeIn(t), uint32(t.between(0, 2))
	a, err := array.New[byte](m.p, int(n), array.On(stream))
	b, _ := a.Block()
	m.took(t, &lent{block: b, size: sizeOf(n), array: a, object: true}, stream, err)
	return true
}

// pick draws a block, or an array that can be reached.
func (m *deviceModel) pick(t *schedule, object bool) (*lent, int) {
	var fit []int
	for i, x := range m.held {
		if x.object == object && !x.lost {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return nil, 0
	}
	i := oneOf(t, fit...)
	return m.held[i], i
}

// use gives other streams work on a block or an array.
func (m *deviceModel) use(t *schedule) bool {
	x, _ := m.pick(t, t.coin())
	if x == nil {
		return false
	}
	for range t.between(1, 3) {
		s := uint32(t.between(3, 5))
		m.up.mu.Lock()
		m.up.queued[s]++
		x.uses[s] = m.up.queued[s]
		m.up.mu.Unlock()
		if x.object {
			x.array.Use(s)
		} else {
			m.p.Use(x.block, s)
		}
	}
	return true
}

// gone moves what is about to be given back.
func (m *deviceModel) gone(i int) *lent {
	x := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.past = append(m.past, x)
	return x
}

func (m *deviceModel) free(t *schedule) bool {
	x, i := m.pick(t, false)
	if x == nil {
		return false
	}
	m.p.Free(m.gone(i).block)
	return true
}

func (m *deviceModel) freeTwice(t *schedule) bool {
	var blocks []*lent
	for _, x := range m.past {
		if !x.object {
			blocks = append(blocks, x)
		}
	}
	if len(blocks) == 0 {
		return false
	}
	x, live := oneOf(t, blocks...), m.p.Stats().Live
	if text := caught(func() { m.p.Free(x.block) }); !strings.Contains(text, "free") {
		t.Fatalf("a second free: %q", text)
	}
	if now := m.p.Stats().Live; now != live {
		t.Fatalf("a second free takes live bytes from %d to %d", live, now)
	}
	return true
}

// view keeps an array by a part of it.
func (m *deviceModel) view(t *schedule) bool {
	x, _ := m.pick(t, true)
	if x == nil {
		return false
	}
	i := t.between(0, x.array.Len())
	x.array = x.array.View(i, t.between(i, x.array.Len()))
	return true
}

func (m *deviceModel) freeArray(t *schedule) bool {
	x, i := m.pick(t, true)
	if x == nil {
		return false
	}
	m.gone(i)
	x.array.Free()
	x.array.View(0, 0).Free()
	if err := x.array.Reach(func(array.Memory) error { return nil }); !errors.Is(err, array.ErrFreed) {
		t.Fatalf("an array is used after Free: %v", err)
	}
	x.array = array.Array[byte]{}
	return true
}

//go:noinline
func (m *deviceModel) drop(t *schedule) bool {
	x, _ := m.pick(t, true)
	if x == nil {
		return false
	}
	x.lost, x.array = true, array.Array[byte]{}
	return true
}

// found moves what a collection has taken.
func (m *deviceModel) found() {
	for i := len(m.held) - 1; i >= 0; i-- {
		if m.held[i].lost {
			m.gone(i)
		}
	}
}

func (m *deviceModel) collect(t *schedule) bool {
	if m.cycles++; m.cycles > 2 {
		return false
	}
	runtime.KeepAlive(clearStack(10))
	pooltest.Collect(m.c)
	m.found()
	return true
}

func (m *deviceModel) pass(t *schedule) bool {
	s := uint32(t.between(3, 5))
	m.up.mu.Lock()
	defer m.up.mu.Unlock()
	m.up.done[s] = m.up.queued[s]
	return true
}

func (m *deviceModel) synchronize(t *schedule) bool {
	m.up.mu.Lock()
	fails := m.up.stuck > 0
	m.up.mu.Unlock()
	if err := m.p.Synchronize(); (err != nil) != fails {
		t.Fatalf("Synchronize of a device that fails (%v): %v", fails, err)
	}
	return true
}

// faults sets what fails next.
func (m *deviceModel) faults(t *schedule) bool {
	m.up.mu.Lock()
	defer m.up.mu.Unlock()
	m.up.refuse, m.up.keep, m.up.stuck = oneOf(t, 0, 0, 1, 3), oneOf(t, 0, 0, 1, 3), oneOf(t, 0, 0, 1, 3)
	m.up.panics = t.coin()
	return true
}

func (m *deviceModel) close(t *schedule) bool {
	if t.between(0, 4) > 0 {
		return false
	}
	m.p.Close()
	if !m.closed {
		m.closed = true
		m.found() // by its last collection
	}
	return true
}

func (m *deviceModel) check(t *schedule) {
	var most, least, reserved int64
	for _, x := range m.held {
		most += x.size
		if !x.lost {
			least += x.size
		}
	}
	m.up.mu.Lock()
	for _, s := range m.up.segments {
		reserved += s.bytes
	}
	wrong, kept := m.up.wrong, m.up.kept
	m.up.mu.Unlock()
	if wrong != "" {
		t.Fatal(wrong)
	}
	s := m.p.Stats()
	if s.Live < least || s.Live > most {
		t.Fatalf("%d bytes live, want %d to %d", s.Live, least, most)
	}
	if s.Live == least {
		m.found() // the ladder has collected
	}
	if s.Reserved != reserved {
		t.Fatalf("%d bytes reserved, the device has given %d", s.Reserved, reserved)
	}
	if m.closed && !kept && s.Live == 0 && s.Waiting == 0 && reserved != 0 {
		t.Fatalf("a closed pool caches %d bytes", reserved)
	}
	if err := m.p.Books(); err != nil {
		t.Fatal(err)
	}
}

// end gives everything back and closes.
func (m *deviceModel) end(t *schedule) {
	m.up.mu.Lock()
	m.up.refuse, m.up.keep, m.up.stuck = 0, 0, 0
	m.up.mu.Unlock()
	m.p.Close()
	pooltest.Collect(m.c)
	m.found()
	for len(m.held) > 0 {
		if x := m.gone(0); x.object {
			x.array.Free()
		} else {
			m.p.Free(x.block)
		}
	}
	if err := m.p.Synchronize(); err != nil {
		t.Fatal(err)
	}
	m.p.FreeAllBlocks()
	m.check(t)
	if s := m.p.Stats(); s.Reserved != 0 || s.Waiting != 0 || m.up.fences != 0 {
		t.Fatalf("%d bytes reserved, %d pieces waiting, %d fences open", s.Reserved, s.Waiting, m.up.fences)
	}
}
