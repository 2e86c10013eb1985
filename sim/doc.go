// Package sim replays recorded workloads under collection policies on a
// virtual clock.
//
// # The model
//
// A [Workload] is what a policy cannot change: which bytes were allocated,
// dropped and waited for, and when. [Run] drives a [policy.Policy] through it.
// The state is small: the shift (ns by which pauses have delayed the program),
// the bytes that cycles have freed so far, and the cycle under way, if any.
// At an event of time t the virtual clock reads now = t + shift, and
//
//	live    = allocated - freed by the program - freed by cycles
//	garbage = dropped - freed by cycles
//
// are differences of prefix sums. So the time of a run grows with the number of
// decisions and not with the number of events: from one decision to the next the
// prefix sums say all that changes. A test steps the same run event by event,
// with the same results.
//
// # Rules
//
// An allocation of z bytes first asks the policy, which sees live without z. If
// the answer is Block, the program is held for the cost g of a cycle. If live + z
// is above the limit after that, the ladder runs: the program is held for its
// length, and everything that was dropped is freed. If z still does not fit, the
// allocation has failed. It is counted, and the run goes on as if it had fitted.
//
// A sync of length w asks the policy with WillBlock. A blocking cycle there hides
// behind the wait and exposes max(0, g - w).
//
// An overlapped cycle ends at now + g and frees what was dropped before it
// started. Until then no second cycle starts: a refusal, or a policy that says
// Block, waits for its end.
//
// A policy is told the truth of cost, limit and slowdown, or what [Told] says. Where a
// [Machine] is the world, [Told].Learned says what a [gc.Collector] would tell: it
// expects a cost before the first cycle, and learns cost and slowdown from the run's
// cycles, by its own code.
//
// A [Result] has the metrics by which runs are compared; a [Log] collects
// cycles, pauses and decisions for histograms, curves and plots.
package sim
