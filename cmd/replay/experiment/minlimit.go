package experiment

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/sim"
)

// minLimit returns the smallest limit, in bytes, at which ok holds for the
// result of running w under c in a world. It halves the interval between the peak of the
// reachable bytes (below which nothing completes) and all that w allocates,
// until it is shorter than 1/1000 of the limit. It supposes that what holds at a
// limit holds at larger ones; for policies it nearly does.
func minLimit(w *sim.Workload, c sim.Contender, world World, ok func(*sim.Result) bool) (int64, error) {
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

// MinLimits returns minLimit for every cost, contender and workload of the
// grid, in [cost][contender][workload]; -1 where no limit will do. The limits of
// the grid do not count. The error is the context's.
func (g *Grid) MinLimits(ctx context.Context, ok func(*sim.Result) bool) ([][][]int64, error) {
	limits := make([][][]int64, len(g.Costs))
	var cores errgroup.Group
	cores.SetLimit(runtime.GOMAXPROCS(0))
	for k := range limits {
		limits[k] = make([][]int64, len(g.Contenders))
		for p, who := range g.Contenders {
			limits[k][p] = make([]int64, len(g.Workloads))
			for i, w := range g.Workloads {
				cores.Go(func() error {
					n, err := minLimit(w, who, g.World(k), ok)
					if err != nil {
						n = -1
					}
					limits[k][p][i] = n
					return context.Cause(ctx)
				})
			}
		}
	}
	return limits, cores.Wait()
}
