// Matrix makes matrices in memory of C's malloc, beside a list of 100 MiB of Go pointers. The list
// makes cycles expensive.
package main

// #include <stdlib.h>
// #include <malloc.h>
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const (
	side  = 362 // of a matrix, so that it has 1 MiB
	bytes = side * side * 8
	nodes = 100 << 20 / 16
)

// A matrix is a handle to memory of C's.
type matrix struct {
	data unsafe.Pointer
	rows int
}

func (m *matrix) values() []float64 { return unsafe.Slice((*float64)(m.data), m.rows*m.rows) }

type node struct {
	next *node
	id   int
}

var list *node

func main() {
	frame.Main("matrix", frame.Client{Workers: 2, Requests: 3600, Gauge: allocated, Start: start})
}

// allocated returns the bytes that C's malloc has in use, by its own count.
func allocated() int64 {
	info := C.mallinfo2()
	return int64(info.uordblks + info.hblkhd)
}

func start(w *frame.Way) (frame.Service, error) {
	for i := range nodes {
		list = &node{list, i}
	}
	return func(i int) error {
		m := &matrix{data: C.malloc(bytes), rows: side}
		done := frame.Keep(w, m, bytes, func(p unsafe.Pointer) { C.free(p) }, m.data)
		defer done()
		sum := 0.0
		values := m.values()
		for k := range values {
			values[k] = float64(i + k)
		}
		for range 14 {
			for _, v := range values {
				sum += v
			}
		}
		if sum == 0 {
			panic("a sum of positive numbers is 0")
		}
		runtime.KeepAlive(m) // values does not keep m alive
		return nil
	}, nil
}
