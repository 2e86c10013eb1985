package goruntime

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// Go marks on a quarter of the processors. If that is less than one, Go interrupts a busy program on
// each of them for 10 to 40 ms at a time (fractional workers, runtime/mgcpacer.go). Meanwhile the
// goroutines there wait. With four processors, one worker marks all the time. The threads of the
// program then share the cores with its thread, in turns of 3 to 4 ms.
const (
	wholeWorker = 4
	longMark    = 100 * time.Millisecond // with shorter ones, sharing the cores makes requests wait longer (results/2026-11-27-cost)
)

var lent atomic.Int64 // GOMAXPROCS of the program while a cycle has more; otherwise 0

// A test replaces these.
var (
	cores = runtime.NumCPU
	busy  = 0.8 // least share of the processors that a busy program uses; Go marks on idle ones
)

// Processors returns GOMAXPROCS as the program knows it: see lend.
func Processors() int {
	if n := lent.Load(); n > 0 {
		return int(n)
	}
	return runtime.GOMAXPROCS(0)
}

// lend raises GOMAXPROCS to wholeWorker for a cycle, if the last mark was long, and the program has
// been busy since and has not collected by itself. It does so only if the program may use all cores.
// One with a quota of processor time would use that up too soon. The caller calls marked when the mark
// has ended, and takeBack when the sweep has.
func (r *Runtime) lend() (marked, takeBack func()) {
	own := runtime.GOMAXPROCS(0)
	if own >= wholeWorker || own < cores() || os.Getenv("GOMAXPROCS") != "" || !r.held(own) || !lent.CompareAndSwap(0, int64(own)) {
		return func() {}, func() {}
	}
	r.pay(1)
	runtime.GOMAXPROCS(wholeWorker)
	// All four processors work during the mark: the program or idle workers have the others. They share
	// the cores, so each gets less processor time than has passed by the clock, which is what Go counts.
	marked = func() { r.pay(float64(own) / wholeWorker) }
	return marked, func() {
		lower(own)
		lent.Store(0)
	}
}

// lower sets GOMAXPROCS to own again, unless the program has changed it. A change at the same moment
// may be lost. If a processor goes away during a sweep, the cleanups that wait there do not run until
// it is back (Go 1.26). So if another cycle has come in between, lower raises GOMAXPROCS once more, for
// a whole cycle.
func lower(own int) {
	for runtime.GOMAXPROCS(0) == wholeWorker {
		cycles := read(cyclesMetric)[0]
		setDefault()
		if runtime.GOMAXPROCS(0) != own {
			runtime.GOMAXPROCS(own)
		}
		if read(cyclesMetric)[0] == cycles {
			return
		}
		runtime.GOMAXPROCS(wholeWorker)
		runtime.GC()
	}
}

// A mark is the last call of Mark.
type mark struct {
	length time.Duration // without the sweep before it
	ended  time.Duration // by Now
	used   time.Duration // by then, as Used returns it
	cycles uint64        // by then
}

// held reports whether a mark on own processors is likely to hold the program.
func (r *Runtime) held(own int) bool {
	last := r.last.Load()
	return last != nil && last.length >= longMark && last.cycles == read(cyclesMetric)[0] &&
		float64(r.Used()-last.used) >= busy*float64(own)*float64(r.Now()-last.ended)
}
