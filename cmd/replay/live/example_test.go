package live_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// Record a program of your own, compare policies on what was recorded, and
// embed the one that loses least. The program is live.Sample here.
func Example() {
	// Record, with a cycle at every wait: that dates each drop to within one step.
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, &trace.Trace{Name: "mine"})
	if err != nil {
		log.Fatal(err)
	}
	recorder := trace.NewRecorder(w, trace.RecorderConfig{})
	run(policy.MustParse("always"), 0, recorder)
	if err := recorder.Close(); err != nil {
		log.Fatal(err)
	}

	// Compare.
	recorded, err := trace.Read(&file)
	if err != nil {
		log.Fatal(err)
	}
	workload, err := sim.Compile(recorded, pressure.Host)
	if err != nil {
		log.Fatal(err)
	}
	limit := workload.PeakReachable * 3 / 2
	var best policy.Spec
	var least sim.Result
	for _, name := range []string{"never", "cudajl", "threshold:0.8"} {
		spec := policy.MustParse(name)
		r := sim.Run(workload, spec.New(), sim.Config{Limit: limit, Cost: sim.Fixed(1e6), Ladder: sim.Ladder{Factor: 2}})
		if least.Trace == "" || r.Objective() < least.Objective() {
			best, least = spec, r
		}
	}

	// Embed.
	stats := run(best, 8<<20, nil)
	fmt.Println("something was recorded:", workload.Allocs > 1000)
	fmt.Println("the best collects by itself or lets the ladder:", stats.Cycles[policy.TriggerPolicy]+stats.Cycles[policy.TriggerRefusal] > 0)
	// Output:
	// something was recorded: true
	// the best collects by itself or lets the ladder: true
}

// run is the program: a pool with a limit, a policy, and a recorder or none.
func run(policy policy.Spec, limit int64, recorder *trace.Recorder) gc.Stats {
	collector, err := gc.New(gc.Config{Policy: policy.New(), Caps: gc.Caps{Cycles: 1}, Recorder: recorder})
	if err != nil {
		log.Fatal(err)
	}
	defer collector.Close()
	p, err := pool.New(pool.Config{
		Collector: collector,
		Limits:    pressure.Limits{Hard: pressure.Limit{Bytes: limit}},
		Trace:     recorder,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	if _, _, err := (live.Sample{}).Run(context.Background(), p); err != nil {
		log.Fatal(err)
	}
	return collector.Stats()
}
