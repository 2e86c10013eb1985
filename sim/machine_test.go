package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestRunahead: a device that is ahead of its program takes a pause up to that much; nothing known, up to the wait, which is 100 here.
func TestRunahead(t *testing.T) {
	for name, c := range map[string]struct{ ahead, pause, more, left float64 }{
		"no pause": {50, 0, 0, 100}, "taken": {50, 30, 0, 70}, "taken, in parts": {50, 30, 20, 50}, "not all": {50, 50, 20, 50},
		"not ahead": {0, 70, 0, 100}, "longer than the wait": {150, 120, 0, 0}, "not measured": {-1, 70, 0, 30},
	} {
		var l Runahead
		if c.ahead >= 0 {
			l.Measured(c.ahead)
		}
		l.Pause(c.pause)
		l.Pause(c.more)
		if got := l.Wait(100); got != c.left {
			t.Errorf("%s: %v left, want %v", name, got, c.left)
		}
		if l.Pause(10); c.ahead >= 0 && l.Late() != 10 {
			t.Errorf("%s: after a wait the device is ahead", name)
		}
	}
}

func TestCurveIsEvenInTheLogarithm(t *testing.T) {
	c := Curve{{At: time.Millisecond, Factor: 0.5}, {At: 100 * time.Millisecond, Factor: 1.5}}
	for d, want := range map[time.Duration]float64{0: 0.5, time.Millisecond: 0.5, 10 * time.Millisecond: 1, 100 * time.Millisecond: 1.5, math.MaxInt64: 1.5} {
		if got := c.Of(d); math.Abs(got-want) > 1e-9 || Curve(nil).Of(d) != 1 {
			t.Errorf("after %v: %v, want %v", d, got, want)
		}
	}
}

// TestTimesTakesTwiceAsLong: cycles and ladders do, and nothing else.
func TestTimesTakesTwiceAsLong(t *testing.T) {
	m := Machine{Start: 10, Mark: Linear{20, 3, 4}, Sweep: Linear{30, 5, 6}, Settle: Linear{40, 7, 1 << 30}, Ladder: 50, Map: Linear{60, 9, 10}, Heap: 1 << 30, Alloc: Linear{80, 11, 12}, Noise: Noise{1, 2}, Pace: 90}
	twice := m.Times(2)
	if a, b := m.Cycle(2, 3, 4), twice.Cycle(2, 3, 4); a != 10+(20+2*3+4)+(40+3*7+4) || b != 2*a || twice.Sweep.Of(1, 1<<30) != 2*m.Sweep.Of(1, 1<<30) || twice.Ladder != 100 || twice.Pace != 180 || twice.Map != m.Map || twice.Alloc != m.Alloc {
		t.Errorf("a cycle takes %d and %d: %+v", a, b, twice)
	}
	if twice.Noise[0] = 7; m.Noise[0] != 1 {
		t.Error("a machine shares its noise with another")
	}
}

// TestMachineOfTheBaseWorld: its cycles cost the same, and its ladders no less than a cycle.
func TestMachineOfTheBaseWorld(t *testing.T) {
	cost := Cost{Base: 1000, Slowdown: 0.5}
	if m := MachineOf(cost, Ladder{Factor: 3}); m.Cycle(7, 4, 9) != cost.Base || m.Ladder != 2000 || m.Slowdown != 0.5 || MachineOf(cost, Ladder{Factor: 0.5}).Ladder != 0 {
		t.Errorf("%+v", m)
	}
}

// A loaded source gives the numbers of a list, as fractions of 1.
type loaded []float64

func (l *loaded) Uint64() uint64 {
	x := (*l)[0]
	*l = (*l)[1:]
	return uint64(x * (1 << 53))
}

// TestDraws: a drawn value lies between two quantiles, as far from each as the number says.
func TestDraws(t *testing.T) {
	noise, stall := Noise{1, 3, 11}, Stall{Share: 0.25, Length: []float64{1, 3, 11}}
	for at, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.625: 5, 0.75: 7} {
		a, b, none := noise.draw(rand.New(&loaded{at})), stall.draw(rand.New(&loaded{0.2, at})), stall.draw(rand.New(&loaded{0.25}))
		if a != want || b != want || none != 0 {
			t.Errorf("at %v noise is %v, a stall %v, no stall %v; want %v", at, a, b, none, want)
		}
	}
	if a, b, none := (Noise)(nil).draw(nil), (Noise{5}).draw(nil), (&Stall{}).draw(nil); a != 1 || b != 1 || none != 0 {
		t.Errorf("without quantiles: %v, %v, %v", a, b, none)
	}
}

// TestWaitNoise: expected waits are even around the true ones, the same for the same seed and time, and never below 0.
func TestWaitNoise(t *testing.T) {
	sum, least, most := 0.0, math.Inf(1), 0.0
	cfg, other, large := Config{WaitNoise: 0.5, Seed: 3}, Config{WaitNoise: 0.5, Seed: 4}, Config{WaitNoise: 3}
	for at := range int64(2000) {
		w := float64(cfg.expect(at, 1000))
		sum, least, most = sum+w, min(least, w), max(most, w)
		if large.expect(at, 1000) < 0 || (&Config{}).expect(at, 1000) != 1000 {
			t.Fatalf("with much noise a wait of %v", large.expect(at, 1000))
		}
	}
	if sum /= 2000; least < 500 || least > 520 || most > 1500 || most < 1480 || sum < 970 || sum > 1030 {
		t.Errorf("from %v to %v, mean %v, of 1000", least, most, sum)
	}
	if a := cfg.expect(7, 1000); a != cfg.expect(7, 1000) || a == other.expect(7, 1000) || a == cfg.expect(8, 1000) {
		t.Errorf("a wait of %v", a)
	}
	p := &noted{Policy: policy.Spec{}.New()}
	if Run(sawtooth(t, 10), p, cfg); p.points[len(p.points)-1].Wait != cfg.expect(9600, 300) {
		t.Errorf("told %+v, want a wait of %v", p.points, cfg.expect(9600, 300))
	}
}
