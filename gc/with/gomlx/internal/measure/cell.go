package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/with/gomlx"
	"github.com/eagergc/eagergc/trace"
)

// compile runs a program for some steps with all of the arena.
func (e *experiment) compile(name string) error {
	if programs[name].make == nil {
		return fmt.Errorf("no such program")
	}
	err := (&cell{experiment: e, name: name, manner: "hand", factor: 1e6}).begin()
	e.raw.settle()
	return err
}

// A cell is one run of a program.
type cell struct {
	*experiment
	name, manner string
	heap         float64
	factor       float64
	step         func() error
	eager        *gomlx.Backend // nil: nothing collects but Go
	recorder     io.Closer

	steps  []time.Duration
	failed error
	peak   int64 // PJRT's buffers
	cycles uint32
	curve  strings.Builder
}

func (c *cell) limit() int64 {
	return int64(c.factor * float64(programs[c.name].reachable*mib/int64(c.small)))
}

const mib = 1 << 20

// begin makes the program, and runs three steps of it.
func (c *cell) begin() error {
	p := programs[c.name]
	if c.plugin != "" {
		if err := c.raw.leave(c.limit()*10/9+p.scratch*mib, c.arena*mib); err != nil {
			return err
		}
	}
	c.raw.program, c.raw.times = c.name, map[string]int{}
	b, err := c.backend()
	if err != nil {
		return err
	}
	done := func(...*tensors.Tensor) {}
	if c.manner == "hand" || c.manner == "wrapped" {
		done = func(all ...*tensors.Tensor) {
			for _, t := range all {
				t.MustFinalizeAll()
			}
		}
	}
	c.step, err = p.make(b, c.small, done)
	for i := 0; i < 3 && err == nil; i++ {
		err = c.step()
	}
	return err
}

// backend returns the one of the manner.
func (c *cell) backend() (b backends.Backend, err error) {
	switch {
	case c.manner == "hand":
		return c.raw, nil
	case c.manner == "asis" || strings.HasPrefix(c.manner, "tick"):
		return forgetful{c.raw}, nil
	}
	var configs []gc.Config
	for n := range c.raw.NumDevices() {
		config := gc.Config{Limit: c.limit() * int64(n+1)}
		if c.manner != "default" && c.manner != "wrapped" {
			spec, err := policy.Parse(c.manner)
			if err != nil {
				return nil, err
			}
			config.Policy = spec.New()
		}
		if c.record != "" && n == 0 {
			recorder, err := trace.Record(c.record, &trace.Trace{Name: c.name}, trace.RecorderConfig{})
			if err != nil {
				return nil, err
			}
			c.recorder, config.Recorder = recorder, recorder
		}
		configs = append(configs, config)
	}
	c.eager, err = gomlx.Wrap(c.raw, configs...)
	if err != nil || c.manner == "wrapped" {
		return c.eager, err
	}
	return forgetful{c.eager}, nil
}

// run is the whole of a cell: its line is printed at the end.
func (c *cell) run() error {
	label := c.manner
	var processors string
	c.manner, processors, _ = strings.Cut(c.manner, "@")
	if n, _ := strconv.Atoi(processors); n > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	}
	_, period, _ := strings.Cut(c.manner, "tick")
	every, _ := time.ParseDuration(period)
	untick := each(every, runtime.GC)
	if c.failed = c.begin(); c.failed == nil {
		c.measure()
	}
	untick()
	c.print(label)
	c.step = nil
	if c.eager != nil {
		for n := range c.raw.NumDevices() {
			c.eager.Collector(backends.DeviceNum(n)).Close()
		}
	}
	if c.recorder != nil {
		if err := c.recorder.Close(); err != nil {
			return err
		}
	}
	if left := c.raw.settle(); left > 0 {
		fmt.Fprintf(c.out, "# %d buffers are left\n", left)
	}
	return nil
}

// each calls f every so often until stop is called. Never, if that is 0.
func each(every time.Duration, f func()) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for every > 0 {
			select {
			case <-quit:
				return
			case <-time.After(every):
				f()
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// measure runs the steps.
func (c *cell) measure() {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, last := time.Now(), int64(-1)
	unwatch := each(time.Millisecond, func() {
		alive := pjrt.BuffersAlive() - c.raw.held()
		if c.peak = max(c.peak, alive); alive != last {
			fmt.Fprintf(&c.curve, "%.4f %d\n", time.Since(begin).Seconds(), alive)
		}
		last = alive
	})
	for last := begin; len(c.steps) < c.experiment.steps && last.Sub(begin) < c.seconds; {
		if c.failed = c.step(); c.failed != nil {
			break
		}
		now := time.Now()
		c.steps = append(c.steps, now.Sub(last))
		last = now
	}
	unwatch()
	runtime.ReadMemStats(&after)
	c.cycles = after.NumGC - before.NumGC
}

// print writes a line of Go's benchmark format.
func (c *cell) print(manner string) {
	var sum time.Duration
	for _, d := range c.steps {
		sum += d
	}
	n := len(c.steps)
	sorted := append(slices.Sorted(slices.Values(c.steps)), 0)
	fmt.Fprintf(c.out, "BenchmarkGomlx/program=%s/heap=%gMiB/limit=%gx/manner=%s %d %d ns/op %d p50-ns %d p99-ns %d max-ns %d gc-cycles %d peak-buffers",
		c.name, c.heap, c.factor, manner, n, int64(sum)/int64(max(1, n)), int64(sorted[n/2]), int64(sorted[max(0, n*99/100-1)]), int64(sorted[max(0, n-1)]), c.cycles, c.peak)
	if c.eager != nil {
		s := c.eager.Collector(0).Stats()
		fmt.Fprintf(c.out, " %d policy-cycles %d refusal-cycles %d exposed-ns %d cycle-ns", s.Cycles[policy.TriggerPolicy], s.Cycles[policy.TriggerRefusal], s.Exposed, s.Cost)
	}
	if c.failed != nil {
		fmt.Fprintf(c.out, " 1 failed\n# %.300s", strings.ReplaceAll(c.failed.Error(), "\n", " "))
	}
	fmt.Fprintln(c.out)
	if c.experiment.curve != "" {
		_ = os.WriteFile(fmt.Sprintf("%s-%s-%s-%g-%g.txt", c.experiment.curve, c.name, manner, c.heap, c.factor), []byte(c.curve.String()), 0o666)
	}
}
