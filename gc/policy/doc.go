// Package policy holds the rules by which a collector decides when to collect: those of others, for
// comparison, and ours. A [Policy] is pure: it sees a [Point], answers with a [Decision], and is told
// of every [Cycle]. It has no clock, no random source and no global state, so that a replay asks
// the very code that runs in a program.
//
// A policy has a text form: [Parse] reads "threshold:0.8", and [Spec.New] makes a fresh one for each run.
// [List] describes all of them. [Register] adds one of your own. The text form is the interface; the
// types behind it are not exported.
package policy
