package frame

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
)

// A Way is one way of giving back memory that a request is done with.
type Way struct {
	name      string
	collector *gc.Collector // of own and gauge
	every     int           // requests between two explicit cycles
	tick      time.Duration // time between two explicit cycles
	begin     func()        // what runs beside the work
	recording *recording    // of way close; nil = off
}

// Ways lists the names of ways, in the order of tables. A number after a colon is
// its parameter.
var Ways = []string{
	"plain",      // finalizers and cleanups, when Go happens to collect
	"close",      // each request gives back what it took: the best there is, and the most work to write
	"gogc:20",    // GOGC=20
	"memlimit:N", // GOMEMLIMIT of N MiB
	"every:10",   // runtime.GC() every 10 requests
	"tick:100ms", // runtime.GC() every 100 ms
	"own",        // gc.Own for each object
	"gauge",      // gc.Watch of the library's counter
	"auto",       // import _ ".../gc/auto"
	"otel:512",   // the OpenTelemetry memory limiter's rule, told of resident memory
	"watchdog:512", "gogctuner:512", "memlimiter:512", "automemlimit:512",
}

func newWay(text string, c Client) (*Way, error) {
	name, arg, _ := strings.Cut(text, ":")
	w := &Way{name: name, begin: func() {}}
	number := func() int {
		n, err := strconv.Atoi(arg)
		if err != nil {
			fmt.Fprintf(os.Stderr, "way %s: want a number after the colon\n", text)
			os.Exit(2)
		}
		return n
	}
	switch name {
	case "plain", "close", "auto":
	case "gogc":
		debug.SetGCPercent(number())
	case "memlimit":
		debug.SetMemoryLimit(int64(number()) << 20)
	case "every":
		w.every = number()
	case "tick":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return nil, err
		}
		w.begin = func() { go ticker(d) }
	case "own", "gauge":
		policy := arg
		if policy == "" {
			policy = gc.HostPolicy
		}
		spec, err := gc.Parse(policy)
		if err != nil {
			return nil, err
		}
		if w.collector, err = gc.New(gc.Config{Policy: spec.New()}); err != nil {
			return nil, err
		}
		if name == "gauge" {
			if c.Gauge == nil {
				return nil, fmt.Errorf("way %s: %w", text, ErrNoGauge)
			}
			w.begin = func() { gc.Watch(w.collector, c.Gauge) }
		}
	default:
		start, err := peer(name, arg)
		if err != nil {
			return nil, err
		}
		w.begin = start
	}
	return w, nil
}

func (w *Way) start() { w.begin() }

// served is called after each request.
func (w *Way) served(i int) {
	if w.every > 0 && i%w.every == w.every-1 {
		runtime.GC()
	}
}

func ticker(d time.Duration) {
	for range time.Tick(d) {
		runtime.GC()
	}
}

// Closes reports whether the program gives back by hand.
func (w *Way) Closes() bool { return w.name == "close" }

// Collector returns the collector of way own, else nil.
func (w *Way) Collector() *gc.Collector {
	if w.name != "own" {
		return nil
	}
	return w.collector
}

// Keep says that owner holds bytes which free(arg) gives back. The request calls done
// when it needs owner no longer: that gives them back where the way is close, and does
// nothing where a cycle is to find it out.
func Keep[T, A any](w *Way, owner *T, bytes int64, free func(A), arg A) (done func()) {
	switch {
	case w.Closes():
		return w.Recorded(bytes, func() { free(arg) })
	case w.Collector() != nil:
		gc.Own(w.collector, owner, bytes, free, arg)
	default:
		runtime.AddCleanup(owner, free, arg)
	}
	return func() {}
}

// ErrNoGauge says that way gauge is not for this client.
var ErrNoGauge = errors.New("this client's library counts nothing")
