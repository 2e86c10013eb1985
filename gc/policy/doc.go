// Package policy holds the rules by which a collector decides when to collect. A [Policy] is pure:
// it sees a [Point], answers with a [Decision], and observes each [Cycle]. It has no clock, no
// random source and no global state. So a replay runs the same code as a program.
//
//	spec, err := policy.Parse("threshold:0.8")
//	if err != nil {
//		log.Fatal(err)
//	}
//	collector, err := gc.New(gc.Config{Policy: spec.New(), Limit: 8 << 30})
//
// A policy has a text form: [Parse] reads "threshold:0.8", and [Spec.New] makes a fresh policy for
// each run. [List] describes all policies, and [Register] adds your own. The types behind the text
// forms are not exported.
package policy
