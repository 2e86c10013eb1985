package gc

import (
	"log/slog"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// here are the slots that are tracked.
type here map[Slot]bool

func (h here) has(s Slot) bool         { return h[s] }
func (h here) release(Slot) bool       { panic("not called") }
func (h here) resize(Slot, int64) bool { panic("not called") }

// TestSurvivorsAge: a sample survives once it has outlived 16 cycles, counted from when it was chosen; a site is as old as its oldest,
// and holds what its samples that have survived stand for.
func TestSurvivorsAge(t *testing.T) {
	in := here{1: true, 2: true, 3: true, 4: true, 5: true}
	s := samples{all: []sample{{in, 1, "a", 10, 100}, {in, 2, "a", 20, 103}, {in, 3, "b", 25, 101}, {in, 4, "b", 1, 90}, {in, 5, "c", 99, 110}}}
	delete(in, 4) // is dead
	for _, step := range []struct {
		now  uint64
		want []Survivor
	}{
		{115, nil},
		{116, []Survivor{{"a", 10, 1, 16}}},
		{117, []Survivor{{"b", 25, 1, 16}, {"a", 10, 1, 17}}},
		{119, []Survivor{{"a", 30, 2, 19}, {"b", 25, 1, 18}}},
		{126, []Survivor{{"c", 99, 1, 16}, {"a", 30, 2, 26}, {"b", 25, 1, 25}}},
	} {
		if got := s.survivors(step.now); !reflect.DeepEqual(got, step.want) {
			t.Errorf("after cycle %d: %+v, want %+v", step.now, got, step.want)
		}
	}
	if len(s.all) != 4 {
		t.Errorf("%d samples are kept of 4 that are alive", len(s.all))
	}
}

// TestOwnersAreChosenByTheirBytes: the first, and then whoever comes to the next place; each stands for the mean way to it.
func TestOwnersAreChosenByTheirBytes(t *testing.T) {
	var s samples
	var cycles atomic.Uint64
	cycles.Store(7)
	const far = 1 << 60
	for i, step := range []struct {
		bytes, gross, stands, every int64 // stands: for so many bytes, 0 if it is not chosen
	}{
		{10, 10, 10, sampleRate},
		{10, far, sampleRate, sampleRate},
		{10, 20, 0, sampleRate}, // it was there already
		{1 << 20, far, sampleRate, 8 << 20},
		{64 << 20, far, 64 << 20, 512 << 20},
		{math.MaxInt64, far, math.MaxInt64, 8 * (math.MaxInt64 >> 16)},
	} {
		if step.gross > 20 {
			s.next.Store(step.gross)
		}
		n := len(s.all)
		s.choose(here{}, Slot(i), step.bytes, step.gross, &cycles)
		switch {
		case step.stands == 0 && len(s.all) != n:
			t.Errorf("owner %d is chosen", i)
		case step.stands > 0 && (len(s.all) != n+1 || s.all[n].bytes != step.stands || s.all[n].slot != Slot(i) || s.all[n].born != 7 || s.next.Load() == step.gross):
			t.Errorf("owner %d: %+v", i, s.all[n:])
		case s.every != step.every:
			t.Errorf("after owner %d one in %d is chosen, want %d", i, s.every, step.every)
		}
	}
	if site := s.all[0].site; !strings.Contains(site, t.Name()) {
		t.Errorf("it stands for %s", site)
	}
	s.all = make([]sample, samplesMax-1)
	for range 3 {
		s.next.Store(0)
		s.choose(here{}, 1, 1, 1, &cycles)
	}
	if len(s.all) != samplesMax {
		t.Errorf("%d are kept, want %d", len(s.all), samplesMax)
	}
	n := texts.n.Load()
	defer texts.n.Store(n)
	texts.n.Store(maxTexts)
	if got := siteOf(); got != "(too many sites)" {
		t.Errorf("one site too many is %s", got)
	}
}

// survivorsOf returns a function that lets time pass, then runs a cycle with so many samples left, and returns what was told of survivors so far.
// The collector has 1,600 B live.
func survivorsOf(t *testing.T) func(time.Duration, ...sample) []event {
	log := &events{level: slog.LevelWarn}
	e := newPuppet()
	c := newOn(e, Config{Caps: uncapped, Idle: -1, Log: slog.New(log)}, policy.Spec{}.New())
	t.Cleanup(c.Close)
	c.own().take(1600)
	t.Cleanup(func() { c.own().giveBack(1600) })
	c.settled.Store(100)
	return func(passed time.Duration, left ...sample) []event {
		c.samples.all = left
		e.pass(passed)
		go func() { (<-e.marks) <- 0 }()
		c.Collect(policy.TriggerExplicit)
		c.goroutine.Wait()
		return log.of(logSurvives, "")
	}
}

// TestSurvivorsBehindOneThatHasNotGrown are told all the same.
func TestSurvivorsBehindOneThatHasNotGrown(t *testing.T) {
	told, in := survivorsOf(t), here{1: true}
	largest := sample{in, 1, "largest\tf.go:3", 900, 50} // stays as it is
	told(time.Second, largest, sample{in, 1, "small\tf.go:4", 100, 50})
	if all := told(time.Second, largest, sample{in, 1, "small\tf.go:4", 300, 50}); len(all) != 1 || !all[0].has(map[string]any{"site": "small f.go:4", "held": "300 B"}) {
		t.Errorf("told %+v", all)
	}
}

// TestSurvivorsAreToldAfterACycle: once a second at most, if they hold much, and have doubled since they were first checked.
func TestSurvivorsAreToldAfterACycle(t *testing.T) {
	told := survivorsOf(t)
	for i, step := range []struct {
		passed time.Duration
		bytes  int64
		told   int
	}{
		{time.Second, 100, 0},         // a sixteenth, seen for the first time
		{time.Second, 199, 0},         // not twice as much
		{time.Second - 1, 200, 0},     // so soon after
		{1, 200, 1},                   //
		{time.Second, 399, 1},         // told already
		{time.Second, 400, 2},         //
		{time.Second, 99, 2},          // little
		{10 * time.Second, 10_000, 3}, //
	} {
		all := told(step.passed, sample{here{1: true}, 1, "f\tf.go:3\ng\tg.go:4", step.bytes, 50})
		if len(all) != step.told {
			t.Fatalf("step %d: told %+v", i, all)
		}
		if n := len(all); n > 0 && i == 3 && (all[0].level != slog.LevelWarn || !all[0].has(map[string]any{"site": "f f.go:3", "held": "200 B", "cycles": uint64(54)})) {
			t.Errorf("told %+v", all[0])
		}
	}
}
