package policy

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A step is one hand-computed move of a policy's published rule: an optional
// cycle it is told of, then a point and the action that must follow.
type step struct {
	why   string
	cycle *Cycle
	at    Point
	want  Action
}

func walk(t *testing.T, text string, steps []step) {
	t.Helper()
	walkOn(t, MustParse(text).New(), steps)
}

func walkOn(t *testing.T, p Policy, steps []step) {
	t.Helper()
	for i, s := range steps {
		if s.cycle != nil {
			p.Observe(*s.cycle)
		}
		if got := p.Decide(s.at); got.Action != s.want {
			t.Fatalf("%s, step %d (%s): %v (%s), want %v", p, i, s.why, got.Action, got.Reason, s.want)
		}
	}
}

const ms = time.Millisecond

// alloc is an allocation of 1 byte at now with live of limit bytes.
func alloc(now time.Duration, live, limit int64) Point {
	return Point{Now: now, At: Allocation, Request: 1, Sample: pressure.Sample{Live: live, Limit: limit}}
}

// wait is a sync point with an unknown length.
func wait(now time.Duration, live, limit int64) Point {
	return Point{Now: now, At: Sync, WillBlock: true, Sample: pressure.Sample{Live: live, Limit: limit}}
}

func TestCUDAjl(t *testing.T) {
	own := func(d time.Duration, freed int64) *Cycle { return own(0, d, freed, 0) }
	walk(t, "cudajl", []step{
		{"no limit known", nil, alloc(0, 1<<40, 0), Skip},
		{"0.749 < 0.75", nil, alloc(0, 749, 1000), Skip},
		{"0.499 < 0.50, waiting", nil, wait(0, 499, 1000), Skip},
		{"first: 0/0 is above no bound", nil, alloc(0, 750, 1000), Block},
		// ewma 40 ms -> 10 ms; freed 100 is not > 10 % of 1000: share 5 % needs 200 ms.
		{"10/199 > 5 %", own(40*ms, 100), alloc(199*ms, 800, 1000), Skip},
		{"at once: 10/0 = Inf", nil, alloc(0, 800, 1000), Skip},
		{"waiting doubles: 10/100 = 10 %", nil, wait(100*ms, 500, 1000), Block},
		// last = 100 ms, ewma = .75*10 + .25*10 = 10 ms; freed 101 > 100: 10 %.
		{"10/99 > 10 %", own(10*ms, 101), alloc(199*ms, 800, 1000), Skip},
		{"0.901 doubles: 10/50 = 20 %", nil, alloc(150*ms, 901, 1000), Block},
		{"0.951 doubles again: 10/24 > 40 %", own(10*ms, 101), alloc(174*ms, 951, 1000), Skip},
		{"10/25 = 40 %", nil, alloc(175*ms, 951, 1000), Block},
		{"all of them, 80 %: 10/12 > 80 %", own(10*ms, 101), wait(187*ms, 951, 1000), Skip},
		{"10/12.5 = 80 %", nil, wait(187*ms+500*time.Microsecond, 951, 1000), Block},
		// Nothing of others counts: neither their cost nor their yield.
		{"a refusal's cycle is not observed", &Cycle{Duration: time.Hour, Trigger: TriggerRefusal}, wait(200*ms, 951, 1000), Block},
		// last = 200 ms. Neither 0.9 nor 0.95 is above itself.
		{"0.900: 10/99 > 10 %", own(10*ms, 101), alloc(299*ms, 900, 1000), Skip},
		{"0.950: 10/49 > 20 %", nil, alloc(249*ms, 950, 1000), Skip},
		{"0.950: 10/50 = 20 %", nil, alloc(250*ms, 950, 1000), Block},
	})
}

func TestThreshold(t *testing.T) {
	walk(t, "threshold:0.8", []step{
		{"below", nil, alloc(0, 799, 1000), Skip},
		{"at", nil, alloc(0, 800, 1000), Block},
		{"a cycle that freed nothing does not stop it", &Cycle{Trigger: TriggerPolicy}, alloc(1, 800, 1000), Block},
		{"sync points too", nil, wait(1, 800, 1000), Block},
		{"no limit", nil, alloc(0, 1<<50, 0), Skip},
	})
}

func TestPeriodic(t *testing.T) {
	walk(t, "periodic:10ms", []step{
		{"from the start", nil, alloc(10*ms-1, 0, 0), Skip},
		{"first", nil, alloc(12*ms, 0, 0), Block},
		{"from the last decision", nil, wait(22*ms-1, 0, 0), Skip},
		{"sync", nil, wait(22*ms, 0, 0), Block},
		{"others' cycles do not count", &Cycle{Trigger: TriggerNatural, Start: 30 * ms}, wait(32*ms, 0, 0), Block},
	})
}

func TestControls(t *testing.T) {
	walk(t, "never", []step{
		{"", nil, alloc(0, 2000, 1000), Skip},
		{"", nil, wait(0, 2000, 1000), Skip},
	})
	walk(t, "always", []step{
		{"", nil, alloc(0, 2000, 1000), Skip},
		{"", nil, wait(0, 0, 1000), Block},
	})
}
