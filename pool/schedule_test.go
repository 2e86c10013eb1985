package pool_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "run the random schedule of this `number` alone; 0 = others each time")

// A schedule is a test of random steps. The seed decides all of them.
type schedule struct {
	*testing.T
	*rand.Rand
	trail []string // the steps so far
}

// schedules runs n random schedules, a fifth of them with -short, until one fails, and says how to run that again.
func schedules(t *testing.T, n int, run func(*schedule)) {
	if testing.Short() {
		n = (n + 4) / 5
	}
	first := *seedFlag
	if first != 0 {
		n = 1
	} else {
		first = uint64(time.Now().UnixNano())
	}
	for seed := first; seed < first+uint64(n) && !t.Failed(); seed++ {
		func() {
			s := &schedule{T: t, Rand: rand.New(rand.NewPCG(seed, 1))}
			defer func() {
				if t.Failed() {
					t.Logf("run it again: go test -run '^%s$' -seed %d; after the steps %v", t.Name(), seed, s.trail)
				}
			}()
			run(s)
		}()
	}
}

// between returns a number from least to most.
func (s *schedule) between(least, most int) int { return least + s.IntN(most-least+1) }

func (s *schedule) coin() bool { return s.IntN(2) == 0 }

func oneOf[T any](s *schedule, all ...T) T { return all[s.IntN(len(all))] }

// repeat takes up to 60 of the steps, and check after each. A step that cannot be taken
// returns false.
func (s *schedule) repeat(steps map[string]func(*schedule) bool, check func()) {
	names := slices.Sorted(maps.Keys(steps))
	check()
	for range s.between(1, 60) {
		name := oneOf(s, names...)
		s.trail = append(s.trail, name)
		if !steps[name](s) {
			s.trail = s.trail[:len(s.trail)-1]
		}
		check()
	}
}
