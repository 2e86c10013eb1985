// Package evaluate holds policies against each other as a collector researcher
// would: on every workload, over many limits and costs, with the optimum and
// the control beside them, failures shown.
//
// Its measures, and where they come from:
//
//   - Ratio: geometric mean over cells of (metric + 1 ms) / (reference + 1 ms),
//     for metrics that may be nothing.
//   - LBO, lower-bound overhead (Cai, Blackburn, Bond and Maas, ISPASS 2022):
//     total cost over the least cost that any run has once the part that is
//     explicitly the collector's is taken off. In wall time a replay's total is
//     its elapsed time and the distilled cost its span. In processor time the
//     total is the host's time (span less waits) plus collector time.
//   - Hidden: the share of collector time that no caller waited for.
//   - Wasted: cycles that freed less than 1 % of what was live. Missed: refusals.
//   - Metered latency of the intervals between syncs (DaCapo Chopin), and MMU
//     (Cheng and Blelloch, PLDI 2001).
package evaluate
