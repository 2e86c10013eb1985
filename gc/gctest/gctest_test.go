package gctest

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A link of a chain keeps the next one alive.
type link struct {
	next *link
	_    [2]*link
}

// TestDrainRunsAll that is due: each finalizer, and each cleanup, of a chain lets go of what has the next one, and two are slow.
func TestDrainRunsAll(t *testing.T) {
	const length = 12
	var ran atomic.Int64
	slow := func() { time.Sleep(100 * time.Millisecond); ran.Add(1) }
	func() {
		runtime.AddCleanup(new(link), func(int) { slow() }, 0)
		first := new(link)
		runtime.SetFinalizer(first, func(*link) { slow() })
		var held *link
		for range length {
			l := &link{next: first}
			runtime.SetFinalizer(l, func(*link) { ran.Add(1) })
			first = l
			l = new(link)
			runtime.AddCleanup(l, func(*link) { ran.Add(1) }, held) // keeps the one before
			held = l
		}
	}()
	if Drain(t); ran.Load() != 2*length+2 {
		t.Errorf("%d of %d have run", ran.Load(), 2*length+2)
	}
}

// TestDrainEnds where there is always something to run, as a collector's own sentinel.
func TestDrainEnds(t *testing.T) {
	stop := new(atomic.Bool)
	defer stop.Store(true)
	var arm func(int)
	arm = func(int) {
		if !stop.Load() {
			runtime.AddCleanup(new(link), arm, 0)
		}
	}
	arm(0)
	Drain(t)
}

// TestStressEndsWithItsTest: then cycles run no more.
func TestStressEndsWithItsTest(t *testing.T) {
	cycles := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	r := &recorder{TB: t}
	before := cycles()
	Stress(r)
	for end := time.Now().Add(time.Minute); cycles() < before+5; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d cycles in a minute", cycles()-before)
		}
	}
	r.end()
	before = cycles()
	if time.Sleep(20 * time.Millisecond); cycles() != before {
		t.Errorf("%d cycles after the end", cycles()-before)
	}
}

// TestWaitGivesUp on one that does not end, and says where it hangs; also where Go does not count them (1.24).
func TestWaitGivesUp(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	for want, wait := range map[string]func(testing.TB){"gctest: 1 finalizers or": Drain, "gctest: finalizers or": waitForSentinels} {
		patience = 50 * time.Millisecond
		r, stop, done := &recorder{TB: t}, make(chan struct{}), make(chan struct{})
		runtime.SetFinalizer(new(link), func(*link) { hangsHere(stop) })
		go func() {
			defer close(done)
			wait(r)
		}()
		<-done
		close(stop)
		if text := r.end(); !strings.HasPrefix(text, want+" cleanups that are due do not end:\n") || !strings.Contains(text, "gctest.hangsHere(") {
			t.Errorf("%q, want %s", text, want)
		}
		patience = time.Minute
		Drain(t)
		waitForSentinels(t)
	}
}

//go:noinline
func hangsHere(stop chan struct{}) { <-stop }

// A recorder is a test that tells its errors.
type recorder struct {
	testing.TB
	ends   []func()
	errors []string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func())  { r.ends = append(r.ends, f) }
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) end() string {
	for _, f := range r.ends {
		f()
	}
	return strings.Join(r.errors, "\n")
}

var kept []*link

func makeKept(lib *pressure.Counter) {
	for range 2 {
		l := new(link)
		pressure.Own(lib, l, 4096, func(int) {}, 0)
		kept = append(kept, l)
	}
}

func forget(lib *pressure.Counter) {
	for range 5 {
		pressure.Own(lib, new(link), 4096, func(int) {}, 0)
	}
}

func addAndForget(lib *pressure.Counter) { lib.Add(100) }

func TestNoLeakNamesWhatIsLeft(t *testing.T) {
	defer func() { kept = nil }()
	owns, adds, fine := pressure.NewCounter("owns"), pressure.NewCounter("adds"), pressure.NewCounter("fine")
	fine.Add(1 << 30) // from before
	owns.Add(5)
	r := &recorder{TB: t}
	NoLeak(r)
	makeKept(owns)
	forget(owns)
	addAndForget(adds)
	adds.Add(64)
	adds.Sub(64)
	forget(fine)
	text := r.end()
	r.end() // holds no lock
	for _, want := range []string{
		"gctest: owns counts 8.00 KiB in 2 objects more than when the test began\n2 objects of 4.00 KiB made at\n\tgithub.com/eagergc/eagergc/gc/gctest.makeKept\t",
		"gctest: adds counts 100 B in 1 object more than when the test began\n1 object of 100 B made at\n\tgithub.com/eagergc/eagergc/gc/gctest.addAndForget\t",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, unwanted := range []string{"fine", "gctest.forget", "of 64 B"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("the report has %q:\n%s", unwanted, text)
		}
	}
}

// TestNoLeakListsTheLargest: at most ten places, largest first.
func TestNoLeakListsTheLargest(t *testing.T) {
	lib := pressure.NewCounter("many")
	r := &recorder{TB: t}
	NoLeak(r)
	for i := range int64(12) {
		func() { lib.Add(1000 * (i*5%12 + 1)) }() // all sizes from 1000 to 12000
	}
	for range 23 {
		lib.Add(500) // 11500 in all
	}
	text := r.end()
	first, second, last := strings.Index(text, "\n1 object of 11.72 KiB made at"), strings.Index(text, "\n23 objects of 500 B made at"), strings.Index(text, " of 3.91 KiB made at")
	if strings.Count(text, " made at") != 10 || first < 0 || second < first || last < second || strings.Index(text, " of 10.74 KiB") < second {
		t.Errorf("%s", text)
	}
}

// TestNoLeakOfObjectsWithoutBytes, of bytes without objects, and of libraries in the order of their
// names.
func TestNoLeakOfObjectsWithoutBytes(t *testing.T) {
	b, a, less := pressure.NewCounter("b"), pressure.NewCounter("a"), pressure.NewCounter("less")
	less.Add(1000)
	less.Add(1000)
	r := &recorder{TB: t}
	NoLeak(r)
	owner := new(link)
	defer runtime.KeepAlive(owner)
	pressure.Own(b, owner, 0, func(int) {}, 0).Stop()
	for range 3 {
		func() { b.Add(0) }()
		b.Sub(0) // makes none
	}
	a.Add(1000)
	a.Sub(900) // of another one
	less.Sub(1000)
	less.Sub(1000)
	text := r.end()
	const wantA, wantB = "gctest: a counts 100 B in 0 objects more than when the test began", "gctest: b counts 0 B in 1 object more than when the test began"
	if !strings.HasPrefix(text, wantA) || !strings.Contains(text, "\n"+wantB) || strings.Contains(text, "less") || strings.Count(text, " made at") != 2 {
		t.Errorf("%s", text)
	}
	b.Sub(0)
	a.Sub(100)
	lib := pressure.NewCounter("after the end")
	if lib.Add(5); len(r.ends) != 1 || r.end() != text { // it listens no more
		t.Errorf("%s", r.end())
	}
}
