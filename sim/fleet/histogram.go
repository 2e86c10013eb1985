package fleet

import (
	"maps"
	"math"
	"math/bits"
	"slices"
)

// A Histogram counts numbers in the buckets of an HdrHistogram of two significant
// digits: by the least number of the bucket. A bucket is at most 1/128 of its
// numbers wide. Only buckets with a count are there, so that a histogram of few jobs
// is small. The zero value is empty, to read.
type Histogram map[int64]int64

// significant is how many bits of a number say its bucket: 256 > 2 x 10^2, as
// HdrHistogram derives it.
const significant = 8

// bucket returns the least number of the bucket that n is in.
func bucket(n int64) int64 {
	shift := max(0, bits.Len64(uint64(n))-significant)
	return n >> shift << shift
}

// Record counts n, which is not negative.
func (h Histogram) Record(n int64) { h[bucket(n)]++ }

// Merge adds the counts of g.
func (h Histogram) Merge(g Histogram) {
	for n, count := range g {
		h[n] += count
	}
}

// Count is how many numbers there are.
func (h Histogram) Count() (n int64) {
	for _, count := range h {
		n += count
	}
	return n
}

// Quantile returns the least number of the bucket that at least the share q of all
// numbers is in or below, 0 if there are none.
func (h Histogram) Quantile(q float64) int64 {
	need, seen := int64(math.Ceil(q*float64(h.Count()))), int64(0)
	var last int64
	for _, n := range slices.Sorted(maps.Keys(h)) {
		seen, last = seen+h[n], n
		if seen >= need {
			break
		}
	}
	return last
}
