package sim_test

import (
	"fmt"
	"log"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A program that allocates 1 MB each millisecond and drops it at once, replayed with a limit of 100 MB.
func ExampleRun() {
	recording := &trace.Trace{Name: "loop"}
	for i := range int64(1000) {
		recording.Record(trace.Event{Time: i * 1e6, ID: uint64(i), Kind: trace.Alloc, Bytes: 1e6})
		recording.Record(trace.Event{Time: i*1e6 + 1, ID: uint64(i), Kind: trace.Drop})
	}
	workload, err := sim.Compile(recording, pressure.Host)
	if err != nil {
		log.Fatal(err)
	}
	result := sim.Run(workload, policy.MustParse("threshold:0.8").New(), sim.Config{
		Limit: 100e6, Cost: sim.Fixed(10 * time.Millisecond),
	})
	fmt.Println(result.Collections, "cycles hold the program for", result.ExposedPause, "and leave at most", result.PeakLive, "bytes")
	// Output: 12 cycles hold the program for 120ms and leave at most 80000000 bytes
}
