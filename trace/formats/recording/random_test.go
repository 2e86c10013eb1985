package recording_test

import (
	"cmp"

	"pgregory.net/rapid"
)

// between returns a number from low to high.
func between[T ~int | ~int64 | ~uint32 | ~uint64](t *rapid.T, low, high T) T {
	return T(rapid.Int64Range(int64(low), int64(high)).Draw(t, "number"))
}

func coin(t *rapid.T) bool { return rapid.Bool().Draw(t, "coin") }

func pick[T cmp.Ordered](t *rapid.T, list ...T) T { return rapid.SampledFrom(list).Draw(t, "pick") }
