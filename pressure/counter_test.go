package pressure

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// waitFor polls cond: what a cycle found dead is given back by other goroutines.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: not %s", what)
		}
		runtime.GC()
	}
}

func wantLive(t *testing.T, c *Counter, bytes, objects int64) {
	t.Helper()
	if b, o := c.live(); b != bytes || o != objects {
		t.Errorf("%s counts %d bytes in %d objects, want %d in %d", c.name, b, o, bytes, objects)
	}
}

// TestCounterAgainstSums: whatever is added and taken off, by whichever goroutine, in whichever sizes,
// a counter has the plain sums.
func TestCounterAgainstSums(t *testing.T) {
	seed := rand.Uint64()
	c := NewCounter(t.Name())
	var bytes, objects atomic.Int64
	var all sync.WaitGroup
	for n := range uint64(8) {
		all.Add(1)
		go func() {
			defer all.Done()
			rng := rand.New(rand.NewPCG(seed, n))
			var held []int64
			for range 5000 {
				if len(held) > 0 && rng.IntN(2) == 0 {
					last := held[len(held)-1]
					held = held[:len(held)-1]
					c.Sub(last)
					bytes.Add(-last)
					objects.Add(-1)
					continue
				}
				size := rng.Int64() >> (1 + rng.IntN(62)) >> 16 // of all magnitudes to 64 TiB
				if rng.IntN(20) == 0 {
					size = largeMove - 1 + rng.Int64N(3) // where parts have no room any more
				}
				held = append(held, size)
				c.Add(size)
				bytes.Add(size)
				objects.Add(1)
			}
		}()
	}
	all.Wait()
	if wantLive(t, c, bytes.Load(), objects.Load()); t.Failed() {
		t.Logf("with seed %d", seed)
	}
}

// TestCounterPartsAreEmptied: a part that is near what it can hold moves it, so that nothing wraps around.
func TestCounterPartsAreEmptied(t *testing.T) {
	c := NewCounter(t.Name())
	const size = largeMove - 1 // the largest that parts count
	for range 2000 {           // 2 TB, twice what 40 bits hold
		c.Add(size)
	}
	wantLive(t, c, 2000*size, 2000)
	const many = partMost + 1000 // on one part, as one goroutine makes them
	for range many {
		c.Add(0)
	}
	wantLive(t, c, 2000*size, 2000+many)
	for range 2000 {
		c.Sub(size)
	}
	wantLive(t, c, 0, many)
}

// picture owns memory of some C library.
type picture struct {
	pixels uintptr
	next   *picture
}

// TestOwnRunsAfterFinalizers: an owner's finalizer may bring it back to life, and until it is dead for good
// its memory is not freed.
func TestOwnRunsAfterFinalizers(t *testing.T) {
	c := NewCounter(t.Name())
	var freed atomic.Bool
	alive := make(chan *picture, 1)
	func() {
		p := new(picture)
		runtime.SetFinalizer(p, func(p *picture) { alive <- p })
		Own(c, p, 100, func(*atomic.Bool) {
			if bytes, objects := c.live(); bytes != 100 || objects != 1 { // until it has returned
				t.Errorf("%d bytes of %d objects while they are freed", bytes, objects)
			}
			freed.Store(true)
		}, &freed)
	}()
	waitFor(t, "finalized", func() bool { return len(alive) == 1 })
	p := <-alive
	for range 3 {
		runtime.GC()
	}
	if freed.Load() {
		t.Fatal("freed while the finalizer has made it reachable again")
	}
	wantLive(t, c, 100, 1)
	runtime.KeepAlive(p)
	waitFor(t, "freed", freed.Load)
	var sum atomic.Int64
	Own(c, new(picture), 50, func(n int64) { sum.Add(n) }, 5) // another type of argument
	waitFor(t, "all freed and counted off", func() bool {
		bytes, objects := c.live()
		return sum.Load() == 5 && bytes == 0 && objects == 0
	})
}

