// Package gctest helps to test code that leaves freeing to Go's collector: finalizers, cleanups, and
// what libraries count through package pressure. It is for tests, and nothing else of this module comes in with it.
//
//	func TestImages(t *testing.T) {
//		gctest.NoLeak(t) // fails if a library counts more at the end of the test
//		gctest.Stress(t) // cycles run beside it: who frees too early is found
//		...
//		gctest.Drain(t)  // all finalizers and cleanups that are due have run
//	}
//
// Cycles are the whole process's, and so are counters: a test that calls these should not be parallel.
package gctest

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// Drain runs cycles until the finalizers and cleanups of dead objects have run, and those of objects
// that only they kept alive: a chain of them takes one cycle or two for each link. Where objects with
// finalizers die all the time, as in a server beside the test, it stops after 50 cycles. It fails the test if one
// that is due does not end within a minute in which no other ends, either.
func Drain(t testing.TB) {
	t.Helper()
	for quiet, cycle := 0, 0; quiet < 2 && cycle < 50; cycle++ {
		before := readPending()
		runtime.GC() // returns once the sweep has queued all that are due
		now := wait(t)
		if quiet++; !now.known || now.queued != before.queued { // Go 1.24 does not count the queue
			quiet = 0
		}
	}
}

// pending is how far the runtime is with finalizers and cleanups.
type pending struct {
	queued, executed uint64
	known            bool
}

func readPending() (p pending) {
	s := []metrics.Sample{
		{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/finalizers/queued:finalizers"},
		{Name: "/gc/cleanups/executed:cleanups"}, {Name: "/gc/finalizers/executed:finalizers"},
	}
	metrics.Read(s)
	for i, n := range s {
		if n.Value.Kind() != metrics.KindUint64 {
			return pending{}
		}
		if i < 2 {
			p.queued += n.Value.Uint64()
		} else {
			p.executed += n.Value.Uint64()
		}
	}
	p.known = true
	return p
}

// patience is how long nothing may end: long enough for a machine that is busy or stands still.
var patience = time.Minute

// wait waits until all that is queued has run.
func wait(t testing.TB) pending {
	t.Helper()
	now := readPending()
	if !now.known {
		waitForSentinels(t)
		return now
	}
	for due, last, since := now.queued, now.executed, time.Now(); now.executed < due; now = readPending() {
		if now.executed != last {
			last, since = now.executed, time.Now()
		}
		if time.Since(since) > patience {
			t.Fatalf("gctest: %d finalizers or cleanups that are due do not end:\n%s", due-now.executed, stacks())
		}
		time.Sleep(100 * time.Microsecond)
	}
	return now
}

// waitForSentinels makes garbage with a finalizer and a cleanup, and waits for them.
func waitForSentinels(t testing.TB) {
	t.Helper()
	type sentinel struct{ _ *sentinel }
	done := make(chan struct{}, 2)
	func() {
		runtime.SetFinalizer(new(sentinel), func(*sentinel) { done <- struct{}{} })
		runtime.AddCleanup(new(sentinel), func(done chan struct{}) { done <- struct{}{} }, done)
	}()
	for range 2 {
		runtime.GC()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatalf("gctest: finalizers or cleanups that are due do not end:\n%s", stacks())
		}
	}
}

func stacks() []byte {
	text := make([]byte, 1<<20)
	return text[:runtime.Stack(text, true)]
}

// Stress runs cycles beside the test until it ends, one after the other: memory that a finalizer or a
// cleanup frees while it is in use is then soon freed. A test that crashes or fails only with Stress lacks a
// runtime.KeepAlive, as a rule.
func Stress(t testing.TB) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}
