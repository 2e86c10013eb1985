package frame

import (
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

// A Way is one way of giving back memory that a request is done with.
type Way struct {
	name      string
	counts    string        // how collector is told of memory: own, account or gauge; "" = it is not
	collector *gc.Collector // nil = none
	begin     func()        // what runs beside the work

	mu     sync.Mutex
	cycles []time.Duration // lengths of explicit cycles
}

// newWay returns a way by its name; a number after a colon is its parameter:
//
//	plain       finalizers and cleanups, when Go happens to collect
//	close       each request gives back what it took: the best there is, and the most work to write
//	memlimit:N  GOMEMLIMIT of N MiB
//	tick:100ms  runtime.GC() every 100 ms
//	close+auto  close, and the import beside it, which then has nothing to do
//	own         gc.Own for each object
//	account     gc.Account for each object, which a cleanup takes back
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
	case "own", "account", "gauge":
		policy := arg
		if policy == "" {
			policy = gc.HostPolicy
		}
		return w, w.count(name, policy, c)
	default:
		return nil, fmt.Errorf("%q: %w", text, ErrNoWay)
	}
	return w, nil
}

// count makes a collector with the policy, which is told of memory in one of three ways.
func (w *Way) count(by, text string, c Client) error {
	spec, err := policy.Parse(text)
	if err != nil {
		return err
	}
	switch {
	case by == "own" || by == "account":
	case by != "gauge":
		return fmt.Errorf("no way %q to count", by)
	case c.Gauge == nil:
		return ErrNoWay
	default:
		w.begin = func() { gc.Watch(w.collector, c.Gauge) }
	}
	w.counts = by
	w.collector, err = gc.New(gc.Config{Policy: spec.New()})
	return err
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

// cycle returns the median length of explicit cycles, in ms; 0 if there were none.
func (w *Way) cycle() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return quantile(w.cycles, 0.5)
}

// Closes reports whether the program gives back by hand.
func (w *Way) Closes() bool { return strings.HasPrefix(w.name, "close") }

// Keep says that owner holds bytes which free(arg) gives back. The request calls done
// when it needs owner no longer: that gives them back where the way is close, and does
// nothing where a cycle is to find it out.
func Keep[T, A any](w *Way, owner *T, bytes int64, free func(A), arg A) (done func()) {
	switch w.counts {
	case "own":
		h := gc.Own(w.collector, owner, bytes, free, arg)
		done = func() { h.Release() }
	case "account":
		w.collector.Account(bytes)
		back := func(arg A) { free(arg); w.collector.Account(-bytes) }
		if !w.Closes() {
			runtime.AddCleanup(owner, back, arg)
		}
		done = func() { back(arg) }
	default:
		if !w.Closes() {
			runtime.AddCleanup(owner, free, arg)
		}
		done = func() { free(arg) }
	}
	return w.byHand(done)
}

// Hold is [Keep] for an owner that its binding frees, by a finalizer; free is what a program calls that does not wait for it.
func Hold[T any](w *Way, owner *T, bytes int64, free func()) (done func()) {
	counted := func() {}
	switch w.counts {
	case "own":
		h := gc.Count(w.collector, owner, bytes)
		counted = func() { h.Release() }
	case "account":
		w.collector.Account(bytes)
		back := func(bytes int64) { w.collector.Account(-bytes) }
		cleanup := runtime.AddCleanup(owner, back, bytes)
		counted = func() { cleanup.Stop(); back(bytes) }
	}
	return w.byHand(func() { free(); counted() })
}

// byHand is what a request calls when it is done: done, where the way gives back by hand, else nothing.
func (w *Way) byHand(done func()) func() {
	if w.Closes() {
		return done
	}
	return func() {}
}

// ErrNoWay says that a way is not for this client: its library counts nothing.
var ErrNoWay = errors.New("this client has no such way")
