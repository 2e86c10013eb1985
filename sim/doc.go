// Package sim replays recorded workloads under collection policies on a virtual clock.
//
//	workload, err := sim.Compile(recording, pressure.Host) // recording is a *trace.Trace
//	if err != nil {
//		log.Fatal(err)
//	}
//	result := sim.Run(workload, policy.MustParse("pacer").New(), sim.Config{
//		Limit: 100e6, Cost: sim.Fixed(10 * time.Millisecond),
//	})
//	fmt.Println(result.Collections, result.ExposedPause)
//
// # The model
//
// A [Workload] holds the events that no policy can change: allocations, drops and waits, with their
// times. [Run] drives a [policy.Policy] through it. The state is small: the shift, which is the
// time by which pauses have delayed the program, the bytes that cycles have freed, and the cycle
// under way. At an event of time t the virtual clock reads now = t + shift, and
//
//	live    = allocated - freed by the program - freed by cycles
//	garbage = dropped - freed by cycles
//
// are differences of prefix sums. So the time of a run grows with the number of decisions, not with
// the number of events.
//
// # Rules
//
// An allocation of z bytes first asks the policy, which sees live without z. If the answer is
// Block, the program is held for the cost g of a cycle. If live + z is then above the limit, the
// ladder runs: it holds the program and frees all garbage. If z still does not fit, the allocation
// has failed. It is counted, and the run goes on as if it had fitted.
//
// A sync of length w asks the policy with WillBlock. A blocking cycle there hides behind the wait
// and exposes max(0, g - w). Degenbaev et al. (PLDI 2016) schedule collections of a browser into
// its idle time in this way; there, the length of the wait is known from the frame rate.
//
// An overlapped cycle ends at now + g and frees the garbage of its start. Until then no second
// cycle starts: a refusal, or the answer Block, waits for its end.
//
// A policy sees the true cost, limit and slowdown, or those of [Told].
package sim
