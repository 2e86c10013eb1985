// Package gctest helps to test code whose memory Go's collector frees, through finalizers, cleanups
// or the counters of package pressure. Of this module it imports package pressure only.
//
//	func TestImages(t *testing.T) {
//		gctest.NoLeak(t) // fails if a library counts more at the end of the test
//		gctest.Stress(t) // runs cycles beside the test, to find memory that is freed too early
//		...
//		gctest.Drain(t) // all finalizers and cleanups that are due have run
//	}
//
// Cycles and counters belong to the whole process, so a test that calls these should not be
// parallel.
package gctest

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// Drain runs cycles until the finalizers and cleanups of all dead objects have run. It includes
// objects that only a finalizer or cleanup kept alive: a chain takes one or two cycles for each
// link. If objects with finalizers die all the time, as in a server beside the test, Drain stops
// after 50 cycles. It fails the test if no finalizer or cleanup that is due ends for a minute.
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

// A pending counts the finalizers and cleanups that were queued and executed so far.
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

// patience is the time in which a finalizer or cleanup must end. It allows for a very busy machine.
var patience = time.Minute

// wait waits until all queued finalizers and cleanups have run.
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

// waitForSentinels makes garbage with a finalizer and a cleanup, and waits for both.
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

// Stress runs one cycle after another until the test ends. So a finalizer or cleanup that frees
// memory in use soon does so. Code that crashes or fails only with Stress usually lacks a
// runtime.KeepAlive. Stress must not be called in a bubble of testing/synctest, whose time would
// stand still.
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
