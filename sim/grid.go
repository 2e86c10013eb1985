package sim

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Cell is one run of a comparison.
type Cell struct {
	Workload  *Workload
	Contender Contender
	Config    Config
}

// An Outcome is the result of a cell, or why it has none.
type Outcome struct {
	Result
	Err error // ErrNoSchedule, or the context's error
}

// RunAll runs the cells on all cores (GOMAXPROCS) and returns their outcomes
// in the order of the cells, whatever the number of cores. It calls done, if
// it is not nil, after each cell with the number of cells finished so far;
// calls may be concurrent. A cancelled context leaves its error in the cells
// that were not run.
func RunAll(ctx context.Context, cells []Cell, done func(finished int)) []Outcome {
	out := make([]Outcome, len(cells))
	var next, finished atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(cells)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(cells) {
					return
				}
				out[i] = runCell(ctx, cells[i])
				if n := finished.Add(1); done != nil {
					done(int(n))
				}
			}
		})
	}
	wg.Wait()
	return out
}

func runCell(ctx context.Context, c Cell) Outcome {
	if err := ctx.Err(); err != nil {
		return Outcome{Err: err}
	}
	r, err := c.Contender.Run(c.Workload, c.Config)
	if errors.Is(err, ErrNoSchedule) { // the row still says whose it is
		r = newMachine(c.Workload, nil, c.Config).res
		r.Policy = c.Contender.String()
	}
	return Outcome{Result: r, Err: err}
}
