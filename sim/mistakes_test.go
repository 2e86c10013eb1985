package sim_test

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

// A scorer counts refusals that came as a surprise: the policy, told a limit that is too high, had
// no cycle under way and asked for none. A mistake is made again if that happens at the height at
// which memory has ended before, or above it, in the next 256 cycles.
type scorer struct {
	gc.Policy
	tried  bool  // a cycle is under way, or asked for
	height int64 // live bytes at which memory ended
	left   int   // cycles until that may be forgotten
	count  int   // refusals for this mistake
	worst  int
	wrong  int // mistakes
}

func (s *scorer) Decide(at gc.Point) gc.Decision {
	d := s.Policy.Decide(at)
	s.tried = at.Running || d.Action != gc.Skip
	return d
}

func (s *scorer) Observe(c gc.Cycle) {
	s.left--
	if c.Trigger == gc.TriggerRefusal && !s.tried {
		if live := c.LiveAfter + c.Freed; s.left < 0 || live < s.height {
			s.wrong++
			s.height, s.count, s.left = live, 0, 256
		}
		s.count++
		s.worst = max(s.worst, s.count)
	}
	s.Policy.Observe(c)
}

// TestPacerMakesAMistakeTwiceAtMost: told a limit that is too high.
func TestPacerMakesAMistakeTwiceAtMost(t *testing.T) {
	traces := recorded(t)
	if testing.Short() {
		traces = traces[:4]
	}
	mistakes := 0
	for _, w := range compile(t, traces) {
		for _, told := range []float64{1.02, 1.05, 1.1} {
			for _, limit := range []float64{1.25, 1.5, 2, 4} {
				for _, g := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
					s := &scorer{Policy: gc.MustParse("pacer").New()}
					sim.Run(w, s, sim.Config{Limit: int64(limit * float64(w.PeakReachable)), Cost: sim.Fixed(g), Ladder: sim.Ladder{Factor: 2}, Told: sim.Told{Limit: told}})
					mistakes += s.wrong
					if s.worst > 2 {
						t.Errorf("%s, %gx told %g times too high, cycles of %v: %d refusals for a mistake, of %d", w.Name, limit, told, g, s.worst, s.wrong)
					}
				}
			}
		}
	}
	if mistakes == 0 {
		t.Error("a limit that is too high misleads nobody")
	}
}
