package goruntime_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

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

// TestLongMarksGetProcessors: on two cores a mark of many ms has four processors, if the program is busy and nobody has limited it.
// After the sweep the program has what it had, and all cleanups run.
func TestLongMarksGetProcessors(t *testing.T) {
	var list *node
	for range 1 << 22 {
		list = &node{next: list}
	}
	defer runtime.KeepAlive(list)
	for _, c := range []struct {
		name       string
		cores, own int
		env        string
		busy       float64 // least share of the processors
		collects   bool    // by itself, between the marks
		want       int
	}{
		{"two of two cores", 2, 2, "", 0, false, 4},
		{"two of three cores", 3, 2, "", 0, false, 2},
		{"four of four cores", 4, 4, "", 0, false, 4},
		{"two by the environment", 2, 2, "2", 0, false, 2},
		{"an idle program", 2, 2, "", 0.8, false, 2},
		{"a program that collects", 2, 2, "", 0, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", c.env)
			defer goruntime.Set(c.cores, c.busy)()
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.own))
			r, ran := goruntime.New(), new(atomic.Int64)
			r.Mark() // a long one
			time.Sleep(20 * time.Millisecond)
			if c.collects {
				runtime.GC()
			}
			const objects = 10_000
			for range objects {
				runtime.AddCleanup(&node{next: list}, func(n *atomic.Int64) { n.Add(1) }, ran)
			}
			marked := make(chan struct{})
			go func() {
				defer close(marked)
				r.Mark()
			}()
			most := 0
			for done := false; !done; {
				select {
				case <-marked:
					done = true
				case <-time.After(time.Millisecond):
					most = max(most, runtime.GOMAXPROCS(0))
					if n := goruntime.Processors(); n != c.own {
						t.Fatalf("%d processors of the program, want %d", n, c.own)
					}
				}
			}
			r.Close()
			if got := runtime.GOMAXPROCS(0); most != c.want || got != c.own {
				t.Errorf("%d processors during the mark, and %d after it; want %d and %d", most, got, c.want, c.own)
			}
			for range 1000 {
				if ran.Load() == objects {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%d cleanups have run, of %d", ran.Load(), objects)
		})
	}
}
