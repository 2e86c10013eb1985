package policy

import "math"

// cpuControl adjusts the size of the heap so that cycles take a target share of the program's processor
// time. After each cycle, over a window of the last three,
//
//	overhead = mean(processor time of a cycle) / mean(that of the program between two)
//	error    = overhead - target, in percentage points
//	heap     = heap x (sigmoid(error) + 0.5)
//
// so that it shrinks to half or grows by half at most. A cycle starts when live bytes would exceed the heap,
// which is at least what the last cycle left and Min, and at most the limit. Upstream divides a
// collector's processor time by a program's; here the program is taken to use the processors that a cycle
// uses: Work is for each of them. That the error counts in percentage points is our reading: as a share it would hardly move
// the heap. The zero value never collects.
//
// Source: Tavakolisomeh, Shimchenko, Osterlund, Bruno, Ferreira, Wrigstad, "Heap Size Adjustment with CPU
// Control", MPLR 2023, doi 10.1145/3617651.3622988, whose target is 15; ruby/mmtk pull request 77, whose is 5.
type cpuControl struct {
	Target  float64 // share, 0 to 1
	Min     size    // least headroom, and the first heap
	Overlap bool    // run beside the program

	heap   float64    // bytes; 0 before the first decision
	cycles [3]float64 // processor time of the last ones, ns
	apps   [3]float64 // of the program before each
	n      int
	ended  float64 // end of the last cycle, ns
}

func (p *cpuControl) params() []Param {
	return []Param{
		bind(&p.Target, "target", 0.05, percentKind(), "share of the program's processor time that cycles are to take"),
		bind(&p.Min, "min", size{Bytes: 2 * miB}, sizeKind(2*miB), "least headroom, and the first heap"),
		bind(&p.Overlap, "overlap", true, boolKind(), "run the cycle beside the program"),
	}
}

func (p *cpuControl) Decide(at Point) Decision {
	if at.At == Sync {
		return Decision{Reason: "not an allocation"}
	}
	heap := max(int64(p.heap), at.LiveAfter+p.Min.Of(at.Sample.Limit))
	if at.Sample.Limit > 0 {
		heap = min(heap, at.Sample.Limit)
	}
	if granted(&at) <= heap || p.Min == (size{}) {
		p.heap = float64(heap)
		return Decision{Wake: heap + 1, Reason: "within the heap"}
	}
	d := startCycle(at, p.Overlap, "heap used up")
	d.Wake = 0
	return d
}

// Observe adjusts the heap.
func (p *cpuControl) Observe(c Cycle) {
	work := float64(c.work())
	end := float64(c.Start + c.Duration)
	p.cycles[p.n%3], p.apps[p.n%3] = work, max(1, end-p.ended-work)
	p.n, p.ended = p.n+1, end
	var cycles, apps float64
	for i := range min(p.n, 3) {
		cycles, apps = cycles+p.cycles[i], apps+p.apps[i]
	}
	p.heap *= 0.5 + 1/(1+math.Exp(100*(p.Target-cycles/apps)))
}

func (p *cpuControl) String() string { return textOf("cpucontrol", p.params()) }
