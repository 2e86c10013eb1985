package registry_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/internal/registry"
)

type object struct{ _ [4]*object }

type entry struct {
	owner *object
	w     int
	bytes int64
}

// TestARegistryKnowsWhatIsAlive: random programs track objects, resize them, give them up and drop them. The registry agrees with a
// map of the test's, finds each dead object once, and none that is reachable.
func TestARegistryKnowsWhatIsAlive(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		var reg registry.Registry[int]
		known, dropped, gone := map[registry.Slot]entry{}, map[registry.Slot]entry{}, []registry.Slot{}
		reg.Init(100, func(slot registry.Slot, w int, bytes int64) {
			if x, ok := dropped[slot]; !ok || x.w != w || x.bytes != bytes {
				t.Fatalf("program %d: found %d with %d bytes dead, want %+v", seed, w, bytes, x)
			}
			delete(dropped, slot)
			gone = append(gone, slot)
		})
		walk := func() {
			reg.PromoteAll()
			runtime.GC()
			reg.Walk(giveAll)
		}
		for n := range 6000 {
			var slot registry.Slot
			var x entry
			for slot, x = range known { // any
				break
			}
			switch op := r.IntN(12); {
			case op > 4 || len(known) == 0:
				x = entry{new(object), n, r.Int64N(200)}
				slot = reg.Track(unsafe.Pointer(x.owner), x.bytes, x.w)
				if _, twice := known[slot]; twice || slices.Contains(gone, slot) {
					t.Fatalf("program %d: slot %x comes twice", seed, slot)
				}
				known[slot] = x
			case op < 2:
				if w, bytes, ok := reg.Untrack(slot); !ok || w != x.w || bytes != x.bytes {
					t.Fatalf("program %d: gave up %d of %d bytes, %v; want %+v", seed, w, bytes, ok, x)
				}
				delete(known, slot)
				gone = append(gone, slot)
			case op == 2:
				before, ok := reg.SetBytes(slot, 7)
				if held, is := reg.Holds(slot); !ok || !is || before != x.bytes || held != 7 {
					t.Fatalf("program %d: resized from %d to %d, want %d and 7", seed, before, held, x.bytes)
				}
				x.bytes = 7
				known[slot] = x
			case op == 3:
				delete(known, slot)
				x.owner = nil
				dropped[slot] = x
			case len(gone) > 0:
				old := gone[r.IntN(len(gone))]
				_, _, untracked := reg.Untrack(old)
				_, held := reg.Holds(old)
				if _, set := reg.SetBytes(old, 1); untracked || held || set {
					t.Fatalf("program %d: slot %x is there after it was given up", seed, old)
				}
			}
			if n%1000 == 999 {
				walk()
			}
		}
		for end := time.Now().Add(10 * time.Second); len(dropped) > 0 && time.Now().Before(end); {
			walk()
		}
		listed := map[registry.Slot]int64{}
		reg.Each(func(slot registry.Slot, bytes int64) { listed[slot] = bytes })
		if !maps.EqualFunc(listed, known, func(bytes int64, x entry) bool { return bytes == x.bytes }) || reg.Len() != len(known) || len(dropped) > 0 {
			t.Errorf("program %d: %d listed, %d counted, want %d; %d dead not found", seed, len(listed), reg.Len(), len(known), len(dropped))
		}
	}
}

func giveAll(dead registry.Remains) {
	for i := range dead.Len() {
		dead.Give(i)
	}
}

// TestLargeObjectsAreWeakAtOnce: a small one is kept until the next cycle that is asked for, or until 16 younger ones come.
func TestLargeObjectsAreWeakAtOnce(t *testing.T) {
	var reg registry.Registry[int]
	found := []int{}
	reg.Init(100, func(_ registry.Slot, w int, _ int64) { found = append(found, w) })
	for w, bytes := range []int64{99, 100, 1, 2} {
		slot := reg.Track(unsafe.Pointer(new(object)), bytes, w)
		if w >= 2 {
			reg.SetBytes(slot, []int64{99, 100}[w-2])
		}
	}
	for end := time.Now().Add(10 * time.Second); len(found) < 2 && time.Now().Before(end); {
		runtime.GC()
		reg.Walk(giveAll)
	}
	if slices.Sort(found); !slices.Equal(found, []int{1, 3}) {
		t.Errorf("a cycle of the runtime's finds %v; want the object that is large and the one that became large", found)
	}
}

