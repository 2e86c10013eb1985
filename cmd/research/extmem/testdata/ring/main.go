// Ring maps 1 MiB for each of -n objects, and reaches the last 64 of them. It needs the patched Go. It
// prints a JSON object: see ring in cmd/research/extmem.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"
)

const (
	size  = 1 << 20
	reach = 64
)

type object struct{ memory []byte }

// A cycle is what happened from one mark to the next. The numbers are objects.
type cycle struct {
	Freed  int
	Settle time.Duration // from the mark to the lowest level
	Peak   int
	First  time.Duration // from the mark to the first object that was freed
}

var count struct {
	sync.Mutex
	live, peak, low int
	marked          time.Time // the last mark
	cycle           cycle
	cycles          []cycle
}

func main() {
	n := flag.Int("n", 3000, "number of objects")
	tell := flag.Bool("tell", true, "report the bytes to the runtime")
	byHand := flag.Bool("close", false, "free each object as soon as it is not needed")
	flag.Parse()
	adjust := func(int64) {}
	if *tell {
		adjust = debug.AdjustExternalMemory
	}
	free := func(memory []byte) {
		syscall.Munmap(memory)
		freed()
		adjust(-size)
	}
	mark := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(mark)
	before := mark[0].Value.Uint64()
	seen, begin := before, time.Now()
	var ring [reach]*object
	for i := range *n {
		memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			panic(err)
		}
		for k := 0; k < size; k += 4096 {
			memory[k] = 1
		}
		o := &object{memory}
		if old := ring[i%reach]; *byHand && old != nil {
			free(old.memory)
		} else if !*byHand {
			runtime.AddCleanup(o, free, memory)
		}
		ring[i%reach] = o
		added()
		adjust(size)
		if metrics.Read(mark); mark[0].Value.Uint64() != seen {
			seen = mark[0].Value.Uint64()
			marked()
		}
	}
	took := time.Since(begin)
	count.Lock()
	defer count.Unlock()
	json.NewEncoder(os.Stdout).Encode(map[string]any{"Objects": *n, "Took": took, "Peak": count.peak, "Marks": seen - before, "Cycles": count.cycles})
}

func added() {
	count.Lock()
	defer count.Unlock()
	count.live++
	count.peak, count.cycle.Peak = max(count.peak, count.live), max(count.cycle.Peak, count.live)
}

func freed() {
	count.Lock()
	defer count.Unlock()
	count.live--
	if count.cycle.Freed++; count.cycle.Freed == 1 {
		count.cycle.First = time.Since(count.marked)
	}
	if count.live < count.low {
		count.low, count.cycle.Settle = count.live, time.Since(count.marked)
	}
}

func marked() {
	count.Lock()
	defer count.Unlock()
	count.cycles = append(count.cycles, count.cycle)
	count.cycle = cycle{Peak: count.live}
	count.low, count.marked = count.live, time.Now()
}
