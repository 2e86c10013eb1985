package policy

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// TestCUDAjl walks the published rule by hand: collector time by the time since the last decision, against 5 % that double.
func TestCUDAjl(t *testing.T) {
	own := func(d time.Duration, freed int64) *Cycle { return &Cycle{Duration: d, Freed: freed} }
	onDevice := func(at Point) Point { at.Sample.Space = pressure.Device(0); return at }
	p := MustParse("cudajl").New()
	for i, s := range []struct {
		why   string
		cycle *Cycle // it is told of first
		at    Point
		want  Action
	}{
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
		// last = 187.5 ms, for the host, which freed 101. The device has freed nothing so far.
		{"40 % on the device: 10/23.5 > 40 %", own(10*ms, 101), onDevice(wait(211*ms, 951, 1000)), Skip},
		{"10/25 = 40 %", nil, onDevice(wait(212*ms+500*time.Microsecond, 951, 1000)), Block},
		{"the device has freed 0, the host 101: 10/12.5 = 80 %", own(10*ms, 0), wait(225*ms, 951, 1000), Block},
		{"a refusal's cycle is not observed", &Cycle{Duration: time.Hour, Trigger: TriggerRefusal}, wait(250*ms, 951, 1000), Block},
	} {
		if s.cycle != nil {
			p.Observe(*s.cycle)
		}
		if got := p.Decide(s.at); got.Action != s.want {
			t.Fatalf("step %d (%s): %v (%s), want %v", i, s.why, got.Action, got.Reason, s.want)
		}
	}
}
