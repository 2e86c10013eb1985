package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// Calibration says what to measure. The zero value is usable.
type Calibration struct {
	Heap   int64         // bytes of the app's Go heap with pointers
	Memory Memory        // of the app's pool: freeing it is most of the cost of a release
	Time   time.Duration // to take; 0: 30 s
	Like   *trace.Trace  // of the app, with its sizes and its rhythm; nil: a bit of everything
}

// Calibrate measures the costs of cycles and allocations on this machine, in the conditions of
// an app: its heap of pointers, its memory and its busy goroutines. It executes programs as
// [Run] does, under a policy that collects now and then. It returns the machine, and how well
// the machine explains cycles that it was not fitted to. Calibrate takes the given time. It
// takes as much memory as the heap and 1 GiB, or the memory of Like. Nothing else should run
// meanwhile.
func Calibrate(ctx context.Context, cal Calibration) (*sim.Machine, Fit, error) {
	if cal.Time == 0 {
		cal.Time = 30 * time.Second
	}
	bare, err := cal.measure(ctx, 0, cal.Time/10, false, 0) // the difference is the cost of the heap
	if err != nil {
		return nil, Fit{}, err
	}
	computed, err := cal.measure(ctx, cal.Heap, cal.Time/6, true, 0)
	if err != nil {
		return nil, Fit{}, err
	}
	full, err := cal.measure(ctx, cal.Heap, cal.Time-cal.Time/10-cal.Time/6, false, paceTime)
	if err != nil {
		return nil, Fit{}, err
	}
	return cal.machine(bare, computed, full)
}

// machine returns the machine of three measurements: programs without a heap, programs that
// compute, and all others.
func (cal *Calibration) machine(bare, computed, full *probe) (*sim.Machine, Fit, error) {
	m, fit, err := fitMachine(cal.Heap, full.seen)
	if err != nil {
		return nil, fit, err
	}
	if base := fitShape(bare.seen).x[0]; cal.Heap > 0 {
		heap := min(float64(m.Mark.Base), max(0, float64(m.Mark.Base+m.Start)-base))
		m.Mark.Base -= time.Duration(heap)
		m.Mark.PerGiB = heap / float64(cal.Heap) * (1 << 30)
	}
	full.costs(m)
	m.IdleGap, m.Waits = idleGap, cal.Memory.Waits
	m.Slowdown = computed.work.Slowdown()
	m.Cores = runtime.GOMAXPROCS(0)
	m.Pace = median(full.paces)
	return m, fit, nil
}

// Pace measures the speed of the machine m now. It returns the expected length of cycles in the
// next seconds, over their length when m was calibrated in the same conditions. For that it
// executes a steady program for cal.Time, or longer if cycles are long. The result is 1 if m has
// no measured pace.
func Pace(ctx context.Context, cal Calibration, m *sim.Machine) (float64, error) {
	if m.Pace == 0 {
		return 1, nil
	}
	took, err := cal.pace(ctx, cal.Time)
	return 1 + paceStays*(float64(median(took))/float64(m.Pace)-1), err
}

// paceStays is the share of a deviation that remains a few seconds later. A deviation is the
// difference of the median cycle of one second from the usual one. The share is the
// autocorrelation of such medians 1 to 6 s apart, so it is the slope of the best linear
// prediction. It is the mean of ten series of 72 to 132 medians on two machines (0.28 to 0.69;
// results/2026-11-22-fidelity as of commit 24f90ac).
const paceStays = 0.56

// pace executes a steady program for a time, and until enough cycles have ended. It returns the
// lengths of these cycles.
func (cal *Calibration) pace(ctx context.Context, d time.Duration) (took []time.Duration, err error) {
	for begin, n := time.Now(), 0; len(took) < leastPace || time.Since(begin) < d; n++ {
		p, err := cal.execute(ctx, cal.Heap, beat(cal.Memory.Space, programTime), patternLimit, &prober{gap: paceGap}, max(d, leastProgram), false)
		if err != nil {
			return nil, err
		}
		if n == mostPrograms && len(took) == 0 {
			return nil, errors.New("live: no cycle of the steady program has ended")
		}
		for _, o := range p.seen {
			took = append(took, o.Held+o.Working)
		}
	}
	return took, nil
}