func TestCountersRefuse(t *testing.T) {
	c := NewCounter("libfoo")
	p := new(picture)
	type pair struct {
		n int
		p *picture
	}
	for want, call := range map[string]func(){
		"libfoo: Add of -1 bytes":   func() { c.Add(-1) },
		"libfoo: Sub of -1 bytes":   func() { c.Sub(-1) },
		"libfoo: Own of -1 bytes":   func() { Own(c, p, -1, func(int) {}, 0) },
		"free that is nil":          func() { Own[picture, int](c, p, 1, nil, 0) },
		"argument of type":          func() { Own(c, p, 1, func(*picture) {}, p) },
		"pressure.pair that refers": func() { Own(c, p, 1, func(pair) {}, pair{1, p}) },
		"*uintptr that refers":      func() { Own(c, p, 1, func(*uintptr) {}, &p.pixels) },
		"free that refers":          func() { Own(c, p, 1, func(int) { p.pixels = 0 }, 0) },
		"ptr is nil":                func() { Own(c, (*picture)(nil), 1, func(int) {}, 0) },
	} {
		func() {
			defer func() {
				e := recover()
				if err, ok := e.(error); ok {
					e = err.Error()
				}
				if text, _ := e.(string); !strings.Contains(text, want) {
					t.Errorf("panic %q does not say %q", text, want)
				}
			}()
			call()
		}()
	}
	wantLive(t, c, 0, 0)
}

// TestWhatKeepsTheOwnerAlive: a pointer into the owner, wherever in the argument it is. Not one to a neighbour, and not the owner's address as a
// number, the usual key of a weak map.
func TestWhatKeepsTheOwnerAlive(t *testing.T) {
	c := NewCounter(t.Name())
	type owner struct {
		data [5]*byte
		last [8]byte
	}
	type inner struct {
		n    uint32
		text string
		any  any
	}
	type nested struct {
		_     int64
		pairs [2]inner
		end   unsafe.Pointer
	}
	all := new([3]owner)
	o := &all[1]
	key := uintptr(unsafe.Pointer(o))
	in := func(i int, x inner) (n nested) { n.pairs[i] = x; return n }
	try(t, c, o, true, o)
	try(t, c, o, true, &o.last[7])
	try(t, c, o, false, &all[0])
	try(t, c, o, false, &all[2])
	try(t, c, o, false, [3]uintptr{key, key + 1, key})
	try(t, c, o, false, struct{}{})
	try(t, c, o, true, any(o))
	try(t, c, o, true, in(0, inner{any: o}))
	try(t, c, o, true, in(1, inner{any: o}))
	try(t, c, o, true, in(1, inner{text: unsafe.String((*byte)(unsafe.Pointer(o)), 8)}))
	try(t, c, o, false, in(1, inner{n: uint32(key)}))
	try(t, c, o, true, nested{end: unsafe.Pointer(&o.data[3])})
	try(t, c, o, true, o.data[1:2])
	empty := new(struct{})
	try(t, c, empty, true, empty)
	runtime.KeepAlive(all)
	wantLive(t, c, 0, 0)
}

// try wants Own to panic, or not to, for an argument.
func try[T, A any](t *testing.T, c *Counter, owner *T, wantPanic bool, arg A) {
	t.Helper()
	defer func() {
		if text, _ := recover().(string); wantPanic != strings.Contains(text, "that refers to the owner") {
			t.Errorf("%T: panics with %q, want %v", arg, text, wantPanic)
		}
	}()
	Own(c, owner, 0, func(A) {}, arg).Stop()
	c.Sub(0)
}

