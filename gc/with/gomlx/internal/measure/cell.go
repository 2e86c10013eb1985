package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/with/gomlx"
	"github.com/eagergc/eagergc/trace"
)

// compile runs a program for some steps with the whole arena and finalizes each array by hand. The
// peak of live bytes counts as the reachable bytes.
func (e *experiment) compile(name string) error {
	if programs[name] == nil {
		return fmt.Errorf("no such program")
	}
	c := &cell{experiment: e, name: name, manner: "wrapped", held: new(holding)}
	err := c.begin()
	for i := 0; i < 30 && err == nil; i++ {
		err = c.step()
	}
	c.close()
	e.raw.settle()
	e.reachable[name] = c.held.most
	fmt.Fprintf(e.out, "# %s: %d bytes reachable on the device, %d more while it executes\n", name, c.held.most, e.raw.scratch[name])
	return err
}

// A holding is a sink that computes the peak of live bytes.
type holding struct {
	mu         sync.Mutex
	live, most int64
}

func (h *holding) Now() time.Duration  { return 0 }
func (h *holding) Label(string) uint32 { return 0 }
func (h *holding) Record(e trace.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case trace.Alloc:
		h.live += e.Bytes
	case trace.Free:
		h.live -= e.Bytes
	}
	h.most = max(h.most, h.live)
}

// A forgotten sink records what the program does, and nothing of the collector. It takes an array
// that the program finalizes for one that it drops at that time.
type forgotten struct{ trace.Sink }

func (f forgotten) Record(e trace.Event) {
	switch e.Kind {
	case trace.Free:
		e.Kind = trace.Drop
		fallthrough
	case trace.Alloc, trace.Sync:
		f.Sink.Record(e)
	}
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
	held         *holding // sink for the events; nil = none

	steps  []time.Duration
	failed error
	peak   int64 // PJRT's buffers
	cycles uint32
}

// limit returns the limit of the device, or 0 for none.
func (c *cell) limit() int64 { return int64(c.factor * float64(c.reachable[c.name])) }

// left returns the bytes of the arena for the program. They are its limit, the needs of its
// executions (four at once in serve), and the needs of one more execution, because memory must be
// in one piece. Manners with a limit also get a ninth of it.
func (c *cell) left() int64 {
	if c.factor == 0 {
		return c.arena * mib
	}
	executions, scratch := int64(1), c.raw.scratch[c.name]
	if c.name == "serve" {
		executions = 4
	}
	room := c.limit() + executions*scratch + max(scratch, 32*mib)
	if c.manner == "asis" || strings.HasPrefix(c.manner, "tick") {
		return room
	}
	return room + c.limit()/9
}

const mib = 1 << 20

// begin makes the program and runs three steps.
func (c *cell) begin() error {
	if c.plugin != "" {
		if err := c.raw.leave(c.arena*mib, c.left()); err != nil {
			return err
		}
	}
	c.raw.program, c.raw.times = c.name, map[string]int{}
	b, err := c.backend()
	if err != nil {
		return err
	}
	done := func(...*tensors.Tensor) {}
	if strings.HasPrefix(c.manner, "hand") || c.manner == "wrapped" {
		done = func(all ...*tensors.Tensor) {
			for _, t := range all {
				t.MustFinalizeAll()
			}
		}
	}
	err = try(func() { c.step = programs[c.name](b, c.small, done) })
	for i := 0; i < 3 && err == nil; i++ {
		err = c.step()
	}
	return err
}

// backend returns the backend of the manner.
func (c *cell) backend() (b backends.Backend, err error) {
	switch {
	case strings.HasPrefix(c.manner, "hand"):
		return c.raw, nil
	case c.manner == "asis" || strings.HasPrefix(c.manner, "tick"):
		return forgetful{c.raw}, nil
	}
	configs := make([]gc.Config, c.raw.NumDevices()) // programs use the first device
	config := &configs[0]
	config.Limit = c.limit()
	if c.manner != "default" && c.manner != "wrapped" {
		spec, err := policy.Parse(c.manner)
		if err != nil {
			return nil, err
		}
		config.Policy = spec.New()
	}
	switch {
	case c.held != nil:
		config.Recorder = c.held
	case c.record != "":
		recorder, err := trace.Record(c.record, &trace.Trace{Name: c.name}, trace.RecorderConfig{})
		if err != nil {
			return nil, err
		}
		if c.recorder, config.Recorder = recorder, recorder; c.manner == "wrapped" {
			config.Recorder = forgotten{recorder}
		}
	}
	c.eager, err = gomlx.Wrap(c.raw, configs...)
	if err != nil || c.manner == "wrapped" {
		return c.eager, err
	}
	return forgetful{c.eager}, nil
}

// run runs the cell and prints its line.
func (c *cell) run() error {
	_, period, _ := strings.Cut(c.manner, "tick")
	every, _ := time.ParseDuration(period)
	untick := each(every, runtime.GC)
	if c.failed = c.begin(); c.failed == nil {
		c.measure(max(c.seconds, every*5/2))
	}
	untick()
	c.print()
	if err := c.close(); err != nil {
		return err
	}
	if left := c.raw.settle(); left > 0 {
		fmt.Fprintf(c.out, "# %d buffers are left\n", left)
	}
	return nil
}

func (c *cell) close() error {
	c.step = nil
	for n := range c.raw.NumDevices() {
		if c.eager != nil {
			c.eager.Collector(backends.DeviceNum(n)).Close()
		}
	}
	if c.recorder == nil {
		return nil
	}
	return c.recorder.Close()
}

// each calls f once in each period until stop is called. A period of 0 means never.
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
func (c *cell) measure(span time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	unwatch := each(time.Millisecond, func() { c.peak = max(c.peak, pjrt.BuffersAlive()-c.raw.held) })
	begin := time.Now()
	for last := begin; len(c.steps) < c.experiment.steps && last.Sub(begin) < span; {
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
func (c *cell) print() {
	var sum time.Duration
	for _, d := range c.steps {
		sum += d
	}
	n := len(c.steps)
	sorted := append(slices.Sorted(slices.Values(c.steps)), 0)
	fmt.Fprintf(c.out, "BenchmarkGomlx/program=%s/heap=%gMiB/limit=%gx/manner=%s %d %d ns/op %d p50-ns %d p99-ns %d max-ns %d gc-cycles %d peak-buffers", c.name, c.heap, c.factor, c.manner, n,
		int64(sum)/int64(max(1, n)), int64(sorted[n/2]), int64(sorted[max(0, n*99/100-1)]), int64(sorted[max(0, n-1)]), c.cycles, c.peak)
	if c.eager != nil {
		s, most := c.eager.Collector(0).Snapshot(), int64(0)
		for _, source := range s.Sources { // one, if anything was made there
			for _, level := range source.Levels {
				most = max(most, level.Most)
			}
		}
		fmt.Fprintf(c.out, " %d policy-cycles %d refusal-cycles %d natural-cycles %d exposed-ns %d cycle-ns %.3f slowdown %d peak-bytes %d limit-bytes",
			s.Stats.Cycles[policy.TriggerPolicy], s.Stats.Cycles[policy.TriggerRefusal], s.Stats.Cycles[policy.TriggerNatural], s.Stats.Exposed, s.Stats.Cost, s.Stats.Slowdown, most, c.limit())
	}
	if c.failed != nil {
		fmt.Fprintf(c.out, " 1 failed\n# %.300s", strings.ReplaceAll(c.failed.Error(), "\n", " "))
	}
	fmt.Fprintln(c.out)
}
