package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/samples"
	"github.com/eagergc/eagergc/trace/synthetic"
)

// programs are synthetic ones of some shapes.
func programs(t testing.TB, seed uint64, shapes ...string) []*trace.Trace {
	var all []*trace.Trace
	for _, shape := range shapes {
		tr, err := synthetic.Open(shape, seed)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	return all
}

// perturbed are the recorded workloads, changed.
func perturbed(t testing.TB) []*trace.Trace {
	var all []*trace.Trace
	recorded := map[string]*trace.Trace{}
	for i, name := range samples.Names() {
		tr, err := samples.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		tr.Events = only(tr.Events, sim.SpaceOf(tr))
		recorded[name] = tr
		r := rand.New(rand.NewPCG(uint64(i), 7))
		all = append(all,
			change(tr, "slow", func(e *trace.Event) { e.Time, e.Duration = 3*e.Time, 3*e.Duration }),
			change(tr, "fast", func(e *trace.Event) { e.Time, e.Duration = e.Time/3, e.Duration/3 }),
			change(tr, "sizes", func(e *trace.Event) { e.Bytes = int64(float64(e.Bytes) * (0.7 + 0.6*r.Float64())) }),
			jittered(tr, r), nowait(tr))
	}
	all = append(all, after(recorded["gp"], recorded["vit"]), after(recorded["mlp"], recorded["resnet"]), beside(recorded["gp"], recorded["vit"]), beside(recorded["mlp"], recorded["gp"]))
	return all
}

func only(events []trace.Event, space pressure.Space) []trace.Event {
	return slices.DeleteFunc(events, func(e trace.Event) bool {
		return e.Space != space && e.Kind != trace.Sync || !slices.Contains([]trace.Kind{trace.Alloc, trace.Drop, trace.Free, trace.Sync}, e.Kind)
	})
}

func change(tr *trace.Trace, how string, f func(*trace.Event)) *trace.Trace {
	events := slices.Clone(tr.Events)
	for i := range events {
		f(&events[i])
	}
	return &trace.Trace{Name: tr.Name + "-" + how, Events: events}
}

// jittered draws the pace anew every 20 ms.
func jittered(tr *trace.Trace, r *rand.Rand) *trace.Trace {
	pace, next, out, last := 1.0, int64(0), int64(0), tr.Events[0].Time
	return change(tr, "jitter", func(e *trace.Event) {
		if e.Time >= next {
			pace, next = math.Exp(r.NormFloat64()/2), e.Time+20e6
		}
		out += int64(pace * float64(e.Time-last))
		last, e.Time = e.Time, out
	})
}

// nowait takes the waits out, and the time that they took.
func nowait(tr *trace.Trace) *trace.Trace {
	var gone, until int64
	w := change(tr, "nowait", func(e *trace.Event) {
		t := max(e.Time, until)
		if e.Kind == trace.Sync {
			gone += max(0, e.Time+int64(e.Duration)-t)
			until = max(until, e.Time+int64(e.Duration))
			e.Duration = 0
			t = until
		}
		e.Time = t - gone
	})
	for i := range w.Events {
		if i > 0 {
			w.Events[i].Time = max(w.Events[i].Time, w.Events[i-1].Time)
		}
	}
	w.Events = slices.DeleteFunc(w.Events, func(e trace.Event) bool { return e.Kind == trace.Sync })
	return w
}

// after runs b when a has ended and left nothing.
func after(a, b *trace.Trace) *trace.Trace {
	w := &trace.Trace{Name: a.Name + "+" + b.Name, Events: slices.Clone(a.Events)}
	live := map[uint64]bool{}
	for _, e := range a.Events {
		switch e.Kind {
		case trace.Alloc:
			live[e.ID] = true
		case trace.Drop, trace.Free:
			delete(live, e.ID)
		}
	}
	end := a.Events[len(a.Events)-1].Time
	for _, e := range a.Events {
		if e.Kind == trace.Alloc && live[e.ID] {
			w.Events = append(w.Events, trace.Event{Time: end, Kind: trace.Drop, Space: e.Space, ID: e.ID})
		}
	}
	for _, e := range b.Events {
		e.Time += end - b.Events[0].Time
		e.ID += 1 << 40
		w.Events = append(w.Events, e)
	}
	return w
}

// beside runs a and b at once.
func beside(a, b *trace.Trace) *trace.Trace {
	w := &trace.Trace{Name: a.Name + "|" + b.Name, Events: slices.Clone(a.Events)}
	for _, e := range b.Events {
		e.Time += a.Events[0].Time - b.Events[0].Time
		e.ID += 1 << 40
		w.Events = append(w.Events, e)
	}
	slices.SortStableFunc(w.Events, func(a, b trace.Event) int { return int(a.Time - b.Time) })
	return w
}
