package gc_test

import (
	"fmt"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A Spec is checked once and makes a fresh policy for every run.
func ExampleParse() {
	spec, err := gc.Parse("growth:0.50,min=64MiB")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec)

	policy := spec.New()
	at := gc.Point{At: gc.Allocation, Request: 1 << 20, LiveAfter: 100 << 20}
	for _, live := range []int64{120 << 20, 150 << 20} {
		at.Sample = pressure.Sample{Live: live}
		fmt.Println(live>>20, "MiB:", policy.Decide(at).Action)
	}

	_, err = gc.Parse("growht:0.5")
	fmt.Println(err)
	// Output:
	// growth:0.5,min=64MiB
	// 120 MiB: skip
	// 150 MiB: overlap
	// gc: unknown policy "growht" (nearest: growth)
}

// quiet is a policy of one's own: it collects where the wait hides the cycle.
type quiet struct{}

func (quiet) Decide(at gc.Point) gc.Decision {
	if at.At == gc.Sync && at.Wait >= at.Cost && at.Sample.Pressure() > 0.3 {
		return gc.Decision{Action: gc.Block, Reason: "hidden"}
	}
	return gc.Decision{Reason: "would show"}
}

func (quiet) Observe(gc.Cycle) {}
func (quiet) String() string   { return "quiet" }

// Any type with these three methods is a policy.
func ExamplePolicy() {
	var p gc.Policy = quiet{}
	at := gc.Point{At: gc.Sync, WillBlock: true, Cost: time.Millisecond, Sample: pressure.Sample{Live: 4, Limit: 10}}
	fmt.Println(p.Decide(at))
	at.Wait = 2 * time.Millisecond
	fmt.Println(p.Decide(at))
	// Output:
	// {skip 0 would show}
	// {block 0 hidden}
}
