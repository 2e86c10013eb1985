// Package fleet asks many recordings one question: under which policy and which
// limit would each have lost how much time?
//
// # The model
//
// A job is one recording of a fleet. A [Plan] is the question: policies, limits and
// costs, whose product are its cells. [Mapper.Map] replays one recording in some
// cells. What comes of it is a [Job], and [Mapper.Partial] turns it into a [Partial]: sums,
// counts, histograms and the worst jobs. [Partial.Merge] adds two of them.
//
// # The invariant
//
// Everything in a Partial is an integer, and Merge is associative and commutative.
// So any order, any split and any number of machines give the same bytes. What two
// floating-point sums would do in another order is left out: means are sums over
// counts, a geometric mean is a sum of logarithms in units of 1e-9, and quantiles
// come from buckets of HdrHistogram.
//
// # Engines
//
// [Local] runs on the cores of one machine; the module sim/fleet/beam runs the same Map
// and Merge on Apache Beam. Both keep what they have found in a [Cache], whose keys are
// contents: the recording, the cell, and what the rules do. So a run that was ended
// goes on where it was, and several processes may share one cache.
package fleet
