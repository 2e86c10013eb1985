// Nothing is four programs in which there is nothing to free, so that whoever collects for them
// does so in vain. EAGERGC_CLIENT_CASE chooses one:
//
//	held    700 MiB of C memory are in use all the time
//	mapped  a file of 2 GiB is mapped and read
//	rest    nothing happens at all
//	cache   a cache in C memory grows to 1 GiB, beside 1 GiB of Go pointers
package main

// #include <stdlib.h>
// #include <string.h>
import "C"

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

// CaseVariable is the environment variable that chooses the program.
const caseVariable = "EAGERGC_CLIENT_CASE"

type block struct{ data unsafe.Pointer }

type node struct {
	next *node
	id   int
}

var (
	blocks []*block
	list   *node
)

// grow holds size bytes more.
func grow(size int) {
	b := &block{C.malloc(C.size_t(size))}
	C.memset(b.data, 1, C.size_t(size))
	blocks = append(blocks, b)
}

func main() {
	name := os.Getenv(caseVariable)
	c, ok := map[string]frame.Client{
		"held":   {Workers: 1, Requests: 400, Start: held},
		"mapped": {Workers: 1, Requests: 400, Start: mapped},
		"rest":   {Workers: 1, Requests: 100, Start: func(*frame.Way) (frame.Service, error) { return nap, nil }},
		"cache":  {Workers: 1, Requests: 2000, Start: cache},
	}[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s=%q: want held, mapped, rest or cache\n", caseVariable, name)
		os.Exit(2)
	}
	frame.Main(name, c)
}

func nap(int) error { time.Sleep(50 * time.Millisecond); return nil }

func held(*frame.Way) (frame.Service, error) {
	for range 700 {
		grow(1 << 20)
	}
	return func(i int) error {
		compute()
		p := C.malloc(1 << 20) // what a request needs, and gives back
		C.memset(p, C.int(i), 1<<20)
		C.free(p)
		return nil
	}, nil
}

// compute takes some milliseconds.
func compute() {
	x := 1.0
	for i := range 4_000_000 {
		x += x / float64(i+1)
	}
	if x < 0 {
		panic("a sum of positive numbers is negative")
	}
}

func mapped(*frame.Way) (frame.Service, error) {
	const size = 2 << 30
	file, err := os.CreateTemp("", "mapped")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	defer os.Remove(file.Name())
	if err := file.Truncate(size); err != nil {
		return nil, err
	}
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	step := len(data) / 400
	return func(i int) error {
		sum := 0
		for k := i * step; k < (i+1)*step; k += os.Getpagesize() {
			sum += int(data[k])
		}
		if sum != 0 {
			return fmt.Errorf("the file has %d in it", sum)
		}
		compute()
		return nil
	}, nil
}

func cache(*frame.Way) (frame.Service, error) {
	for i := range 1 << 30 / 16 {
		list = &node{list, i}
	}
	return func(int) error {
		compute()
		grow(1 << 19)
		return nil
	}, nil
}
