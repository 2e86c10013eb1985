// Lru serves pictures from a cache that drops the least recently used ones. Their pixels are in
// memory of C's malloc. The program was written after the rules of own, gauge and auto were fixed,
// and no rule was tuned on it.
package main

// #include <stdlib.h>
import "C"

import (
	"container/list"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const (
	names  = 4000     // of pictures
	room   = 96 << 20 // bytes that the cache holds at most
	passes = 6        // over the words of a new picture, as a decoder would make
)

func main() {
	frame.Main("lru", frame.Client{Workers: 2, Requests: 6000, Gauge: held.Load, Start: start})
}

// held is the bytes of all pictures, as the program counts them.
var held atomic.Int64

// A picture is a handle to pixels.
type picture struct {
	name   int
	pixels unsafe.Pointer
	size   int
	users  atomic.Int64 // the requests that use it, and the cache
	done   func()
}

// leave removes one user of p.
func (p *picture) leave() {
	if p.users.Add(-1) == 0 {
		p.done()
	}
}

func (p *picture) words() []uint64 { return unsafe.Slice((*uint64)(p.pixels), p.size/8) }

// decode makes the picture with the given name, of 64 KiB to 1 MiB.
func decode(w *frame.Way, name int) *picture {
	p := &picture{name: name, size: (64 + name*7919%960) << 10}
	p.pixels = C.malloc(C.size_t(p.size))
	held.Add(int64(p.size))
	size := int64(p.size)
	p.done = frame.Keep(w, p, size, func(pixels unsafe.Pointer) { C.free(pixels); held.Add(-size) }, p.pixels)
	words := p.words()
	for pass := range passes {
		x := uint64(name+pass) | 1
		for i := range words {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			words[i] = x
		}
	}
	runtime.KeepAlive(p)
	return p
}

// A cache holds the pictures that were requested last.
type cache struct {
	mu    sync.Mutex
	order list.List // of *picture; the most recently used is first
	at    map[int]*list.Element
	bytes int
}

// get returns a picture, or nil. The caller must call leave when it is done.
func (c *cache) get(name int) *picture {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.at[name]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	p := e.Value.(*picture)
	p.users.Add(1)
	return p
}

// put adds a picture unless another request has added it, and drops the oldest ones.
func (c *cache) put(p *picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[p.name] != nil {
		return
	}
	p.users.Add(1)
	c.at[p.name] = c.order.PushFront(p)
	for c.bytes += p.size; c.bytes > room; {
		oldest := c.order.Remove(c.order.Back()).(*picture)
		delete(c.at, oldest.name)
		c.bytes -= oldest.size
		oldest.leave()
	}
}

func start(w *frame.Way) (frame.Service, error) {
	c := &cache{at: make(map[int]*list.Element)}
	return func(i int) error {
		popular := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(i))), 1.1, 8, names-1)
		name := int(popular.Uint64())
		p := c.get(name)
		if p == nil {
			p = decode(w, name)
			p.users.Add(1)
			c.put(p)
		}
		defer p.leave()
		sum := uint64(0)
		for _, x := range p.words() {
			sum += x
		}
		if sum == 0 {
			return errors.New("an empty picture")
		}
		runtime.KeepAlive(p)
		return nil
	}, nil
}
