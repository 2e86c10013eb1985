package soak

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
)

const mostHeld = 24 // things that a worker holds at once

// A worker is one goroutine of the program that is played.
type worker struct {
	*soak
	rand   *rand.Rand
	stream uint32
	held   []thing
	scope  *pool.Scope
	place  gc.WaitPlace
}

// A thing is an array or a block, with the number it was filled with.
type thing struct {
	array pool.Array[byte]
	block pool.Block // if the array is none
	fill  uint64
}

func (w *worker) step() {
	switch k := w.rand.IntN(200); {
	case len(w.held) == 0 || k < 70 && len(w.held) < mostHeld:
		w.timed("array", w.newArray)
	case k < 100 && len(w.held) < mostHeld:
		w.timed("block", w.newBlock)
	case k < 160:
		w.timed("let go", w.drop)
	case k < 180:
		w.timed("view", w.view)
	case k < 195:
		w.timed("scope", w.inScope)
	case k < 198:
		w.timed("use", w.use)
	default:
		w.timed("sync", func() {
			if err := w.pool.Sync(&w.place, func() error { runtime.Gosched(); return nil }); err != nil {
				w.violation("sync: %v", err)
			}
		})
	}
}

// size is mostly small, and at times a large part of the limit.
func (w *worker) size() int {
	n := 1 + w.rand.IntN(1<<(4+w.rand.IntN(17)))
	if w.rand.IntN(200) == 0 {
		n = int(w.cfg.Limit) / (4 * w.cfg.Workers)
	}
	return n
}

func (w *worker) newArray() {
	a, err := pool.NewArray[byte](w.pool, w.size(), w.stream)
	if err != nil {
		w.failed("array", err)
		return
	}
	x := thing{array: a, fill: w.rand.Uint64()}
	if err := a.Do(func(b []byte) error { write(b, x.fill); return nil }); err != nil {
		w.violation("filling a new array: %v", err)
	}
	w.held = append(w.held, x)
}

func (w *worker) newBlock() {
	b, err := w.pool.Alloc(int64(w.size()), w.stream)
	if err != nil {
		w.failed("block", err)
		return
	}
	x := thing{block: b, fill: w.rand.Uint64()}
	write(w.pool.Memory(b), x.fill)
	w.held = append(w.held, x)
}

// take removes a thing from those held, after a look at what is in it.
func (w *worker) take() thing {
	i := w.rand.IntN(len(w.held))
	x := w.held[i]
	w.check(x)
	last := len(w.held) - 1
	w.held[i], w.held[last] = w.held[last], thing{}
	w.held = w.held[:last]
	return x
}

func (w *worker) check(x thing) {
	if x.block != (pool.Block{}) {
		if at := differs(w.pool.Memory(x.block), x.fill); at >= 0 {
			w.violation("byte %d of a block of %d was changed", at, x.block.Bytes)
		}
		return
	}
	err := x.array.Do(func(b []byte) error {
		if at := differs(b, x.fill); at >= 0 {
			w.violation("byte %d of an array of %d was changed", at, len(b))
		}
		return nil
	})
	if err != nil {
		w.violation("reading an array that is held: %v", err)
	}
}

// drop frees a thing, or leaves an array to the collector.
func (w *worker) drop() {
	x := w.take()
	switch {
	case x.block != (pool.Block{}):
		w.pool.Free(x.block)
	case w.rand.IntN(2) == 0:
		x.array.Free()
		x.array.Free() // freeing twice is allowed
		if err := x.array.Do(func([]byte) error { return nil }); err == nil {
			w.violation("a freed array can be read")
		}
	}
}

// view keeps part of an array alive when the array itself is dropped.
func (w *worker) view() {
	x := w.take()
	if x.block != (pool.Block{}) || x.array.Len() < 16 {
		w.held = append(w.held, x)
		return
	}
	half := x.array.Len() / 16 * 8
	w.held = append(w.held, thing{array: x.array.View(0, half), fill: x.fill})
}

func (w *worker) inScope() {
	for range 1 + w.rand.IntN(8) {
		a, err := pool.ScopedArray[byte](w.scope, w.size(), w.stream)
		if err != nil {
			w.failed("scoped array", err)
			break
		}
		if w.rand.IntN(8) == 0 && len(w.held) < mostHeld {
			x := thing{array: pool.Keep(w.scope, a), fill: w.rand.Uint64()}
			if err := a.Do(func(b []byte) error { write(b, x.fill); return nil }); err != nil {
				w.violation("filling a kept array: %v", err)
			}
			w.held = append(w.held, x)
		}
	}
	w.scope.End()
}

// use says that another stream works on something that is held.
func (w *worker) use() {
	x := w.held[w.rand.IntN(len(w.held))]
	stream := uint32(w.rand.IntN(4))
	if x.block != (pool.Block{}) {
		w.pool.Use(x.block, stream)
		return
	}
	x.array.Use(stream)
}

// letGo drops everything at the end.
func (w *worker) letGo() {
	for len(w.held) > 0 {
		w.drop()
	}
	w.scope.End()
	w.held = nil
}

// write fills b with a pattern that fill and the place decide.
func write(b []byte, fill uint64) {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], fill+uint64(i))
	}
	for ; i < len(b); i++ {
		b[i] = byte(fill)
	}
}

// differs returns the first place that write did not leave so, or -1. A view
// ends within the pattern: what is left of it after whole words is not looked at.
func differs(b []byte, fill uint64) int {
	for i := 0; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != fill+uint64(i) {
			return i
		}
	}
	return -1
}
