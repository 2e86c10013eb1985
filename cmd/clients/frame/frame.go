// Package frame runs a client: a program that uses a library whose memory lies outside the Go heap.
// A client serves requests with some workers. Runs differ in the [Way] in which the memory of a
// finished request is freed. The client prints a line when its work begins, and its [Report] at the
// end.
package frame

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eagergc/eagergc/gc/auto"
)

// A Client is a program to measure.
type Client struct {
	Workers  int                           // requests at once
	Requests int                           // in all
	Start    func(w *Way) (Service, error) // before the work begins
	Gauge    func() int64                  // returns the bytes that the library counts; nil if it does not count
}

// A Service serves request i. Several workers call it at once.
type Service func(i int) error

// A Report is the measurements of a client, by the columns of runs.csv:
//
//	s                            elapsed time of the work
//	p50_ms, p99_ms, longest_ms   quantiles of the time of a request
//	cpu_s                        processor time of all threads
//	gc_cpu_s                     the collector's part of it, by the runtime's estimate
//	faults                       minor page faults
//	cycles, forced               all cycles, and the explicit ones among them
//	overtaken                    cycles that the import ran while finalizers or cleanups were due
//	first_cycle_ms               length of a cycle before the work begins
//	cycle_ms                     median length of the cycles that the way runs
type Report map[string]float64

// Begin is the line that a client prints when its work begins.
const Begin = "begin"

// Main runs c with the settings of its flags, prints its report and exits.
func Main(name string, c Client) {
	way := flag.String("way", "plain", "how memory goes back; see way.go")
	workers := flag.Int("workers", c.Workers, "requests at once")
	requests := flag.Int("requests", c.Requests, "requests in all")
	flag.Parse()
	c.Workers, c.Requests = *workers, *requests
	report, err := c.run(*way)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(report)
	os.Exit(0) // do not wait for pending cleanups
}

func (c Client) run(wayName string) (Report, error) {
	way, err := newWay(wayName, c)
	if err != nil {
		return nil, err
	}
	serve, err := c.Start(way)
	if err != nil {
		return nil, err
	}
	atRest := time.Now()
	runtime.GC() // collect the garbage of the start before the work
	firstCycle := time.Since(atRest)
	fmt.Println(Begin)
	before, begin := usage(), time.Now()
	way.begin()
	times := make([]time.Duration, c.Requests)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range c.Workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(c.Requests); i = next.Add(1) - 1 {
				t := time.Now()
				if err := serve(int(i)); err != nil {
					failed.Store(&err)
					return
				}
				times[i] = time.Since(t)
			}
		})
	}
	all.Wait()
	took, after := time.Since(begin), usage()
	if e := failed.Load(); e != nil {
		return nil, *e
	}
	return Report{
		"s": took.Seconds(), "p50_ms": quantile(times, 0.5), "p99_ms": quantile(times, 0.99), "longest_ms": quantile(times, 1),
		"cpu_s": after.cpu - before.cpu, "gc_cpu_s": after.gc - before.gc, "faults": float64(after.faults - before.faults),
		"cycles": float64(after.cycles - before.cycles), "forced": float64(after.forced - before.forced), "overtaken": overtaken(),
		"first_cycle_ms": ms(firstCycle), "cycle_ms": way.cycle(),
	}, nil
}

// quantile returns a quantile in ms. It sorts times.
func quantile(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return ms(times[min(len(times)-1, int(q*float64(len(times))))])
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// overtaken returns the counter of the import, or 0 if the import is off.
func overtaken() float64 {
	if c := auto.Collector(); c != nil {
		return float64(c.Stats().Overtaken)
	}
	return 0
}

type used struct {
	cpu, gc float64
	faults  int64
	cycles  uint64
	forced  uint64
}

func usage() used {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(s)
	return used{
		faults: r.Minflt,
		cpu:    float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9,
		gc:     s[1].Value.Float64() - s[2].Value.Float64(),
		cycles: s[0].Value.Uint64(),
		forced: s[3].Value.Uint64(),
	}
}
