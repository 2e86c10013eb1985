package policy

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// cudajl is the eager collection rule of CUDA.jl. It blocks for a cycle once pressure has reached
// 0.75, or 0.50 if the caller is about to wait. The time of a cycle must be within 5 % of the time
// since the last decision to collect. This bound doubles for each of: the last cycle freed more
// than a tenth of the limit; the caller is about to wait; pressure above 0.90; pressure above 0.95.
// The cost of a cycle is an average that keeps 0.75 of its old value, from 0. Only the policy's own
// cycles count, and it never collects while no limit is known. The zero value is ready to use.
//
// CUDA.jl 6.1 added a second memory, that of the host, and the memory under more pressure decides.
// A [Point] is about that memory, too. The yield of the last cycle is remembered for each of the
// two. (Upstream measures it for both; a [Cycle] reports the memory that it ran for.)
//
// With Poll, a wait counts only if it is longer than Poll. CUDA.jl polls the device for some 50 us
// before it waits. It reports that it will block only if the device is then still busy. CUDA.jl's
// cycles are young collections, GC.gc(false), which cost less than full ones. A replay can price
// them with Young. The copy differs in two points: its cycles find all dead objects, and a Wait is
// known beforehand.
//
// Source: CUDACore/src/memory.jl, maybe_collect, JuliaGPU/CUDA.jl@fd1008df (6.3). Upstream's limit
// of the device is the hard limit, else the soft one, else a fresh estimate every 10 s. That of the
// host is its memory. Here it is the Sample's.
type cudajl struct {
	blocking
	Poll  time.Duration // a wait no longer than this does not count as one
	Young float64       // cost of its cycles, as a share of a full one's; 0 = a full one's

	last  time.Duration // when it last decided to collect
	cost  float64       // smoothed cost of a cycle, ns
	freed [2]int64      // yield of the last cycle: of a device, of other memory
	other int           // index in freed of the memory that the last cycle was for
}

const (
	cudajlPressure     = 0.75
	cudajlWaitPressure = 0.50
	cudajlShare        = 0.05
	cudajlYield        = 0.10
	cudajlHigh         = 0.90
	cudajlHigher       = 0.95
	cudajlKeep         = 0.75
)

func (p *cudajl) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Poll, "poll", 0, param.Wait(), "a wait no longer than this does not count as one: CUDA.jl polls about 50us"),
		param.Bind(&p.Young, "young", 1, param.Number(0, 1), "replays only: cost of its young collections, as a share of a full one's"),
		param.Overlap(&p.Overlap),
	}
}

// CycleShare is the cost of the policy's cycles, as a share of a full one's.
func (p *cudajl) CycleShare() float64 { return p.Young }

// Decide is maybe_collect.
func (p *cudajl) Decide(at Point) Decision {
	if p.Overlap && at.Running {
		return Decision{Reason: "cycle under way"}
	}
	limit, waits := at.Sample.Limit, at.WillBlock && (p.Poll == 0 || at.Wait > p.Poll)
	wake := wakeBelow(cudajlPressure * float64(limit))
	pressure, least := at.Sample.Pressure(), cudajlPressure
	if waits {
		least = cudajlWaitPressure
	}
	if pressure < least {
		return Decision{Wake: wake, Reason: "low pressure"}
	}
	other := 0
	if _, onDevice := at.Sample.Space.Device(); !onDevice {
		other = 1
	}
	share := cudajlShare
	if float64(p.freed[other]) > cudajlYield*float64(limit) {
		share *= 2
	}
	if waits {
		share *= 2
	}
	if pressure > cudajlHigh {
		share *= 2
	}
	if pressure > cudajlHigher {
		share *= 2
	}
	// With no time since the last cycle this is Inf. Before the first cycle it is NaN, which
	// exceeds no bound. So the first cycle always runs, as upstream.
	if p.cost/float64(at.Now-p.last) > share {
		return Decision{Wake: wake, Reason: "too soon"}
	}
	p.last, p.other = at.Now, other
	return Decision{Action: p.action(at), Reason: "pressure"}
}

// Observe learns from the cycles that Decide asked for.
func (p *cudajl) Observe(c Cycle) {
	if c.Trigger != TriggerPolicy {
		return
	}
	p.cost = cudajlKeep*p.cost + (1-cudajlKeep)*float64(c.Duration)
	p.freed[p.other] = c.Freed
}

func (p *cudajl) String() string { return param.Text("cudajl", p.Params()) }