// costs stores the costs of allocations in m.
func (p *probe) costs(m *sim.Machine) {
	var alone, ladders []time.Duration
	for _, a := range p.allocs {
		if a.chunks == 0 {
			alone = append(alone, a.took)
		}
	}
	m.Alloc.Base = median(alone)
	m.Map = mapping(p.allocs, m.Alloc.Base)
	for _, a := range p.ladders {
		if a.chunks > 0 {
			a.took -= time.Duration(m.Map.Of(a.chunks, 0))
		}
		ladders = append(ladders, max(0, a.took))
	}
	m.Ladder = median(ladders)
}

// mapping fits a line, by least squares, to the extra time of allocations that mapped chunks.
// The points are the medians for each number of chunks.
func mapping(all []allocation, alone time.Duration) (l sim.Linear) {
	took := map[int64][]time.Duration{}
	for _, a := range all {
		if a.chunks > 0 {
			took[a.chunks] = append(took[a.chunks], max(0, a.took-alone))
		}
	}
	var n, x, y, xx, xy float64
	for chunks, times := range took {
		w, c, t := float64(len(times)), float64(chunks), float64(median(times))
		n, x, y, xx, xy = n+w, x+w*c, y+w*t, xx+w*c*c, xy+w*c*t
	}
	if n == 0 {
		return l
	}
	if d := n*xx - x*x; d > 0 {
		l.PerObject = max(0, (n*xy-x*y)/d)
	}
	l.Base = time.Duration(max(0, (y-l.PerObject*x)/n))
	return l
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

var errTimeUp = errors.New("live: the calibration's time is up")

// measure executes programs for a time, and until enough cycles have ended. With compute, the
// work of a program is a fixed number of turns; otherwise it takes the recorded time. If pace is
// not 0, measure also measures the pace for so long after each program, because the speed of a
// machine varies.
func (cal *Calibration) measure(ctx context.Context, heap int64, d time.Duration, compute bool, pace time.Duration) (*probe, error) {
	sum := new(probe)
	for begin, seed := time.Now(), uint64(1); len(sum.seen) < 2*minObservations || time.Since(begin) < d; seed++ {
		left := max(d-time.Since(begin), leastProgram)
		t, limit, err := cal.program(seed, left)
		if err != nil {
			return nil, err
		}
		p, err := cal.execute(ctx, heap, t, limit, &prober{random: rand.New(rand.NewPCG(seed, 2))}, left, compute)
		if err != nil {
			return nil, err
		}
		sum.work.add(&p.work)
		sum.seen, sum.allocs, sum.ladders = append(sum.seen, p.seen...), append(sum.allocs, p.allocs...), append(sum.ladders, p.ladders...)
		if seed > mostPrograms && len(sum.seen) < 2*minObservations {
			return nil, fmt.Errorf("live: %d programs had %d cycles that can be measured, and %d are needed: is other work running here? Measure for longer, or when the machine is quiet", seed, len(sum.seen), 2*minObservations)
		}
		if pace > 0 {
			took, err := cal.pace(ctx, pace)
			if err != nil {
				return nil, err
			}
			sum.paces = append(sum.paces, took...)
		}
	}
	return sum, nil
}

const (
	mostPrograms = 30
	programTime  = 3 * time.Second // of one that is made up
	leastProgram = time.Second     // a shorter one does not reach its steady state

	paceTime  = programTime / 5
	leastPace = 16 // cycles
	paceGap   = 2 * time.Millisecond
)

// program returns the program to execute and its limit: a made-up one, or the app's.
func (cal *Calibration) program(seed uint64, d time.Duration) (*trace.Trace, int64, error) {
	if cal.Like == nil {
		return pattern(seed, cal.Memory.Space, min(d, programTime)), patternLimit, nil
	}
	w, err := sim.Compile(cal.Like, sim.SpaceOf(cal.Like))
	if err != nil {
		return nil, 0, err
	}
	return cal.Like, w.PeakReachable * 3 / 2, nil
}

func (cal *Calibration) execute(ctx context.Context, heap int64, t *trace.Trace, limit int64, policy *prober, d time.Duration, compute bool) (*probe, error) {
	ctx, stop := context.WithTimeoutCause(ctx, d, errTimeUp)
	defer stop()
	p := &probe{policy: policy, chunks: cal.Memory.Mapped, bytes: cal.Memory.byBytes()}
	if p.chunks != nil {
		p.mapped = p.chunks()
	}
	r, err := Run(ctx, t, Config{
		Policy: policy, Limit: limit, Memory: cal.Memory, Space: sim.SpaceOf(t), Ballast: heap, Speed: 1, Compute: compute, probe: p,
	})
	p.work = r.Work
	if errors.Is(err, errTimeUp) {
		err = nil
	}
	return p, err
}