// An engine is one whose finalizers have all run.
type engine struct{ goruntime.Engine }

func (engine) Pending() goruntime.Pending { return goruntime.Pending{Marked: 1} }

// A pile is dead objects of 1, 2, 3... bytes, whose releases do what the test wants.
type pile struct {
	given [20]atomic.Int32
	give  func(i int)
}

func (p *pile) Len() int          { return len(p.given) }
func (p *pile) Bytes(i int) int64 { return int64(i) + 1 }
func (p *pile) Give(i int) {
	defer p.given[i].Add(1)
	if p.give != nil {
		p.give(i)
	}
}

type host struct {
	*registry.Releases
	failures, late atomic.Int64
}

func newHost() *host {
	h := new(host)
	h.Releases = registry.NewReleases(registry.Host{
		Engine: engine{}, Late: func(bytes int64) { h.late.Add(bytes) },
		Fail: func(error) { h.failures.Add(1) },
	})
	return h
}

// eventually waits for a condition that is due soon.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not " + what)
		}
	}
}

// TestEachObjectIsGivenBackOnce, whatever its release does: it returns, panics, ends its goroutine, or blocks for long. A cycle waits
// for those that do not block, and what these give back is its yield.
func TestEachObjectIsGivenBackOnce(t *testing.T) {
	for _, blocked := range []int{0, 1, 3, 17} {
		t.Run(fmt.Sprint(blocked), func(t *testing.T) {
			t.Parallel()
			givesBackOnce(t, blocked)
		})
	}
}

func givesBackOnce(t *testing.T, blocked int) {
	h, cycle, block := newHost(), new(registry.Cycle), make(chan struct{})
	memories := make([]registry.Memory, 2)
	p := [2]pile{}
	for k := range p {
		p[k].give = func(i int) {
			switch {
			case k == 0 && i < blocked:
				<-block
			case i == 18:
				panic("a release that panics")
			case i == 19:
				runtime.Goexit()
			}
		}
		h.Found(cycle, &memories[k], &p[k], false)
	}
	h.Wait()
	eventually(t, "all given back that does not block", func() bool { return h.Pending() == blocked || blocked > 16 && h.failures.Load() == 1 })
	objects, yields := h.Close(cycle)
	want := int64(0)
	for i := range blocked {
		want += p[0].Bytes(i)
	}
	if got := h.Dying(&memories[0]); blocked <= 16 && (objects != 40-blocked || got != want || yields[&memories[0]] != 210-want || yields[&memories[1]] != 210) {
		t.Errorf("%d block: a yield of %d objects and %v bytes, %d are dying", blocked, objects, yields, got)
	}
	if memories[1].Returning.Load() != yields[&memories[1]] {
		t.Errorf("%d bytes count as live until the cycle is told", memories[1].Returning.Load())
	}
	close(block)
	eventually(t, "all given back", func() bool { return h.Pending() == 0 && h.late.Load() == 420-yields[&memories[0]]-yields[&memories[1]] })
	for i := range 20 {
		if p[0].given[i].Load() != 1 || p[1].given[i].Load() != 1 {
			t.Errorf("object %d is given back %d and %d times", i, p[0].given[i].Load(), p[1].given[i].Load())
		}
	}
	if n := h.failures.Load(); n < 4 || n > 5 || h.Dying(&memories[0]) != 0 || n == 5 != (blocked > 16) {
		t.Errorf("%d block: %d failures, %d bytes are dying", blocked, n, h.Dying(&memories[0]))
	}
}
