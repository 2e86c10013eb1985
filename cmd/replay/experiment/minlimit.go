package experiment

import (
	"fmt"
	"math"

	"github.com/eagergc/eagergc/sim"
)

// minLimit returns the smallest limit, in bytes, at which ok holds for the
// result of running w under c in a world. It halves the interval between the peak of the
// reachable bytes (below which nothing completes) and all that w allocates,
// until it is shorter than 1/1000 of the limit. It supposes that what holds at a
// limit holds at larger ones; for policies it nearly does.
func minLimit(w *sim.Workload, c Contender, world World, ok func(*sim.Result) bool) (int64, error) {
	holds := func(limit int64) (bool, error) {
		r, err := c.Run(w, world(limit))
		return err == nil && ok(&r), err
	}
	low, high := w.PeakReachable, max(w.PeakReachable, w.AllocatedBytes)
	if yes, err := holds(low); yes || err != nil {
		return low, err
	}
	if yes, err := holds(high); err != nil {
		return 0, err
	} else if !yes {
		return 0, fmt.Errorf("%s under %v: the condition fails even at %d bytes, which is all it allocates", w.Name, c, high)
	}
	for float64(high-low) > math.Max(1, 1e-3*float64(low)) {
		mid := low + (high-low)/2
		yes, err := holds(mid)
		if err != nil {
			return 0, err
		}
		if yes {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}
