package live

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// onAddresses simulates a recording under never, on a pool without memory.
func onAddresses(t *testing.T, tr *trace.Trace, kind addressonly.Kind, factor float64) (sim.Result, *addressonly.Memory, int64) {
	w, err := sim.Compile(tr, sim.SpaceOf(tr))
	if err != nil {
		t.Fatal(err)
	}
	limit := int64(factor * float64(w.PeakReachable))
	m := addressonly.New(kind, limit)
	t.Cleanup(m.Close)
	return sim.Run(w, policy.Spec{}.New(), sim.Config{Limit: limit, Memory: m, Machine: &sim.Machine{Mark: sim.Linear{Base: time.Millisecond}}}), m, limit
}

// A pool without memory refuses the same allocations as a real pool, and moves about as much
// memory: 17 % more in gnn, and 20 % where the real run had a refusal less.
func TestAddressesAloneDoWhatAPoolDoes(t *testing.T) {
	names := []string{"gnn", "gpt2", "burst"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		real, tr, count := onChunks(t, name, 1.5)
		said, m, _ := onAddresses(t, tr, addressonly.Virtual, 1.5)
		if said.FailedAllocs != 0 || !near(float64(said.RefusalCollections), float64(real.RefusalCollections), 0.05) || !near(float64(m.Mapped()), float64(count.mapped), 0.25) {
			t.Errorf("%s: %d refusals, %d chunks mapped; simulated %d, %d, and %d failed", name,
				real.RefusalCollections, count.mapped, said.RefusalCollections, m.Mapped(), said.FailedAllocs)
		}
	}
}

// Whole segments fail as many allocations of gnn on the host as in the simulation. Its sizes are
// divided to fit there, and its memory is not written.
func TestWholeSegmentsFailAsSimulated(t *testing.T) {
	tr, err := samples.Open("gnn")
	if err == nil {
		tr, err = Scale(tr, 16)
	}
	if err != nil {
		t.Fatal(err)
	}
	said, _, limit := onAddresses(t, tr, addressonly.Segments, 1.5)
	real, err := Run(t.Context(), tr, Config{Limit: limit, Space: sim.SpaceOf(tr), Memory: Memory{Upstream: struct{ pool.Upstream }{pool.Host{}}}})
	if err != nil || real.FailedAllocs == 0 || !near(float64(said.FailedAllocs), float64(real.FailedAllocs), 0.25) { // on a busy machine cycles end later
		t.Errorf("%d failed, %v; simulated %d", real.FailedAllocs, err, said.FailedAllocs)
	}
}
