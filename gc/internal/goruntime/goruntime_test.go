package goruntime_test

import (
	"runtime"
	"testing"

	"github.com/eagergc/eagergc/gc/internal/goruntime"
)

type node struct{ next, other *node }

// TestCyclesTakeNoMoreThanTheProcess does. With GOMAXPROCS far above the number of processors, the
// clock says more.
func TestCyclesTakeNoMoreThanTheProcess(t *testing.T) {
	r := goruntime.New()
	if r.Used() == 0 {
		t.Skip("the processor time of the process is unknown")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16 * runtime.NumCPU()))
	lists := make([]*node, 256) // work for all that mark
	for i := range 1 << 20 {
		list := &lists[i%len(lists)]
		*list = &node{*list, *list}
	}
	for range 5 {
		before := r.Used()
		counted := r.Processor()
		runtime.GC()
		counted = r.Processor() - counted
		if took := r.Used() - before; counted > took {
			t.Errorf("%v are counted, where the process took %v", counted, took)
		}
	}
	runtime.KeepAlive(lists)
}
