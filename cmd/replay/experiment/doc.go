// Package experiment compares policies: it replays every workload under every
// limit, cost and policy, and says what the results mean.
//
// A [Grid] is that product of runs. [Grid.Run] fills in one [Outcome] for each
// [Cell]. What follows is read from the outcomes:
//
//   - [Grid.Rank] orders the policies by the time that is lost under them.
//   - [Grid.Front] is the Pareto front of two metrics.
//   - [Grid.Check] holds a policy to conditions, against a baseline or without one.
//
// # Measures
//
//   - Ratio: metric / reference, with a little added to both sides so that a
//     ratio to nothing is finite: see [Metric.Ratio]. Over cells the geometric
//     mean is taken: see [Mean].
//   - Time lost: (exposed pause + 0.05 x collector time) / recorded time.
//   - LBO, lower-bound overhead (Cai, Blackburn, Bond and Maas, ISPASS 2022):
//     total cost over the least cost that any run has without the part that is
//     explicitly the collector's. Freeing by hand is a run, so the least is the span in
//     elapsed time, and the host's time (span less waits) in processor time.
//   - Wasted: cycles that freed less than 1 % of what was live.
//   - Metered latency of the intervals between syncs (DaCapo Chopin), and MMU
//     (Cheng and Blelloch, PLDI 2001).
package experiment
