package pool_test

import (
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// A simulated device: memory that the pool must not address, and streams whose
// work is done when the test says so.
type device struct {
	pool.Host
	mu      sync.Mutex
	queued  map[uint32]int // work given to each stream
	done    map[uint32]int // work that it has done
	lagging bool           // else work is done at once
	fences  int            // not closed
	broken  error          // what a fence's Done returns
}

func newDevice() *device { return &device{queued: map[uint32]int{}, done: map[uint32]int{}} }

func (d *device) Fence(stream uint32) (pool.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queued[stream]++
	d.fences++
	return &fence{d, stream, d.queued[stream]}, nil
}

func (d *device) Synchronize() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s, n := range d.queued {
		d.done[s] = n
	}
	return nil
}

func (d *device) pass(stream uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[stream] = d.queued[stream]
}

type fence struct {
	d      *device
	stream uint32
	at     int
}

func (f *fence) Done() (bool, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return !f.d.lagging || f.d.done[f.stream] >= f.at, f.d.broken
}

func (f *fence) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.fences--
	return nil
}

func at(addr uintptr, n int64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

func (d *device) Upload(to uintptr, from []byte, _ uint32) error {
	copy(at(to, int64(len(from))), from)
	return nil
}

func (d *device) Download(to []byte, from uintptr, _ uint32) error {
	copy(to, at(from, int64(len(to))))
	return nil
}

func (d *device) Copy(to, from uintptr, n int64, _ uint32) error {
	copy(at(to, n), at(from, n))
	return nil
}

func (d *device) Fill(to uintptr, pattern []byte, count int64, _ uint32) error {
	for i := range count {
		copy(at(to+uintptr(int(i)*len(pattern)), int64(len(pattern))), pattern)
	}
	return nil
}

func TestDevice(t *testing.T) {
	pooltest.Run(t, maker(pool.Config{Upstream: newDevice(), Space: pressure.Device(0)}))
}

func TestMemoryGoesBackInStreamOrder(t *testing.T) {
	d := newDevice()
	d.lagging = true
	p, err := pool.New(pool.Config{Upstream: d, Space: pressure.Device(0), Warn: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	alloc := func() pool.Block {
		b, err := p.Alloc(4096, 1)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	// reused says whether the memory of b is handed out now, or at all.
	reused := func(b pool.Block) bool {
		var held []pool.Block
		defer func() {
			for _, x := range held {
				p.Free(x)
			}
		}()
		for segments := p.Stats().Segments; p.Stats().Segments == segments; { // until all is handed out
			x := alloc()
			held = append(held, x)
			if x.Addr == b.Addr {
				return true
			}
		}
		return false
	}

	own := alloc()
	p.Use(own, 1)
	p.Free(own)
	if !reused(own) {
		t.Error("memory that only its own stream uses waits")
	}
	one := alloc()
	p.Use(one, 2)
	p.Use(one, 2)
	p.Free(one)
	if p.Stats().Waiting != 1 || reused(one) {
		t.Error("memory was handed out before the other stream had done with it")
	}
	d.pass(2)
	if !reused(one) {
		t.Error("memory was not handed out after the other stream had done with it")
	}
	many := alloc()
	p.Use(many, 2)
	p.Use(many, 3)
	p.Free(many)
	d.pass(2)
	d.pass(3)
	if reused(many) {
		t.Error("memory of many streams was handed out without a wait for the device")
	}
	broken := alloc()
	p.Use(broken, 2)
	p.Free(broken)
	d.broken = errors.New("lost")
	if err := p.Sync(nil, func() error { return nil }); err != nil || p.Stats().Waiting != 2 {
		t.Errorf("%v, %d wait", err, p.Stats().Waiting)
	}
	if err := p.Synchronize(); err != nil || p.Stats().Waiting != 0 || !reused(many) {
		t.Errorf("after Synchronize: %v, %d wait", err, p.Stats().Waiting)
	}
	p.Close()
	if s := p.Stats(); s.Reserved != 0 || d.fences != 0 {
		t.Errorf("%d bytes reserved, %d fences open", s.Reserved, d.fences)
	}
}

// Memory that the processor cannot address says so, and is not touched.
func TestUnreachableMemory(t *testing.T) {
	p, err := pool.New(pool.Config{Space: pressure.Device(0)}) // host memory, but the pool cannot know
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, err := array.New[int16](p, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	for name, err := range map[string]error{
		"fill": a.Fill(1), "copy in": a.CopyIn(make([]int16, 8)), "copy out": a.CopyOut(make([]int16, 8)), "copy": a.CopyFrom(a),
		"do": a.Do(func([]int16) error { t.Error("called"); return nil }),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if b, _ := a.Block(); p.Memory(b) != nil {
		t.Error("Memory shows it")
	}
	if _, err := pool.New(pool.Config{Space: pressure.Device(0), Poison: true}); err == nil {
		t.Error("Poison takes it")
	}
}

func TestPlainTypes(t *testing.T) {
	p, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	type plain struct {
		A [3]struct{ X, Y float32 }
		B bool
	}
	type pointed struct {
		A plain
		B [2][]byte
	}
	a, err := array.New[plain](p, 3)
	if err != nil {
		t.Fatal(err)
	}
	a.Free()
	if caught(func() { array.New[pointed](p, 3) }) == "" {
		t.Error("a type with slices in it is no panic")
	}
	if caught(func() { a.View(2, 4) }) == "" {
		t.Error("a view beyond the end is no panic")
	}
}