// TestListenHearsAll: of counters from before and after, each move once; what was there is read; and after stop
// nothing is heard.
func TestListenHearsAll(t *testing.T) {
	before := NewCounter(t.Name())
	before.Add(5)
	type heard struct {
		live   func() (int64, int64)
		bytes  int64
		owners []unsafe.Pointer
	}
	all := map[string]*heard{}
	listen := func() (stop func()) {
		return Listen(func(name string, live func() (int64, int64)) func(int64, unsafe.Pointer) {
			if !strings.HasPrefix(name, t.Name()) {
				return nil
			}
			h := &heard{live: live}
			all[name] = h
			start, _ := live()
			return func(bytes int64, owner unsafe.Pointer) {
				h.bytes += bytes
				if now, _ := live(); now != start+h.bytes { // it is counted before anybody hears of it
					t.Errorf("%s: %d bytes after a move of %d, want %d", name, now, bytes, start+h.bytes)
				}
				if owner != nil {
					h.owners = append(h.owners, owner)
				}
			}
		})
	}
	stop := listen()
	after := NewCounter(t.Name() + "/after")
	before.Add(10)
	before.Sub(2)
	before.Add(largeMove)
	before.Sub(largeMove)
	p := new(picture)
	Own(after, p, 100, func(int) {}, 0).Stop()
	b, a := all[t.Name()], all[t.Name()+"/after"]
	if b.bytes != 8 || a.bytes != 100 || len(a.owners) != 1 || a.owners[0] != unsafe.Pointer(p) || b.owners != nil {
		t.Errorf("heard %+v and %+v", b, a)
	}
	if bytes, objects := b.live(); bytes != 13 || objects != 1 {
		t.Errorf("read %d bytes in %d objects, want 13 in 1", bytes, objects)
	}
	again := listen() // a second listener
	before.Add(1)
	if stop(); b.bytes != 9 || all[t.Name()].bytes != 1 {
		t.Errorf("heard %d and %d bytes, want 9 and 1", b.bytes, all[t.Name()].bytes)
	}
	between := NewCounter(t.Name() + "/between") // the second listener still hears of it
	between.Add(1)
	before.Add(1)
	again()
	before.Add(1)
	between.Add(1)
	if h := all[between.name]; h == nil || h.bytes != 1 {
		t.Errorf("of a counter that was made after another listener's end, a listener heard %+v, want 1 byte", h)
	}
	if b.bytes != 9 || all[t.Name()].bytes != 2 || before.heard.Load() != nil {
		t.Errorf("heard %d and %d bytes after the end, want 9 and 2", b.bytes, all[t.Name()].bytes)
	}
	clear(all)
	if NewCounter(t.Name() + "/late"); len(all) > 0 {
		t.Error("a listener hears of a counter that was made after its end")
	}
	runtime.KeepAlive(p)
}

// TestCountingAllocatesNothing that AddCleanup does not.
func TestCountingAllocatesNothing(t *testing.T) {
	c := NewCounter(t.Name())
	if n := testing.AllocsPerRun(100, func() { c.Add(8); c.Sub(8) }); n != 0 {
		t.Errorf("Add and Sub: %v allocations", n)
	}
	free, keep := func(uintptr) {}, new(picture)
	own := testing.AllocsPerRun(100, func() { Own(c, keep, 8, free, 1).Stop() })
	std := testing.AllocsPerRun(100, func() { runtime.AddCleanup(keep, free, 1).Stop() })
	if own > std {
		t.Errorf("Own: %v allocations, AddCleanup %v", own, std)
	}
}

// TestALibraryThatCountsDoesNothingElse: without a collector a counter starts no goroutine and no cycle.
func TestALibraryThatCountsDoesNothingElse(t *testing.T) {
	runtime.AddCleanup(new(picture), func(int) {}, 0) // the runtime's own goroutine for cleanups is there from now on
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines, c := runtime.NumGoroutine(), NewCounter(t.Name())
	for range 1000 {
		c.Add(1 << 30)
		Own(c, new(picture), 1<<30, func(int) {}, 0)
		c.Sub(1 << 30)
	}
	runtime.ReadMemStats(&after)
	if more := runtime.NumGoroutine() - goroutines; more > 0 || after.NumForcedGC != before.NumForcedGC {
		t.Errorf("%d goroutines and %d cycles", more, after.NumForcedGC-before.NumForcedGC)
	}
}

// The six names that libraries call do not change.
var (
	_ func(string) *Counter                                                               = NewCounter
	_ func(*Counter, int64)                                                               = (*Counter).Add
	_ func(*Counter, int64)                                                               = (*Counter).Sub
	_ func(*Counter, *picture, int64, func(int), int) runtime.Cleanup                     = Own[picture, int]
	_ func(func(string, func() (int64, int64)) func(int64, unsafe.Pointer)) (stop func()) = Listen
)
