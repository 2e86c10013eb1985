package gc

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestRegistryAgainstAModel holds slots to their words: a slot gives up its own
// word, once, however often its place has been used since.
func TestRegistryAgainstAModel(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	schedules(t, 100, func(t *draw) {
		given := make(map[int]int64)
		r := NewWeakRegistry(c.own().gate, 1<<20, func(_ Slot, w int, bytes int64) { given[w] = bytes })
		type entry struct {
			slot  Slot
			owner *thing // nil once dropped
		}
		var all []entry
		gone, cycles := make(map[int]bool), 0
		t.repeat(map[string]func(*draw){
			"track": func(t *draw) {
				for range between(t, 1, 40) {
					o := new(thing)
					all = append(all, entry{Track(r, o, int64(len(all)), len(all)), o})
				}
			},
			"untrack": func(t *draw) {
				if len(all) == 0 {
					t.Skip("nothing tracked")
				}
				i := between(t, 0, len(all)-1)
				w, bytes, ok := r.Untrack(all[i].slot)
				if ok == gone[i] || ok && (w != i || bytes != int64(i)) {
					t.Fatalf("Untrack of %d: %d, %d bytes, %v; gone: %v", i, w, bytes, ok, gone[i])
				}
				gone[i], all[i].owner = true, nil
			},
			"drop and collect": func(t *draw) {
				if cycles++; cycles > 3 {
					t.Skip("cycles take long")
				}
				clear(given)
				want := make(map[int]bool)
				for i := range all {
					if !gone[i] && (between(t, 0, 1) == 1) {
						all[i].owner, gone[i], want[i] = nil, true, true
					}
				}
				c.Collect(policy.TriggerExplicit)
				if len(given) != len(want) {
					t.Fatalf("gave back %d objects, want %d", len(given), len(want))
				}
				for i := range want {
					if given[i] != int64(i) {
						t.Fatalf("object %d gave back %d bytes", i, given[i])
					}
				}
			},
		}, func(t *draw) {
			if got, want := r.Len(), len(all)-len(gone); got != want {
				t.Fatalf("%d tracked, want %d", got, want)
			}
		})
		r.Close()
		runtime.KeepAlive(all)
	})
}

// level is a source that a test sets.
type level struct{ at pressure.Sample }

func (l *level) Sample() pressure.Sample { return l.at }
func (l *level) Allocated() int64        { return l.at.Live }

func TestTheSpaceUnderMostPressureDecides(t *testing.T) {
	quiet(t)
	var asked []pressure.Space
	c := newCollector(t, Config{Policy: &scripted{decide: func(p policy.Point) policy.Decision {
		asked = append(asked, p.Sample.Space)
		return policy.Decision{Wake: p.Sample.Limit / 2} // half the limit, whatever the space
	}}})
	host := &level{pressure.Sample{Space: pressure.Host, Live: 10, Limit: 100}}
	device := &level{pressure.Sample{Space: pressure.Device(0), Live: 300, Limit: 1000}}
	none := &level{pressure.Sample{Space: pressure.Pinned, Live: 1 << 40}}
	atHost, atDevice, atNone := c.NewGate(host), c.NewGate(device), c.NewGate(none)
	step := func(what string, want int, g *Gate, live int64) {
		t.Helper()
		if g.Allocating(live, 0); len(asked) != want {
			t.Fatalf("%s: asked %d times, want %d", what, len(asked), want)
		}
	}
	step("first", 1, atHost, 10)
	step("below half of host", 1, atHost, 49)
	step("below half of device", 1, atDevice, 499)
	step("no limit", 1, atNone, 1<<41)
	step("half of host", 2, atHost, 50)
	step("half of device", 3, atDevice, 500)
	for _, s := range asked {
		if s != pressure.Device(0) {
			t.Errorf("asked about %v", asked)
		}
	}
	host.at.Live = 90
	step("half of host", 4, atHost, 90)
	if asked[3] != pressure.Host {
		t.Errorf("asked about %v", asked)
	}
}

// recording is a Recorder in memory, for a test that is at rest when it looks.
type recording struct {
	trace.Trace
	made time.Time
}

func (r *recording) Label(text string) uint32 {
	if r.Labels == nil {
		r.Labels = []string{""}
	}
	i := slices.Index(r.Labels, text)
	if i < 0 {
		i = len(r.Labels)
		r.Labels = append(r.Labels, text)
	}
	return uint32(i)
}

// Now is a clock that has run for a year when the collector is made.
func (r *recording) Now() time.Duration { return year + time.Since(r.made) }

const year = 365 * 24 * time.Hour

