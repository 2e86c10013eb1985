package pool_test

import (
	"errors"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// TestPoolAgainstModel runs random schedules of one goroutine against what they
// must come to: live bytes to the byte after every step, what a collection finds
// dead to the byte, memory that nobody else has written to.
func TestPoolAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, err := gc.New(gc.Config{Policy: gc.Spec{}.New()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p, err := pool.New(pool.Config{
			Collector: c,
			Direct:    rapid.Bool().Draw(rt, "direct"),
			Poison:    rapid.Bool().Draw(rt, "poison"),
			Limits:    pressure.Limits{Hard: pressure.Limit{Bytes: 32 << 20}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m := &model{t: t, p: p, c: c}
		rt.Repeat(map[string]func(*rapid.T){
			"alloc":   m.alloc,
			"free":    m.free,
			"array":   m.array,
			"drop":    m.drop,
			"release": m.release,
			"collect": m.collect,
			"trim":    func(*rapid.T) { p.FreeAllBlocks() },
			"sync":    func(*rapid.T) { p.Synchronize() },
			"":        m.check,
		})
		m.finish(rt)
	})
}

type model struct {
	t       *testing.T
	p       *pool.Pool
	c       *gc.Collector
	blocks  []held
	arrays  []pool.Array[byte]
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
func sizeIn(rt *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64Range(0, 2000), rapid.SampledFrom([]int64{512, 1 << 20, 1<<20 + 1, 2 << 20, 10 << 20}), rapid.Int64Range(0, 3<<20)).Draw(rt, "size")
}

// took accounts for an allocation after which live is what the pool says, and
// returns its size; the ladder may have collected the garbage.
func (m *model) took(rt *rapid.T, err error, asked int64) (size int64) {
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

func (m *model) alloc(rt *rapid.T) {
	n := sizeIn(rt)
	b, err := m.p.Alloc(n, rapid.Uint32Range(0, 2).Draw(rt, "stream"))
	if size := m.took(rt, err, n); size > 0 {
		h := held{b, size, byte(len(m.blocks) + 1)}
		for _, x := range ends(m.p.Memory(b)) {
			*x = h.mark
		}
		m.blocks = append(m.blocks, h)
	}
}

// ends returns some bytes of a block, the first and last among them.
func ends(b []byte) (some []*byte) {
	if n := len(b); n > 0 {
		some = append(some, &b[0], &b[n/2], &b[n-1])
	}
	return some
}

func (m *model) free(rt *rapid.T) {
	if len(m.blocks) == 0 {
		rt.Skip()
	}
	i := rapid.IntRange(0, len(m.blocks)-1).Draw(rt, "block")
	h := m.blocks[i]
	m.blocks = append(m.blocks[:i], m.blocks[i+1:]...)
	for _, x := range ends(m.p.Memory(h.b)) {
		if *x != h.mark {
			rt.Fatalf("block %+v was overwritten", h.b)
		}
	}
	if rapid.Bool().Draw(rt, "used elsewhere") {
		m.p.Use(h.b, 3)
	}
	m.p.Free(h.b)
	m.live -= h.size
}

func (m *model) array(rt *rapid.T) {
	n := sizeIn(rt)
	a, err := pool.NewArray[byte](m.p, int(n), 0)
	if size := m.took(rt, err, n); size > 0 {
		m.arrays, m.sizes = append(m.arrays, a), append(m.sizes, size)
	}
}

// takeArray removes an array, or a view that is its last reference.
func (m *model) takeArray(rt *rapid.T) (a pool.Array[byte], size int64) {
	if len(m.arrays) == 0 {
		rt.Skip()
	}
	i, last := rapid.IntRange(0, len(m.arrays)-1).Draw(rt, "array"), len(m.arrays)-1
	a, size = m.arrays[i], m.sizes[i]
	m.arrays[i], m.sizes[i] = m.arrays[last], m.sizes[last]
	m.arrays[last] = pool.Array[byte]{}
	m.arrays, m.sizes = m.arrays[:last], m.sizes[:last]
	return a, size
}

//go:noinline
func (m *model) drop(rt *rapid.T) {
	_, size := m.takeArray(rt)
	m.garbage += size
}

func (m *model) release(rt *rapid.T) {
	a, size := m.takeArray(rt)
	view := a.View(0, a.Len()/2)
	for range rapid.IntRange(1, 3).Draw(rt, "times") {
		view.Free()
	}
	if err := a.Fill(1); !errors.Is(err, pool.ErrFreed) {
		rt.Fatalf("use after free: %v", err)
	}
	m.live -= size
}

func (m *model) collect(rt *rapid.T) {
	runtime.KeepAlive(clearStack(10)) // so that it is not compiled away
	pooltest.Collect(m.c)
	m.live, m.garbage = m.live-m.garbage, 0
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

func (m *model) check(rt *rapid.T) {
	// Go's own cycles may have found garbage by now.
	if live := m.p.Stats().Live; live > m.live || live < m.live-m.garbage {
		rt.Fatalf("live %d, want %d to %d", live, m.live-m.garbage, m.live)
	} else if live != m.live {
		m.garbage -= m.live - live
		m.live = live
	}
	if err := m.p.Check(); err != nil {
		rt.Fatal(err)
	}
}

func (m *model) finish(rt *rapid.T) {
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
