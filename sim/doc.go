// Package sim replays recorded workloads under collection policies on a
// virtual clock.
//
// # The model
//
// A [Workload] is what a policy cannot change: which bytes were allocated,
// dropped and waited for, and when. [Run] drives a [gc.Policy] through it.
// The state is small: the shift (ns by which pauses have delayed the program),
// the bytes that cycles have freed so far, and the cycle under way, if any.
// At an event of time t the virtual clock reads now = t + shift, and
//
//	live    = allocated - freed by the program - freed by cycles
//	garbage = dropped - freed by cycles
//
// are differences of prefix sums, so a run costs per decision and not per
// event: between two decisions nothing changes but what the prefix sums know.
// [RunEvents] is the same machine stepped event by event; a test holds the
// two together.
//
// # Rules
//
// An allocation of z bytes asks the policy with live as it was before. Block
// holds the program for the cycle's cost g. If live + z is above the limit
// then, the ladder runs: the program is held for its length and everything
// dropped is freed; if z still does not fit the allocation has failed, is
// counted, and goes on as if it had fitted. A sync of length w asks with
// WillBlock: a blocking cycle there hides behind the wait and exposes
// max(0, g - w). An overlapped cycle ends at now + g and frees what was
// dropped before it started; until then no second cycle starts, and whoever
// needs one (a refusal, or a policy that says Block) waits for its end.
//
// A [Result] has the metrics by which runs are compared; a [Log] collects
// cycles, pauses and decisions for histograms, curves and plots.
package sim
