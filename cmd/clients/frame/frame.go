// Package frame runs a client: a program that uses a library whose memory lies
// outside the Go heap. Every client serves requests with some workers; what
// differs between two runs is the way in which memory that a request is done
// with goes back ([Way]). The client tells its parent, on standard output, when the
// work begins and, at the end, what was measured ([Report]).
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
	Gauge    func() int64                  // bytes by the library's own counter; nil = it has none
}

// A Service serves request i. It is called by several workers at once.
type Service func(i int) error

// A Report is what a client measured of itself.
type Report struct {
	Seconds    float64 // of the work
	P50, P99   float64 // ms of a request
	Longest    float64 // ms
	CPU        float64 // s of processor time of the work, all threads
	GCCPU      float64 // s of it in Go's collector, by the runtime's estimate
	Faults     float64 // pages that the system had to find for the work (minor faults)
	Cycles     float64
	Forced     float64 // of them
	Overtaken  float64 // of those that the import has asked for, while finalizers or cleanups were due
	FirstCycle float64 // ms that a cycle takes before the work begins
	Cycle      float64 // ms, median of the cycles that the way itself runs
}

// Begin is the line that a client prints when its work begins.
const Begin = "begin"

// Main runs c as its flags say, prints its report and exits.
func Main(name string, c Client) {
	way := flag.String("way", "plain", "how memory goes back; see way.go")
	workers := flag.Int("workers", c.Workers, "requests at once")
	requests := flag.Int("requests", c.Requests, "requests in all")
	idle := flag.Duration("idle", 0, "pause after each quarter of the requests")
	record := flag.String("record", "", "file for a recording of way close, for replay")
	by := flag.String("by", "own", "how a recording counts: own, account or gauge")
	flag.Parse()
	c.Workers, c.Requests = *workers, *requests
	report, err := c.run(name, *way, *idle, *record, *by)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(report)
	os.Exit(0) // what still waits for a cycle goes with the process
}

func (c Client) run(name, wayName string, idle time.Duration, record, by string) (Report, error) {
	way, err := newWay(wayName, c)
	if err != nil {
		return Report{}, err
	}
	serve, err := c.Start(way)
	if err != nil {
		return Report{}, err
	}
	atRest := time.Now()
	runtime.GC() // what the start left is no concern of the work
	firstCycle := time.Since(atRest)
	fmt.Println(Begin)
	before, begin := usage(), time.Now()
	finish := func() error { return nil }
	if record != "" {
		if finish, err = way.record(record, by, name, c); err != nil {
			return Report{}, err
		}
	}
	way.begin()
	times := make([]time.Duration, c.Requests)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	for phase := range 4 {
		end := int64(c.Requests * (phase + 1) / 4)
		var all sync.WaitGroup
		for range c.Workers {
			all.Go(func() {
				for {
					i := next.Add(1) - 1
					if i >= end {
						next.Add(-1)
						return
					}
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
		way.rest(idle)
	}
	took, after := time.Since(begin), usage()
	if e := failed.Load(); e != nil {
		return Report{}, *e
	}
	if err := finish(); err != nil {
		return Report{}, err
	}
	return Report{
		Seconds: took.Seconds(), P50: quantile(times, 0.5), P99: quantile(times, 0.99), Longest: quantile(times, 1),
		Overtaken: overtaken(),
		CPU:       after.cpu - before.cpu, GCCPU: after.gc - before.gc, Faults: float64(after.faults - before.faults), Cycles: float64(after.cycles - before.cycles), Forced: float64(after.forced - before.forced),
		FirstCycle: ms(firstCycle), Cycle: way.cycle(),
	}, nil
}

// quantile returns one in ms. It sorts times.
func quantile(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return ms(times[min(len(times)-1, int(q*float64(len(times))))])
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// overtaken is what the import has counted; 0 where it is off.
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
