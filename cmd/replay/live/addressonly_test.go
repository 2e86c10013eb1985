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

// A pool without memory refuses what a real pool does, and moves about as much.
func TestAddressesAloneDoWhatAPoolDoes(t *testing.T) {
	for _, name := range []string{"gnn", "gpt2", "burst"} {
		real, tr, count := onChunks(t, name, 1.5)
		said, m, _ := onAddresses(t, tr, addressonly.Virtual, 1.5)
		if said.FailedAllocs != 0 || !near(float64(said.RefusalCollections), float64(real.RefusalCollections), 0.05) || !near(float64(m.Mapped()), float64(count.mapped), 0.2) {
			t.Errorf("%s: %d refusals, %d chunks mapped; simulated %d, %d, and %d failed", name,
				real.RefusalCollections, count.mapped, said.RefusalCollections, m.Mapped(), said.FailedAllocs)
		}
	}
}

// Of gnn, whole segments fail as many allocations on the host as is simulated. Its
// sizes are divided, so that it fits there; nobody writes its memory.
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
	if err != nil || real.FailedAllocs == 0 || !near(float64(said.FailedAllocs), float64(real.FailedAllocs), 0.1) {
		t.Errorf("%d failed, %v; simulated %d", real.FailedAllocs, err, said.FailedAllocs)
	}
}

// A line through what allocations took that mapped chunks.
func TestMappingFit(t *testing.T) {
	var all []allocation
	for n := range int64(20) {
		all = append(all, allocation{took: time.Duration(50+70*n) * time.Microsecond, chunks: n}, allocation{took: time.Second})
	}
	l := mapping(all, 10*time.Microsecond)
	if !near(float64(l.Base), 40e3, 0.01) || !near(l.PerObject, 70e3, 0.01) {
		t.Errorf("%+v", l)
	}
	if l := mapping(all[:1], 0); l != (sim.Linear{}) {
		t.Errorf("of nothing: %+v", l)
	}
}

// What is mapped takes time: beside the program, or as part of a pause.
func TestMappingTakesTime(t *testing.T) {
	tr, err := samples.Open("burst")
	if err != nil {
		t.Fatal(err)
	}
	run := func(m sim.Machine) (sim.Result, *addressonly.Memory, *sim.Log) {
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil {
			t.Fatal(err)
		}
		limit := w.PeakReachable * 3 / 2
		memory := addressonly.New(addressonly.Virtual, limit)
		t.Cleanup(memory.Close)
		m.Mark.Base = time.Millisecond
		log := new(sim.Log)
		return sim.Run(w, policy.Spec{}.New(), sim.Config{Limit: limit, Memory: memory, Machine: &m, Log: log}), memory, log
	}
	free, _, _ := run(sim.Machine{})
	slow, m, log := run(sim.Machine{Map: sim.Linear{PerObject: 100e3}})
	more := slow.ExposedPause - free.ExposedPause
	if most := time.Duration(m.Mapped()) * 100 * time.Microsecond; more <= 0 || more > most || slow.RefusalCollections != free.RefusalCollections {
		t.Errorf("exposed %v more, to map %v; %d refusals, %d where it takes no time", more, most, slow.RefusalCollections, free.RefusalCollections)
	}
	var sum, longest time.Duration
	for _, p := range log.Pauses {
		sum, longest = sum+p.Length, max(longest, p.Length)
	}
	if sum != slow.ExposedPause || longest != slow.MaxPause {
		t.Errorf("pauses of %v in all and %v at most, said %v and %v", sum, longest, slow.ExposedPause, slow.MaxPause)
	}
}
