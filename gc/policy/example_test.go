package policy_test

import (
	"fmt"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A half collects beside the program once half of the limit is live.
type half struct{}

func (half) Decide(at policy.Point) policy.Decision {
	if at.Running || at.Sample.Pressure() < 0.5 {
		return policy.Decision{Reason: "below half, or a cycle is under way"}
	}
	return policy.Decision{Action: policy.Overlap, Reason: "half of the limit is live"}
}
func (half) Observe(policy.Cycle) {}
func (half) String() string       { return "half" }

// A policy of one's own: once registered, every command and table knows it by its name.
func ExampleRegister() {
	policy.Register("half", "beside the program, once half of the limit is live", func() policy.Policy { return half{} })

	program := &trace.Trace{Name: "loop"} // 1000 blocks of 1 MB in a second, each dropped at once
	for i := range int64(1000) {
		program.Record(trace.Event{Time: i * 1e6, ID: uint64(i), Kind: trace.Alloc, Bytes: 1e6})
		program.Record(trace.Event{Time: i*1e6 + 1, ID: uint64(i), Kind: trace.Drop, Bytes: 1e6})
	}
	w, err := sim.Compile(program, pressure.Host)
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"never", "half"} {
		r := sim.Run(w, policy.MustParse(name).New(), sim.Config{Limit: 100e6, Cost: sim.Fixed(10 * time.Millisecond), Ladder: sim.Ladder{Factor: 2}})
		fmt.Printf("%-5s %d cycles, %d refusals, held for %v\n", name, r.Collections, r.RefusalCollections, r.ExposedPause)
	}
	// Output:
	// never 0 cycles, 9 refusals, held for 180ms
	// half  19 cycles, 0 refusals, held for 0s
}

// The text form of a policy is the same in programs, flags, files and tables.
func ExampleParse() {
	spec, err := policy.Parse("threshold:0.8")
	if err != nil {
		panic(err)
	}
	p := spec.New()
	fmt.Println(p, p.Decide(policy.Point{Sample: pressure.Sample{Live: 90, Limit: 100}}).Action)
	// Output: threshold:0.8 block
}
