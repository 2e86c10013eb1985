package experiment_test

import (
	"math"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/synthetic"
)

// A scorer counts refusals that came as a surprise: the policy had no cycle under way and asked for none.
type scorer struct {
	policy.Policy
	tried     bool // a cycle is under way, or asked for
	surprises int
}

func (s *scorer) Decide(at policy.Point) policy.Decision {
	d := s.Policy.Decide(at)
	s.tried = at.Running || d.Action != policy.Skip
	return d
}

func (s *scorer) Observe(c policy.Cycle) {
	if c.Trigger == policy.TriggerRefusal && !s.tried {
		s.surprises++
	}
	s.Policy.Observe(c)
}

// TestPacerMakesAMistakeTwiceAtMost: told a limit that is too high, on recordings and on programs that
// nobody has seen. Memory ends at the same place all the time, so that is one mistake. It costs
// one refusal, and the cycles until that is understood: but for two cycles, J is as if it had been told the truth.
func TestPacerMakesAMistakeTwiceAtMost(t *testing.T) {
	traces := recorded(t)
	if testing.Short() {
		traces = traces[:4]
	}
	traces = append(traces, programs(t, 11, synthetic.Shapes()[:4]...)...)
	mistakes, cells, loss := 0, 0.0, 0.0
	for _, w := range compile(t, traces) {
		for _, limit := range []float64{1.25, 2} {
			for _, g := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
				run := func(told float64) time.Duration {
					s := &scorer{Policy: policy.MustParse("pacer").New()}
					r := sim.Run(w, s, sim.Config{Limit: int64(limit * float64(w.PeakReachable)), Cost: sim.Fixed(g), Ladder: sim.Ladder{Factor: 2}, Told: sim.Told{Limit: told}})
					mistakes += s.surprises
					if s.surprises > 2 {
						t.Errorf("%s, %gx told %g times too high, cycles of %v: %d surprises", w.Name, limit, told, g, s.surprises)
					}
					return r.Objective()
				}
				truth := run(1)
				for _, told := range []float64{1.02, 1.1} {
					cells++
					loss += math.Log(float64(max(0, run(told)-2*g)+time.Millisecond) / float64(truth+time.Millisecond))
				}
			}
		}
	}
	if mistakes == 0 {
		t.Error("a limit that is too high misleads nobody")
	}
	if loss = math.Exp(loss / cells); loss > 1 {
		t.Errorf("J is %.3f of what it is if told the truth", loss)
	}
}

// A lent memory has less than the limit while another process has some of it.
type lent struct {
	limit  func(allocs int) int64
	sizes  map[int32]int64
	live   int64
	allocs int
	peak   int64 // since the other process has ended
}

func (m *lent) Alloc(object int32, bytes int64) bool {
	if m.live+bytes > m.limit(m.allocs) {
		return false
	}
	m.allocs++
	m.live += bytes
	m.sizes[object] = bytes
	m.peak = max(m.peak, m.live)
	return true
}

func (m *lent) Free(object int32) {
	m.live -= m.sizes[object]
	delete(m.sizes, object)
}

func (m *lent) Live() int64     { return m.live }
func (m *lent) Reserved() int64 { return m.live }

// TestPacerTakesBackWhatWasLent: another process takes a tenth of the memory, and ends. That costs
// one refusal, and after some hundred cycles all of it is used again.
func TestPacerTakesBackWhatWasLent(t *testing.T) {
	for _, w := range compile(t, append(programs(t, 12, "idler"), recorded(t)[9:]...)) {
		limit := w.PeakReachable * 3 / 2
		m := &lent{sizes: map[int32]int64{}}
		m.limit = func(allocs int) int64 {
			if begin := w.Allocs / 20; allocs >= begin && allocs < 2*begin {
				m.peak = 0
				return limit * 9 / 10
			}
			return limit
		}
		s := &scorer{Policy: policy.MustParse("pacer").New()}
		r := sim.Run(w, s, sim.Config{Limit: limit, Memory: m, Machine: sim.MachineOf(sim.Fixed(50*time.Microsecond), sim.Ladder{Factor: 2})})
		if r.Collections < 800 {
			t.Fatalf("%s: %d cycles are too few to see that", w.Name, r.Collections)
		}
		if s.surprises > 1 {
			t.Errorf("%s: %d surprises", w.Name, s.surprises)
		}
		if used := float64(m.peak) / float64(limit); used < 0.95 {
			t.Errorf("%s: at most %.3f of the limit is used after the other process has ended", w.Name, used)
		}
	}
}

// TestCyclesTellWhatTheyHeld: each cycle says for how long it held the program, the ladder's included, and what did not fit.
func TestCyclesTellWhatTheyHeld(t *testing.T) {
	for _, w := range compile(t, append(recorded(t)[:3], programs(t, 5, "server")...)) {
		for _, g := range []time.Duration{time.Millisecond, 30 * time.Millisecond} {
			for _, text := range []string{"pacer", "threshold:0.95,overlap=true", "never", "cudajl"} {
				for _, machine := range []*sim.Machine{nil, sim.MachineOf(sim.Fixed(g), sim.Ladder{Factor: 1})} {
					log := new(sim.Log)
					limit := w.PeakReachable * 3 / 2
					r := sim.Run(w, policy.MustParse(text).New(), sim.Config{Limit: limit, Cost: sim.Fixed(g), Ladder: sim.Ladder{Factor: 1}, Machine: machine, Log: log})
					var held time.Duration
					for _, c := range log.Cycles {
						held += c.Exposed
						if c.Trigger == policy.TriggerRefusal && c.Wanted <= limit || c.Wanted > 0 && c.Exposed == 0 {
							t.Fatalf("%s: %+v with a limit of %d", text, c, limit)
						}
					}
					if d := (held - r.ExposedPause).Abs(); d > time.Duration(len(log.Cycles)) { // of rounding
						t.Errorf("%s, %s, cycles of %v, machine %v: cycles say %v, the program was held for %v", w.Name, text, g, machine != nil, held, r.ExposedPause)
					}
				}
			}
		}
	}
}

// TestPacerTakesWhatIsLearned: cycles differ, and the pacer is told of cost and slowdown what a collector
// learns of them, never quite the same. That costs it little beside being told the truth of the same
// machine. A policy that took the slowdown of now for the time since its first cycle paid 1.5 times as much.
func TestPacerTakesWhatIsLearned(t *testing.T) {
	lost, cells := 0.0, 0.0
	for _, w := range compile(t, recorded(t)) {
		for seed := range uint64(2) {
			m := sim.MachineOf(sim.Cost{Base: 3 * time.Millisecond, Slowdown: 0.05}, sim.Ladder{Factor: 2})
			m.Noise = sim.Noise{0.6, 0.9, 1, 1.1, 1.6}
			cfg := sim.Config{Limit: 3 * w.PeakReachable / 2, Machine: m, Seed: seed}
			truth := sim.Run(w, policy.MustParse("pacer").New(), cfg)
			cfg.Told.Learned = true
			learned := sim.Run(w, policy.MustParse("pacer").New(), cfg)
			lost += math.Log(float64(learned.Objective()+time.Millisecond) / float64(truth.Objective()+time.Millisecond))
			cells++
		}
	}
	x := math.Exp(lost / cells)
	t.Logf("J is %.3f times as high", x)
	if x > 1.1 {
		t.Errorf("J is %.3f times as high", x)
	}
}
