package gc

import "math"

// OOM collects only when an allocation does not fit: one blocking cycle at the
// refusal, then the rest of the ladder. It is what java.nio's direct buffers
// do (drain pending cleaners, one System.gc, nine waits of 1 to 256 ms, fail)
// and CuPy's pool (return cached blocks, gc.collect, fail). In a replay the
// ladder is that cycle, so that the policy equals never there.
//
// Source: java/nio/Bits.java, reserveMemory, openjdk/jdk@13cbbaafed;
// cupy/cuda/memory.pyx, _try_malloc, cupy/cupy@6b6d9563c4.
type OOM struct{ noParams }

// Decide blocks at refusals.
func (*OOM) Decide(at Point) Decision {
	if at.At != Refusal {
		return Decision{Wake: math.MaxInt64, Reason: "no refusal"}
	}
	return Decision{Action: Block, Wake: math.MaxInt64, Reason: "refusal"}
}

// Observe does nothing.
func (*OOM) Observe(Cycle) {}

// String returns oom.
func (p *OOM) String() string { return textOf("oom", nil) }
