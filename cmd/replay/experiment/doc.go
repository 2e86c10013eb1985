// Package experiment compares policies. It replays every workload under every limit, cost and
// policy, and evaluates the results.
//
// A [Grid] is that product of runs. [Grid.Run] fills in one [Outcome] for each [Cell].
// [Grid.Rank] orders the policies by the time lost under them. A [Question] asks for the smallest
// limit.
//
// # Measures
//
// Time lost is (exposed pause + 0.05 x collector time) / recorded time. Means over cells are
// geometric: see [Mean].
//
// LBO, lower-bound overhead (Cai, Blackburn, Bond and Maas, ISPASS 2022), is the total cost over
// the least cost of any run without the explicit part of the collector. Freeing by hand is such
// a run. So the least elapsed time is the span, and the least processor time is the host's: the
// span without the waits.
//
// A cycle is wasted if it frees less than 1% of the live bytes.
//
// Metered latency is that of the intervals between syncs (DaCapo Chopin). MMU is the minimum
// mutator utilization (Cheng and Blelloch, PLDI 2001).
package experiment
