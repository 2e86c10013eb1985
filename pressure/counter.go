package pressure

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Counter counts the memory outside the Go heap that one library holds. The library makes it
// once, with [NewCounter]. It calls [Counter.Add] where it takes memory and [Counter.Sub] where it
// gives memory back, or leaves both to [Own]:
//
//	var images = pressure.NewCounter("libfoo")
//
// The program chooses whether a collector listens: see [Listen]. Without a listener a counter is a
// number: it starts no goroutine and no cycle, reads no file and logs nothing. Its methods are safe
// for concurrent use, with any lock held.
type Counter struct {
	name  string
	heard atomic.Pointer[[]hearing] // nil = no listener
	freer atomic.Pointer[any]       // see freerOf

	mu             sync.Mutex // held to move a part's count, and to read all of them
	bytes, objects int64      // that no part holds
	_              [64]byte
	parts          [counterParts]counterPart
}

// A counterPart counts for the goroutines that their stacks lead to it: one atomic addition counts
// an object and its bytes. The bytes are the lowest 40 bits, with a sign.
type counterPart struct {
	word atomic.Int64
	_    [56]byte
}

const (
	counterParts     = 1 << counterPartsBits
	counterPartsBits = 3

	bytesBits = 40
	oneObject = 1 << bytesBits
	largeMove = 1 << 30              // bytes; larger moves are counted without the parts
	partBytes = 1 << (bytesBits - 2) // a part with more bytes or objects is emptied;
	partMost  = 1 << 22              // it has room for as much again until that is done
)

func unpack(word int64) (bytes, objects int64) {
	bytes = word << (64 - bytesBits) >> (64 - bytesBits)
	return bytes, (word - bytes) >> bytesBits
}

// NewCounter returns a counter with the library's name, which people read. Counters live as long as
// the process.
func NewCounter(name string) *Counter {
	c := &Counter{name: name}
	counters.mu.Lock()
	defer counters.mu.Unlock()
	counters.all = append(counters.all, c)
	for _, l := range counters.listeners {
		c.hear(l)
	}
	return c
}

// Add counts a new object of the given size. Call it once for each object. For an object that
// grows, call Sub with its old size and Add with its new one. Add takes one atomic addition and
// allocates nothing. If the program has a collector, Add may start a cycle beside the caller, and
// hold the caller for some milliseconds, within the collector's caps. Add panics if bytes is
// negative.
func (c *Counter) Add(bytes int64) {
	if bytes < 0 {
		panic(fmt.Sprintf("pressure: %s: Add of %d bytes", c.name, bytes))
	}
	c.move(1, bytes, nil)
}

// Sub removes an object that Add or [Own] has counted with the same size. It never waits. It panics
// if bytes is negative.
func (c *Counter) Sub(bytes int64) {
	if bytes < 0 {
		panic(fmt.Sprintf("pressure: %s: Sub of %d bytes", c.name, bytes))
	}
	c.move(-1, -bytes, nil)
}

func (c *Counter) move(objects, bytes int64, owner unsafe.Pointer) {
	if uint64(bytes+largeMove) >= 2*largeMove {
		c.mu.Lock()
		c.bytes += bytes
		c.objects += objects
		c.mu.Unlock()
	} else {
		part := &c.parts[StackHash()>>(64-counterPartsBits)]
		b, o := unpack(part.word.Add(objects<<bytesBits + bytes))
		if uint64(b+partBytes) >= 2*partBytes || uint64(o+partMost) >= 2*partMost {
			c.empty(part)
		}
	}
	if all := c.heard.Load(); all != nil {
		for _, h := range *all {
			h.moved(bytes, owner)
		}
	}
}

// empty moves the counts of a part to the counter's own fields, which have more room.
func (c *Counter) empty(part *counterPart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, o := unpack(part.word.Swap(0))
	c.bytes += b
	c.objects += o
}

// live returns the counts.
func (c *Counter) live() (bytes, objects int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes, objects = c.bytes, c.objects
	for i := range c.parts {
		b, o := unpack(c.parts[i].word.Load())
		bytes += b
		objects += o
	}
	return bytes, objects
}

// counters are all counters of the process, and their listeners.
var counters struct {
	mu        sync.Mutex
	all       []*Counter
	listeners []*listener
}

type listener struct {
	join func(name string, live func() (bytes, objects int64)) (moved func(bytes int64, owner unsafe.Pointer))
}

// A hearing connects one listener with one counter.
type hearing struct {
	by    *listener
	moved func(bytes int64, owner unsafe.Pointer)
}

// Listen is for code that counts for the whole process, such as a collector or a test. Libraries do
// not call it. Listen calls join once for each counter: first for those that exist, then for each
// new one. Join gets the counter's name and a function that reads its counts. These may be off, or
// below 0, while other goroutines count. Two counters may have one name. Join must not make counters.
//
// The function that join returns is called after each Add, Sub and Own on the caller's goroutine. It
// is also called after the free of Own, on the goroutine of the cleanup. It gets the bytes that came
// (above 0) or went (below 0). For Own alone it also gets the owner's address, which the listener may
// keep weakly. If join returns nil, the listener ignores that counter. After stop only calls that are
// under way still arrive.
func Listen(join func(name string, live func() (bytes, objects int64)) (moved func(bytes int64, owner unsafe.Pointer))) (stop func()) {
	l := &listener{join}
	counters.mu.Lock()
	defer counters.mu.Unlock()
	counters.listeners = append(counters.listeners, l)
	for _, c := range counters.all {
		c.hear(l)
	}
	return func() {
		counters.mu.Lock()
		defer counters.mu.Unlock()
		counters.listeners = slices.DeleteFunc(counters.listeners, func(other *listener) bool { return other == l })
		for _, c := range counters.all {
			c.unhear(l)
		}
	}
}

// hear lets a listener hear the counter. The caller holds counters.mu.
func (c *Counter) hear(l *listener) {
	moved := l.join(c.name, c.live)
	if moved == nil {
		return
	}
	all := []hearing{{l, moved}}
	if before := c.heard.Load(); before != nil {
		all = append(all, *before...)
	}
	c.heard.Store(&all)
}

// unhear forgets a listener. The caller holds counters.mu.
func (c *Counter) unhear(l *listener) {
	before := c.heard.Load()
	if before == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(*before), func(h hearing) bool { return h.by == l })
	if len(left) == 0 {
		c.heard.Store(nil)
	} else {
		c.heard.Store(&left)
	}
}
