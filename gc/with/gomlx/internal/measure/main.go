// Measure runs programs of GoMLX that forget their tensors, or do not, and says how long that takes: lines of
// Go's benchmark format. See results/2026-11-23-gomlx.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	rtrace "runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/with/gomlx"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// An experiment is what the flags say.
type experiment struct {
	plugin, options     string
	program             string
	manners, heaps, cut string
	limit               pressure.Limit
	steps, rounds       int
	small               int
	seconds             time.Duration
	record, curve       string
	trace               string
	raw                 backends.Backend
	out                 io.Writer
}

func run(args []string, out io.Writer) (err error) {
	e := experiment{out: out}
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.StringVar(&e.plugin, "plugin", "", "path of a PJRT plugin; simplego if empty")
	flags.StringVar(&e.options, "options", "", "of the plugin's client: memory_fraction=0.1,preallocate=true,allocator=bfc")
	flags.StringVar(&e.program, "program", "array", "array, dense, train, serve, or probe")
	flags.StringVar(&e.manners, "manners", "hand,default", "asis, hand, tick100ms, hand+tick25ms, wrapped (and finalized by hand), bare (the wrapper without a limit), default, soft (assists), or a policy")
	flags.StringVar(&e.heaps, "heaps", "0", "MiB of Go pointers beside the program")
	flags.TextVar(&e.limit, "limit", pressure.Limit{}, "of the wrapper")
	flags.IntVar(&e.steps, "steps", 100, "of a run")
	flags.IntVar(&e.rounds, "rounds", 1, "of all manners in turn")
	flags.IntVar(&e.small, "small", 1, "divides the program's sizes")
	flags.DurationVar(&e.seconds, "seconds", 20*time.Second, "a run is cut off after")
	flags.StringVar(&e.record, "record", "", "file of a recording, with a cycle at every wait")
	flags.StringVar(&e.curve, "curve", "", "file of the buffers alive over time")
	flags.StringVar(&e.trace, "trace", "", "file of an execution trace of the last run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if e.raw, err = e.open(); err != nil {
		return err
	}
	if e.program == "probe" {
		return e.probe()
	}
	for _, heap := range strings.Split(e.heaps, ",") {
		mib, err := strconv.Atoi(heap)
		if err != nil {
			return fmt.Errorf("-heaps: %w", err)
		}
		pointers := fill(mib << 20)
		for range e.rounds {
			for _, manner := range strings.Split(e.manners, ",") {
				if err := e.cell(manner, mib); err != nil {
					return fmt.Errorf("%s: %w", manner, err)
				}
				for range 50 { // what this run has left is not the next one's
					if runtime.GC(); pjrt.BuffersAlive() == 0 {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				if left := pjrt.BuffersAlive(); left > 0 {
					fmt.Fprintf(e.out, "# %d buffers are left\n", left)
				}
			}
		}
		runtime.KeepAlive(pointers)
	}
	return nil
}

func (e *experiment) open() (backends.Backend, error) {
	if e.plugin == "" {
		return backends.NewWithConfig("go")
	}
	options := pjrt.NamedValuesMap{}
	for _, o := range strings.FieldsFunc(e.options, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(o, "=")
		if f, err := strconv.ParseFloat(value, 32); err == nil {
			options[key] = float32(f)
		} else if b, err := strconv.ParseBool(value); err == nil {
			options[key] = b
		} else {
			options[key] = value
		}
	}
	return xla.NewWithOptions(e.plugin, options)
}

type node struct{ a, b, c *node }

// fill makes a heap of pointers, no list, of so many bytes.
func fill(bytes int) []*node {
	all := make([]*node, bytes/40)
	for i := range all {
		all[i] = new(node)
		if i > 0 {
			all[i].a, all[i].b = all[i/2], all[i-1-i/3]
		}
	}
	return all
}

// forgetful is a backend that nobody can give anything back to by hand.
type forgetful struct{ backends.Backend }

func (forgetful) BufferFinalize(backends.Buffer) error { return nil }

// backend returns the one of a manner, and its collector if it has one.
func (e *experiment) backend(manner string) (backends.Backend, *gc.Collector, error) {
	var config gc.Config
	limit, err := e.limit.Of(0)
	if err != nil {
		return nil, nil, err
	}
	config.Limit = limit
	switch {
	case manner == "wrapped": // and finalized by hand
		b, err := gomlx.Wrap(e.raw, config)
		return b, b.Collector(0), err
	case strings.HasPrefix(manner, "hand"):
		return e.raw, nil, nil
	case manner == "asis" || strings.HasPrefix(manner, "tick"):
		return forgetful{e.raw}, nil, nil
	case e.record != "":
		recorder, err := trace.Record(e.record, &trace.Trace{Name: "gomlx-" + e.program}, trace.RecorderConfig{})
		if err != nil {
			return nil, nil, err
		}
		config.Recorder, config.Caps.Cycles, config.Policy = recorder, 1, gc.MustParse("always").New()
		b, err := gomlx.Wrap(e.raw, config)
		return closing{forgetful{b}, recorder}, b.Collector(0), err
	case manner == "bare":
		config.Limit, config.Policy = 0, gc.MustParse("never").New()
	case manner == "soft":
		config.Caps.Assist = 10 * time.Millisecond
	case manner != "default":
		spec, err := gc.Parse(manner)
		if err != nil {
			return nil, nil, err
		}
		config.Policy = spec.New()
	}
	b, err := gomlx.Wrap(e.raw, config)
	if err != nil {
		return nil, nil, err
	}
	return forgetful{b}, b.Collector(0), nil
}

// closing has a recorder to close at the end.
type closing struct {
	backends.Backend
	recorder io.Closer
}

// cell runs the program once, in one manner.
func (e *experiment) cell(manner string, heap int) error {
	backend, collector, err := e.backend(manner)
	if err != nil {
		return err
	}
	make := programs[e.program]
	if make == nil {
		return errors.New("no such program")
	}
	done := func(...*tensors.Tensor) {}
	if strings.HasPrefix(manner, "hand") || manner == "wrapped" {
		done = func(all ...*tensors.Tensor) {
			for _, t := range all {
				t.MustFinalizeAll()
			}
		}
	}
	step, err := make(backend, e.small, done)
	for i := 0; i < 3 && err == nil; i++ { // compiles
		err = step()
	}
	if err != nil {
		(&measurement{failed: err}).print(e, manner, heap, collector)
		return nil
	}
	if e.trace != "" {
		file, err := os.Create(e.trace)
		if err != nil {
			return err
		}
		if err := rtrace.Start(file); err != nil {
			return err
		}
		defer file.Close()
		defer rtrace.Stop()
	}
	stop := e.beside(manner)
	m := e.measure(step)
	stop()
	m.print(e, manner, heap, collector)
	if collector != nil {
		collector.Close()
	}
	if c, ok := backend.(closing); ok {
		if err := c.recorder.Close(); err != nil {
			return err
		}
	}
	return nil
}

// beside starts a ticker that collects, if the manner is one, and what writes the curve.
func (e *experiment) beside(manner string) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	_, period, _ := strings.Cut(manner, "tick")
	every, _ := time.ParseDuration(period)
	go func() {
		defer close(gone)
		if every == 0 {
			return
		}
		for {
			select {
			case <-quit:
				return
			case <-time.After(every):
				runtime.GC()
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// A measurement is one run's.
type measurement struct {
	steps  []time.Duration
	failed error
	peak   int64 // PJRT's buffers
	cycles uint32
	curve  strings.Builder
}

func (e *experiment) measure(step func() error) *measurement {
	var m measurement
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, quit, gone := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for last := int64(-1); ; {
			alive := pjrt.BuffersAlive()
			m.peak = max(m.peak, alive)
			if alive != last {
				fmt.Fprintf(&m.curve, "%.3f %d\n", time.Since(begin).Seconds(), alive)
			}
			last = alive
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	for last := begin; len(m.steps) < e.steps && time.Since(begin) < e.seconds; {
		if m.failed = step(); m.failed != nil {
			break
		}
		now := time.Now()
		m.steps = append(m.steps, now.Sub(last))
		last = now
	}
	close(quit)
	<-gone
	runtime.ReadMemStats(&after)
	m.cycles = after.NumGC - before.NumGC
	return &m
}

func (m *measurement) print(e *experiment, manner string, heap int, c *gc.Collector) {
	var sum time.Duration
	for _, d := range m.steps {
		sum += d
	}
	sorted := append(slices.Sorted(slices.Values(m.steps)), 0)
	n := len(m.steps)
	fmt.Fprintf(e.out, "BenchmarkGomlx/program=%s/heap=%dMiB/limit=%v/manner=%s %d %d ns/op %d p99-ns %d max-ns %d gc-cycles %d peak-buffers",
		e.program, heap, e.limit, manner, n, int64(sum)/int64(max(1, n)), int64(sorted[max(0, n*99/100-1)]), int64(sorted[max(0, n-1)]), m.cycles, m.peak)
	if c != nil {
		s := c.Stats()
		fmt.Fprintf(e.out, " %d policy-cycles %d refusal-cycles %d exposed-ns %d cycle-ns", s.Cycles[gc.TriggerPolicy], s.Cycles[gc.TriggerRefusal], s.Exposed, s.Cost)
	}
	if m.failed != nil {
		fmt.Fprintf(e.out, " 1 failed\n# %.300s", strings.ReplaceAll(m.failed.Error(), "\n", " "))
	}
	fmt.Fprintln(e.out)
	if e.curve != "" {
		_ = os.WriteFile(fmt.Sprintf("%s-%s-%d.txt", e.curve, manner, heap), []byte(m.curve.String()), 0o666)
	}
}

// probe keeps arrays of 64 MiB until there is no memory, and says what happens then.
func (e *experiment) probe() error {
	fmt.Fprintln(e.out, e.raw.Description(), "|", e.raw.DeviceDescription(0))
	b, err := gomlx.Wrap(e.raw)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.out, "wrapped:", b.Description())
	var kept []backends.Buffer
	for n := 16 << 20; n >= 4<<20; n /= 4 {
		flat, shape := make([]float32, n), tensors.FromFlatDataAndDimensions(make([]float32, n), n).Shape()
		for begin := time.Now(); ; begin = time.Now() {
			x, err := e.raw.BufferFromFlatData(0, flat, shape)
			if err != nil {
				fmt.Fprintf(e.out, "%d kept of 64 and 16 MiB, the next, of %d MiB: after %v: %.600v\n", len(kept), n>>18, time.Since(begin), err)
				break
			}
			if kept = append(kept, x); time.Since(begin) > time.Second {
				fmt.Fprintf(e.out, "%d kept: the last took %v\n", len(kept), time.Since(begin))
			}
		}
	}
	return nil
}