func TestRecorderIsToldWhatHappened(t *testing.T) {
	quiet(t)
	rec := &recording{made: time.Now()}
	c := newCollector(t, Config{
		Space:    pressure.Pinned,
		Recorder: rec,
		Policy: &scripted{decide: func(p policy.Point) policy.Decision {
			if p.At == policy.Sync {
				return policy.Decision{Action: policy.Overlap, Reason: "waits"}
			}
			return policy.Decision{Reason: "skip"}
		}},
	})
	for range 3 {
		ownFunc(c, new(thing), 5, func() {})
	}
	c.Sync(&WaitPlace{Name: "step"}, func() error { c.Wait(); return nil })
	c.Collect(policy.TriggerExplicit)
	c.SetRecorder(nil)
	c.Collect(policy.TriggerExplicit)
	var got []string
	for _, e := range rec.Events {
		text := rec.Trace.Label(e)
		if e.Kind == trace.Alloc && strings.Contains(text, t.Name()) {
			text = "here"
		}
		if e.Kind == trace.Cycle {
			text = policy.Trigger(e.Aux).String()
			if e.Duration <= 0 {
				t.Errorf("cycle without a duration: %+v", e)
			}
		}
		if at := time.Duration(e.Time); e.Space != pressure.Pinned || at < year || at+e.Duration > rec.Now() {
			t.Errorf("space missing, or a time that is not of the recorder's clock: %+v", e)
		}
		if text == HeapLabel && e.Bytes > 0 || text == SlowdownLabel {
			continue // as often as they change
		}
		if text == ProcessorsLabel && e.Bytes != int64(runtime.GOMAXPROCS(0)) {
			t.Errorf("%d processors", e.Bytes)
		}
		got = append(got, e.Kind.String()+" "+text)
	}
	// What was owned, and where, and that cycles gave it back; the first skip, whose reason the second and third share; the decision to
	// overlap; its cycle, and the processors; the wait within Sync, which is a pause; then Sync itself.
	want := map[string]int{
		"decision skip": 1, "decision waits": 1, "cycle policy": 1, "cycle explicit": 1,
		"mark exposed pause": 2, "sync step": 1, "mark " + ProcessorsLabel: 1,
		"alloc here": 3, "free ": 3,
	}
	for _, g := range got {
		want[g]--
	}
	for what, missing := range want {
		if missing != 0 {
			t.Errorf("%s: %d too few; all: %v", what, missing, got)
		}
	}
}

// shrinking is a level that falls when memory is given back.
type shrinking struct {
	level
	allocated int64
}

func (s *shrinking) Allocated() int64 { return s.allocated }

// TestAPolicySeesWhatACycleFreesWhenItEnds asks in the middle of a walk, when
// half of the memory is back already: live is still what it was, and the program
// is not said to have freed anything.
func TestAPolicySeesWhatACycleFreesWhenItEnds(t *testing.T) {
	quiet(t)
	const objects = 100
	src := &shrinking{level{pressure.Sample{Live: objects, Limit: 2 * objects}}, objects}
	var seen []policy.Point
	var ended []policy.Cycle
	c := newCollector(t, Config{Policy: &scripted{
		decide:  func(p policy.Point) policy.Decision { seen = append(seen, p); return policy.Decision{} },
		observe: func(c policy.Cycle) { ended = append(ended, c) },
	}})
	gate := c.NewGate(src)
	given, middle, goOn := 0, make(chan bool), make(chan bool)
	r := NewWeakRegistry(gate, 1<<20, func(Slot, uint64, int64) {
		if given == objects/2 {
			middle <- true
			<-goOn
		}
		given++
		src.at.Live--
	})
	for range objects {
		Track(r, new(thing), 1, 0)
	}
	done := make(chan bool)
	go func() {
		c.Collect(policy.TriggerExplicit)
		close(done)
	}()
	<-middle
	gate.Allocating(src.at.Live, 1)
	c.Sync(nil, func() error { return nil })
	goOn <- true
	<-done
	gate.Allocating(src.at.Live, 1)
	if len(seen) != 3 || len(ended) != 1 || ended[0].Freed != objects {
		t.Fatalf("%d points, cycles %+v", len(seen), ended)
	}
	for i, want := range []int64{objects, objects, 0} {
		if p := seen[i]; p.Sample.Live != want || p.Sample.Reserved != want || p.Freed != 0 {
			t.Errorf("point %d: %d live, want %d; %d freed by the program, want 0", i, p.Sample.Live, want, p.Freed)
		}
	}
}

// TestWhatIsForgottenIsNotKept: a release may refer to much, which must not stay
// reachable through the slot that it had.
func TestWhatIsForgottenIsNotKept(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	r := NewWeakRegistry(c.own().gate, 0, func(Slot, *thing, int64) {})
	kept, byHand, byCycle := new(thing), new(thing), new(thing)
	gone := []weak.Pointer[thing]{weak.Make(byHand), weak.Make(byCycle)}
	slot := Track(r, kept, 1, byHand)
	Track(r, new(thing), 1, byCycle)
	r.Untrack(slot)
	byHand, byCycle = nil, nil
	c.Collect(policy.TriggerExplicit)
	for i := range gone {
		waitFor(t, 20*time.Second, func() bool { runtime.GC(); return gone[i].Value() == nil })
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(r)
}
