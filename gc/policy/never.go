package policy

import "math"

// never does not collect. An allocation that does not fit is left to the refusal
// ladder, and all other garbage to the cycles of the Go runtime. It is what a
// program has without this library, and the control in every comparison. Since
// the ladder runs a cycle, it is also what java.nio's direct buffers do (System.gc
// when memory is refused) and CuPy's pool (gc.collect).
//
// Source: java/nio/Bits.java, reserveMemory, openjdk/jdk@13cbbaafed;
// cupy/cuda/memory.pyx, _try_malloc, cupy/cupy@6b6d9563c4.
type never struct{}

// Decide skips for ever.
func (*never) Decide(Point) Decision { return Decision{Wake: math.MaxInt64, Reason: "never"} }

func (*never) Observe(Cycle) {}

func (p *never) String() string { return "never" }
