package gctest

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// A link of a chain keeps the next one alive.
type link struct {
	next *link
	_    [2]*link
}

// TestDrainRunsChains: each finalizer, and each cleanup, lets go of what has the next one.
func TestDrainRunsChains(t *testing.T) {
	const length = 12
	var ran atomic.Int64
	func() {
		var first *link
		for range length {
			l := &link{next: first}
			runtime.SetFinalizer(l, func(*link) { ran.Add(1) })
			first = l
		}
		var held *link
		for range length {
			l := new(link)
			runtime.AddCleanup(l, func(*link) { ran.Add(1) }, held) // keeps the one before
			held = l
		}
	}()
	if Drain(t); ran.Load() != 2*length {
		t.Errorf("%d of %d have run", ran.Load(), 2*length)
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

func TestStressRunsCyclesBesideTheTest(t *testing.T) {
	var ran atomic.Bool
	t.Run("", func(t *testing.T) {
		Stress(t)
		runtime.AddCleanup(new(link), func(int) { ran.Store(true) }, 0)
		for !ran.Load() {
			runtime.Gosched()
		}
	})
}

// A recorder is a test that tells its errors.
type recorder struct {
	testing.TB
	ends   []func()
	errors []string
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
	r := &recorder{TB: t}
	NoLeak(r)
	makeKept(owns)
	forget(owns)
	addAndForget(adds)
	adds.Add(64)
	adds.Sub(64)
	forget(fine)
	text := r.end()
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
			t.Errorf("the report has %q", unwanted)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestNoLeakPassesWhatIsFreed(t *testing.T) {
	NoLeak(t)
	lib := pressure.NewCounter("made later")
	forget(lib)
	lib.Add(1)
	lib.Sub(1)
}
