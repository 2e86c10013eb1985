package recording_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A random is a test with random numbers of one seed.
type random struct {
	*testing.T
	*rand.Rand
}

// check runs f with many seeds. EAGERGC_SEED=n runs it with the one that a failure names.
func check(t *testing.T, times int, f func(*random)) {
	t.Helper()
	seed, free := strconv.ParseUint(os.Getenv("EAGERGC_SEED"), 10, 64)
	for range times {
		if free != nil {
			seed = rand.Uint64()
		}
		func() {
			done := false
			defer func() {
				if !done || t.Failed() {
					t.Logf("run it again with EAGERGC_SEED=%d", seed)
				}
			}()
			f(&random{t, rand.New(rand.NewPCG(seed, 0))})
			done = true
		}()
	}
}

// between returns a number from low to high, often one of the two.
func between[T ~int | ~int64 | ~uint32 | ~uint64](r *random, low, high T) T {
	switch r.IntN(10) {
	case 0:
		return low
	case 1:
		return high
	}
	return low + T(r.Uint64N(uint64(high-low)+1))
}

func (r *random) coin() bool { return r.IntN(2) == 0 }

// textFrom returns up to 8 characters, of one byte to four.
func textFrom(r *random) string {
	var b strings.Builder
	for range r.IntN(9) {
		b.WriteRune(pick(r, 'a', ' ', '"', '\n', '=', 'ö', '\u202e', '🙂', rune(r.IntN(128))))
	}
	return b.String()
}

func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }
