package frame

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// A Way is one way of freeing the memory of a finished request.
type Way struct {
	name      string
	own       bool          // pass each object to collector
	collector *gc.Collector // nil if the way has none
	begin     func()        // starts the goroutines that run beside the work

	mu     sync.Mutex
	cycles []time.Duration // lengths of explicit cycles
}

// newWay returns the way with the given name. A number after a colon is its parameter:
//
//	plain       finalizers and cleanups, whenever Go collects
//	close       each request frees its memory by hand: the least memory and the most code
//	memlimit:N  GOMEMLIMIT of N MiB
//	tick:100ms  runtime.GC() every 100 ms
//	close+auto  close, with the import beside it
//	own         gc.Own for each object
//	gauge       gc.Watch of the library's counter
//	auto        import _ ".../gc/auto"
func newWay(text string, c Client) (*Way, error) {
	name, arg, _ := strings.Cut(text, ":")
	w := &Way{name: name, begin: func() {}}
	switch name {
	case "plain", "close", "close+auto", "auto":
	case "memlimit":
		mib, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, err
		}
		debug.SetMemoryLimit(mib << 20)
	case "tick":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return nil, err
		}
		w.begin = func() { go w.ticker(d) }
	case "own", "gauge":
		if w.own = name == "own"; !w.own && c.Gauge == nil {
			return nil, ErrNoWay
		} else if !w.own {
			w.begin = func() { gc.Watch(w.collector, c.Gauge) }
		}
		spec, err := policy.Parse(cmp.Or(arg, gc.HostPolicy))
		if err != nil {
			return nil, err
		}
		if w.collector, err = gc.New(gc.Config{Policy: spec.New()}); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%q: %w", text, ErrNoWay)
	}
	return w, nil
}

// ticker runs explicit cycles.
func (w *Way) ticker(d time.Duration) {
	for range time.Tick(d) {
		begin := time.Now()
		runtime.GC()
		took := time.Since(begin)
		w.mu.Lock()
		w.cycles = append(w.cycles, took)
		w.mu.Unlock()
	}
}

// cycle returns the median length of the explicit cycles in ms, or 0 if there were none.
func (w *Way) cycle() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return quantile(w.cycles, 0.5)
}

// Closes reports whether requests free their memory by hand.
func (w *Way) Closes() bool { return strings.HasPrefix(w.name, "close") }

// Keep registers an owner of bytes, which free(arg) frees. The request calls done when it no longer
// needs the owner. done frees the memory if the way is close; otherwise it does nothing, and a
// cycle has to find the owner dead.
func Keep[T, A any](w *Way, owner *T, bytes int64, free func(A), arg A) (done func()) {
	switch {
	case w.own:
		gc.Own(w.collector, owner, bytes, free, arg)
	case w.Closes():
		return func() { free(arg) }
	default:
		runtime.AddCleanup(owner, free, arg)
	}
	return func() {}
}

// Hold is [Keep] for an owner that its binding frees by a finalizer. free frees the memory by hand.
func Hold[T any](w *Way, owner *T, bytes int64, free func()) (done func()) {
	if w.own {
		gc.Count(w.collector, owner, bytes)
	}
	if w.Closes() {
		return free
	}
	return func() {}
}

// ErrNoWay is the error for a way that a client does not support: its library does not count.
var ErrNoWay = errors.New("this client has no such way")
