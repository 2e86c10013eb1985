package recording

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Demographics say which objects a trace has: how large they are, and how long
// objects of each size live.
type Demographics struct {
	Sizes     []SizeClass     `json:"size_classes"`     // smallest first; empty classes are left out
	Lifetimes []LifetimeClass `json:"lifetime_classes"` // shortest first; the last one has the objects that never died
}

// A SizeClass describes the objects of more than Max/2 and up to Max bytes.
type SizeClass struct {
	Max       int64     `json:"max_bytes"` // a power of two
	Objects   int       `json:"objects"`
	Bytes     int64     `json:"allocated_bytes"`
	Survivors int       `json:"survivors"`   // objects that were neither dropped nor freed
	Lifetimes Quantiles `json:"lifetime_ns"` // of the objects that died
}

// A LifetimeClass counts the objects whose lifetime is less than Below and at
// least a tenth of Below.
type LifetimeClass struct {
	Below   time.Duration `json:"below_ns"` // a power of ten, at least 1 us; 0 for objects that did not die
	Objects int           `json:"objects"`
	Bytes   int64         `json:"allocated_bytes"`
}

// DemographicsOf sorts the objects of t into classes. If spaces are given, objects
// in other spaces do not count. An object dies when it is dropped or freed,
// whichever comes first.
func DemographicsOf(t *trace.Trace, spaces ...pressure.Space) Demographics {
	a := addUp(t, spaces)
	var sizes [65]SizeClass
	var lifetimes [65][]int64
	decades := make(map[time.Duration]*LifetimeClass)
	count := func(bytes int64, below time.Duration) (k int) {
		k = bits.Len64(uint64(max(bytes, 1) - 1)) // the smallest with bytes <= 1<<k
		sizes[k].Objects++
		sizes[k].Bytes += bytes
		if decades[below] == nil {
			decades[below] = &LifetimeClass{Below: below}
		}
		decades[below].Objects++
		decades[below].Bytes += bytes
		return k
	}
	for i, lived := range a.lifetimes {
		k := count(a.died[i], decadeAbove(time.Duration(lived)))
		lifetimes[k] = append(lifetimes[k], lived)
	}
	for _, e := range a.born {
		sizes[count(e.Bytes, 0)].Survivors++
	}
	var d Demographics
	for k, c := range sizes {
		if c.Objects > 0 {
			c.Max, c.Lifetimes = 1<<min(k, 62), quantiles(lifetimes[k])
			d.Sizes = append(d.Sizes, c)
		}
	}
	for _, c := range decades {
		d.Lifetimes = append(d.Lifetimes, *c)
	}
	slices.SortFunc(d.Lifetimes, func(a, b LifetimeClass) int {
		return cmp.Compare(uint64(a.Below-1), uint64(b.Below-1)) // 0 is last
	})
	return d
}

// decadeAbove returns the smallest power of ten that is more than d, but at least
// 1 us.
func decadeAbove(d time.Duration) time.Duration {
	below := time.Microsecond
	for below <= d && below < 1e18 {
		below *= 10
	}
	return below
}
