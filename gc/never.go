package gc

import "math"

// Never does not collect: an allocation that does not fit is left to the
// refusal ladder, garbage below that to the Go runtime. It is what a program
// has without this library, and the control in every comparison.
type Never struct{ noParams }

// Decide skips for ever.
func (*Never) Decide(Point) Decision { return Decision{Wake: math.MaxInt64, Reason: "never"} }

// Observe does nothing.
func (*Never) Observe(Cycle) {}

// String returns never.
func (p *Never) String() string { return textOf("never", nil) }
