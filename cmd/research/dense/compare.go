package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

type result struct {
	policy   string
	time     time.Duration // of all epochs
	losses   []float64     // by epoch
	gc       gc.Stats
	peak     int64 // live bytes
	reserved int64 // peak of what the pool held of its upstream
	refusals int64 // allocations that did not fit at first
}

// compare trains under each policy in turn, for each run and each ballast.
func (o *options) compare(w io.Writer) error {
	specs, err := o.specs()
	if err != nil {
		return err
	}
	ballasts, err := sizes(o.ballasts)
	if err != nil {
		return err
	}
	want := reference(o.shape, min(o.check, o.epochs))
	fmt.Fprintf(w, "# pool %s, limit %s, %d epochs; each policy in turn, %d times\n", o.pool, o.limit, o.epochs, o.runs)
	for _, bytes := range ballasts {
		ballast := live.NewBallast(bytes)
		runs := make([][]result, len(specs))
		for range o.runs {
			for i, spec := range specs {
				r, err := o.train(w, spec)
				if err == nil {
					err = compareLosses(r.losses, want)
				}
				if err != nil {
					return fmt.Errorf("policy %v, ballast %v: %w", spec, pressure.Bytes(bytes), err)
				}
				printBench(w, o.pool, bytes, r)
				runs[i] = append(runs[i], r)
			}
		}
		runtime.KeepAlive(ballast)
		printTable(w, bytes, runs)
	}
	for e, l := range want {
		fmt.Fprintf(w, "# epoch %d: float64 reference loss %.7g, agreed to within %g\n", e+1, l, tolerance)
	}
	return nil
}

// tolerance is how far a float32 loss may be from the float64 one.
const tolerance = 1e-3

func compareLosses(got, want []float64) error {
	for e, l := range want {
		if !(math.Abs(got[e]-l) <= tolerance*l) { // not >: NaN must fail
			return fmt.Errorf("epoch %d: loss %.7g, the float64 reference says %.7g", e+1, got[e], l)
		}
	}
	return nil
}

// train runs one training from nothing.
func (o *options) train(w io.Writer, spec policy.Spec) (r result, err error) {
	runtime.GC() // each training starts with a clean heap
	s, err := o.open(spec)
	if err != nil {
		return r, err
	}
	m := newModel(o.shape, s.lib)
	if err := s.wait(); err != nil {
		return r, err
	}
	start := time.Now()
	for e := range o.epochs {
		loss, err := m.epoch()
		if err != nil {
			return r, fmt.Errorf("epoch %d: %w", e+1, err)
		}
		if o.log {
			fmt.Fprintf(w, "%v epoch %d: loss %.7g\n", spec, e+1, loss)
		}
		r.losses = append(r.losses, loss)
	}
	if err := s.wait(); err != nil {
		return r, err
	}
	r.time = time.Since(start)
	r.policy = spec.String()
	s.report(&r)
	return r, s.close()
}

// printBench prints r as a line of a Go benchmark, which benchstat reads.
func printBench(w io.Writer, pool string, ballast int64, r result) {
	fmt.Fprintf(w, "BenchmarkDense/pool=%s/ballast=%s/policy=%s 1 %d ns/op %d peak-B %d reserved-peak-B %d exposed-ns"+
		" %d max-pause-ns %d gc-busy-ns %d policy-cycles %d refusal-cycles %d natural-cycles %d freed-B %d refusals\n",
		pool, strings.ReplaceAll(pressure.Bytes(ballast).String(), " ", ""), r.policy, r.time.Nanoseconds(), r.peak, r.reserved,
		r.gc.Exposed.Nanoseconds(), r.gc.MaxPause.Nanoseconds(), r.gc.Busy.Nanoseconds(), r.gc.Cycles[policy.TriggerPolicy],
		r.gc.Cycles[policy.TriggerRefusal], r.gc.Cycles[policy.TriggerNatural], r.gc.Freed, r.refusals)
}

// printTable prints the medians of each policy's runs, and the ratio of its
// time to that of the first policy.
func printTable(w io.Writer, ballast int64, policies [][]result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ballast\tpolicy\ttime s\tratio\tpause ms\tlongest ms\tcycles\trefusals\tnatural\tfreed/cycle\tpeak\treserved\tlast loss\t")
	base := median(policies[0], func(r result) int64 { return int64(r.time) })
	for _, runs := range policies {
		mid := func(of func(result) int64) int64 { return median(runs, of) }
		took := mid(func(r result) int64 { return int64(r.time) })
		cycles := mid(func(r result) int64 {
			return int64(r.gc.Cycles[policy.TriggerPolicy] + r.gc.Cycles[policy.TriggerRefusal])
		})
		freed := mid(func(r result) int64 { return r.gc.Freed })
		fmt.Fprintf(t, "%v\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t%d\t%d\t%v\t%v\t%v\t%.6g\t\n",
			pressure.Bytes(ballast), runs[0].policy, float64(took)/1e9, float64(took)/float64(base),
			float64(mid(func(r result) int64 { return int64(r.gc.Exposed) }))/1e6,
			float64(mid(func(r result) int64 { return int64(r.gc.MaxPause) }))/1e6,
			cycles, mid(func(r result) int64 { return int64(r.refusals) }),
			mid(func(r result) int64 { return int64(r.gc.Cycles[policy.TriggerNatural]) }),
			pressure.Bytes(freed/max(1, cycles)),
			pressure.Bytes(mid(func(r result) int64 { return r.peak })),
			pressure.Bytes(mid(func(r result) int64 { return r.reserved })),
			runs[0].losses[len(runs[0].losses)-1])
	}
	t.Flush()
}

// median is the upper median of one figure of the runs.
func median(runs []result, of func(result) int64) int64 {
	values := make([]int64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
