package live

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// MetaHeap is the key, in the Meta of a recorded run, for the size of its ballast in bytes.
const MetaHeap = "heap"

// FitRecording finds the machine from a recording of a live run under any one policy. It reads
// the lengths of cycles and of the refusal ladder. It also reads what the collector recorded
// about itself: the size of the Go heap, the number of processors and the slowdown beside
// cycles. If heap is not 0, it is the size of the Go heap with pointers, in bytes. FitRecording
// returns an error if the recording has too few cycles or no heap size.
func FitRecording(t *trace.Trace, heap int64) (*sim.Machine, Fit, error) {
	seen := map[string]int64{}
	for _, e := range t.Events {
		if e.Kind == trace.Mark {
			seen[t.Label(e)] = e.Bytes // the last one counts
		}
	}
	ballast, _ := strconv.ParseInt(t.Meta[MetaHeap], 10, 64)
	if heap = cmp.Or(heap, ballast, seen[gc.HeapLabel]); heap == 0 {
		return nil, Fit{}, errors.New("live: the recording has no size of the Go heap: give it, with --heap")
	}
	m, fit, err := fitMachine(heap, observe(t))
	if err != nil {
		return nil, fit, err
	}
	m.Ladder = median(ladders(t))
	m.Cores, m.Slowdown = int(seen[gc.ProcessorsLabel]), float64(seen[gc.SlowdownLabel])/1e6
	return m, fit, nil
}

// observe reads the cycles of a live run's recording that the policy or a refusal requested. It
// counts the objects that the pool recorded.
func observe(t *trace.Trace) []observation {
	var (
		all  []observation
		idle = idleTimes(t)
		live int
		end  = int64(math.MinInt64 / 2)
		at   = 0
	)
	for i, e := range t.Events {
		if e.Kind != trace.Cycle || e.Duration <= 0 {
			continue
		}
		for ; at < i; at++ {
			switch t.Events[at].Kind {
			case trace.Alloc:
				live++
			case trace.Free:
				live--
			}
		}
		o := observation{Gap: time.Duration(e.Time - end), Tracked: live, Bytes: e.Bytes, Start: -1}
		stop := e.Time + int64(e.Duration)
		for _, f := range t.Events[i:] {
			if f.Time > stop {
				break
			}
			if f.Kind == trace.Free && f.Aux == trace.FreeCycle {
				o.Objects++
			}
		}
		end = stop
		if trigger := policy.Trigger(e.Aux); trigger != policy.TriggerPolicy && trigger != policy.TriggerRefusal {
			continue
		}
		o.Held = idle.within(e.Time, stop)
		o.Working = e.Duration - o.Held
		all = append(all, o)
	}
	return all
}

// spans are disjoint intervals of time, in order.
type spans [][2]int64

// add adds an interval that does not begin before the last one.
func (s *spans) add(from, to int64) {
	if n := len(*s); n > 0 && from <= (*s)[n-1][1] {
		(*s)[n-1][1] = max((*s)[n-1][1], to)
		return
	}
	*s = append(*s, [2]int64{from, to})
}

// idleTimes returns the times in which the program was held or waited.
func idleTimes(t *trace.Trace) (idle spans) {
	for _, e := range t.Events {
		if e.Kind == trace.Sync || e.Kind == trace.Mark && t.Label(e) == gc.PauseLabel {
			idle.add(e.Time, e.Time+int64(e.Duration))
		}
	}
	return idle
}

// within returns how much of the time from begin to end the spans cover.
func (s spans) within(begin, end int64) (sum time.Duration) {
	i, _ := slices.BinarySearchFunc(s, begin, func(x [2]int64, t int64) int { return cmp.Compare(x[1], t) })
	for ; i < len(s) && s[i][0] < end; i++ {
		sum += time.Duration(max(0, min(end, s[i][1])-max(begin, s[i][0])))
	}
	return sum
}

// ladders returns the length of each climb of the refusal ladder without its cycle.
func ladders(t *trace.Trace) (all []time.Duration) {
	for _, e := range t.Events {
		switch n := len(all); {
		case e.Kind == trace.Refuse && pool.Step(e.Aux) == pool.StepReap:
			all = append(all, e.Duration)
		case n > 0 && e.Kind == trace.Refuse:
			all[n-1] += e.Duration
		case n > 0 && e.Kind == trace.Cycle && policy.Trigger(e.Aux) == policy.TriggerRefusal:
			all[n-1] -= e.Duration
		}
	}
	return all
}
