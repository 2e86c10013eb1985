package pool_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// TestPoolAgainstModel runs random schedules of one goroutine against what they
// must come to: live bytes to the byte after every step, what a collection finds
// dead to the byte, memory that nobody else has written to.
func TestPoolAgainstModel(t *testing.T) {
	schedules(t, 50, func(rt *schedule) {
		c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p, err := pool.New(pool.Config{
			Collector: c,
			Direct:    rt.coin(),
			Poison:    rt.coin(),
			Limits:    pressure.Limits{Hard: pressure.Limit{Bytes: 32 << 20}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m := &model{t: t, p: p, c: c}
		rt.repeat(map[string]func(*schedule) bool{
			"alloc":   m.alloc,
			"free":    m.free,
			"array":   m.array,
			"drop":    m.drop,
			"release": m.release,
			"collect": m.collect,
			"trim":    func(*schedule) bool { p.FreeAllBlocks(); return true },
			"sync":    func(*schedule) bool { return p.Synchronize() == nil },
		}, func() { m.check(rt) })
		m.finish(rt)
	})
}

type model struct {
	t       *testing.T
	p       *pool.Pool
	c       *gc.Collector
	blocks  []held
	arrays  []array.Array[byte]
	sizes   []int64
	live    int64
	garbage int64
}

type held struct {
	b    pool.Block
	size int64
	mark byte
}

// sizeIn draws sizes around the borders of the pool's classes.
func sizeIn(rt *schedule) int64 {
	return oneOf(rt, int64(rt.between(0, 2000)), oneOf[int64](rt, 512, 1<<20, 1<<20+1, 2<<20, 10<<20), int64(rt.between(0, 3<<20)))
}

// took accounts for an allocation after which live is what the pool says, and
// returns its size; the ladder may have collected the garbage.
func (m *model) took(rt *schedule, err error, asked int64) (size int64) {
	live := m.p.Stats().Live
	if err != nil {
		if !errors.Is(err, pool.ErrOutOfMemory) {
			rt.Fatal(err)
		}
		if live != m.live-m.garbage { // it has collected before it gave up
			rt.Fatalf("live %d after a failure, want %d", live, m.live-m.garbage)
		}
		m.live, m.garbage = live, 0
		return 0
	}
	if size = live - m.live; size < asked { // the ladder has collected
		m.live, m.garbage = m.live-m.garbage, 0
		size = live - m.live
	}
	if size < asked || size > asked+3*512 || size%512 != 0 {
		rt.Fatalf("%d bytes count as %d", asked, size)
	}
	m.live += size
	return size
}

func (m *model) alloc(rt *schedule) bool {
	n := sizeIn(rt)
	b, err := m.p.Alloc(n, uint32(rt.between(0, 2)))
	if size := m.took(rt, err, n); size > 0 {
		h := held{b, size, byte(len(m.blocks) + 1)}
		for _, x := range ends(m.p.Memory(b)) {
			*x = h.mark
		}
		m.blocks = append(m.blocks, h)
	}
	return true
}

// ends returns some bytes of a block, the first and last among them.
func ends(b []byte) (some []*byte) {
	if n := len(b); n > 0 {
		some = append(some, &b[0], &b[n/2], &b[n-1])
	}
	return some
}

func (m *model) free(rt *schedule) bool {
	if len(m.blocks) == 0 {
		return false
	}
	i := rt.between(0, len(m.blocks)-1)
	h := m.blocks[i]
	m.blocks = append(m.blocks[:i], m.blocks[i+1:]...)
	for _, x := range ends(m.p.Memory(h.b)) {
		if *x != h.mark {
			rt.Fatalf("block %+v was overwritten", h.b)
		}
	}
	if rt.coin() {
		m.p.Use(h.b, 3)
	}
	m.p.Free(h.b)
	m.live -= h.size
	return true
}

func (m *model) array(rt *schedule) bool {
	n := sizeIn(rt)
	a, err := array.New[byte](m.p, int(n))
	if size := m.took(rt, err, n); size > 0 {
		m.arrays, m.sizes = append(m.arrays, a), append(m.sizes, size)
	}
	return true
}

// takeArray removes an array, or a view that is its last reference.
func (m *model) takeArray(rt *schedule) (a array.Array[byte], size int64) {
	i, last := rt.between(0, len(m.arrays)-1), len(m.arrays)-1
	a, size = m.arrays[i], m.sizes[i]
	m.arrays[i], m.sizes[i] = m.arrays[last], m.sizes[last]
	m.arrays[last] = array.Array[byte]{}
	m.arrays, m.sizes = m.arrays[:last], m.sizes[:last]
	return a, size
}

//go:noinline
func (m *model) drop(rt *schedule) bool {
	if len(m.arrays) == 0 {
		return false
	}
	_, size := m.takeArray(rt)
	m.garbage += size
	return true
}

func (m *model) release(rt *schedule) bool {
	if len(m.arrays) == 0 {
		return false
	}
	a, size := m.takeArray(rt)
	view := a.View(0, a.Len()/2)
	for range rt.between(1, 3) {
		view.Free()
	}
	if err := a.Fill(1); !errors.Is(err, array.ErrFreed) {
		rt.Fatalf("use after free: %v", err)
	}
	m.live -= size
	return true
}

func (m *model) collect(rt *schedule) bool {
	runtime.KeepAlive(clearStack(10)) // so that it is not compiled away
	pooltest.Collect(m.c)
	m.live, m.garbage = m.live-m.garbage, 0
	return true
}

// clearStack overwrites what dead frames have left, which may look like references.
//
//go:noinline
func clearStack(n int) (sum int) {
	var frame [256]int
	if n > 0 {
		sum = clearStack(n - 1)
	}
	for _, x := range frame {
		sum += x
	}
	return sum
}

func (m *model) check(rt *schedule) {
	// Go's own cycles may have found garbage by now.
	if live := m.p.Stats().Live; live > m.live || live < m.live-m.garbage {
		rt.Fatalf("live %d, want %d to %d", live, m.live-m.garbage, m.live)
	} else if live != m.live {
		m.garbage -= m.live - live
		m.live = live
	}
	if err := m.p.Books(); err != nil {
		rt.Fatal(err)
	}
}

func (m *model) finish(rt *schedule) {
	for _, h := range m.blocks {
		m.p.Free(h.b)
	}
	runtime.KeepAlive(m.arrays)
	m.arrays = nil
	pooltest.Collect(m.c)
	pooltest.Check(m.t, m.p)
	if live := m.p.Stats().Live; live != 0 {
		rt.Fatalf("%d bytes left", live)
	}
}
