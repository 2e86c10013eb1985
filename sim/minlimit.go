package sim

import (
	"fmt"
	"math"
)

// MinLimit returns the smallest limit, in bytes, at which ok holds for the
// result of running w under c, by bisection between the peak of the reachable
// bytes (below which nothing completes) and all that w allocates. Precision is
// the relative width at which it stops, 1/1000 if it is 0. The search supposes
// that what holds at a limit holds at larger ones; for policies it nearly does.
func MinLimit(w *Workload, c Contender, cfg Config, precision float64, ok func(*Result) bool) (int64, error) {
	if precision <= 0 {
		precision = 1e-3
	}
	holds := func(limit int64) (bool, error) {
		cfg.Limit = limit
		r, err := c.Run(w, cfg)
		return err == nil && ok(&r), err
	}
	low, high := w.PeakReachable, max(w.PeakReachable, w.AllocatedBytes)
	if yes, err := holds(low); yes || err != nil {
		return low, err
	}
	if yes, err := holds(high); err != nil {
		return 0, err
	} else if !yes {
		return 0, fmt.Errorf("sim: %s under %v: the condition fails even at %d bytes, which is all it allocates", w.Name, c, high)
	}
	for float64(high-low) > math.Max(1, precision*float64(low)) {
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
