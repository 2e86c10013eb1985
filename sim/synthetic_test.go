package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/samples"
)

// A script writes the trace of a program that does not exist.
type script struct {
	*rand.Rand
	events []trace.Event
	now    int64 // ns
	ids    uint64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

func newScript(seed uint64) *script { return &script{Rand: rand.New(rand.NewPCG(seed, 26))} }

// work lets about d pass.
func (s *script) work(d time.Duration) { s.now += int64(float64(d) * (0.8 + 0.4*s.Float64())) }

func (s *script) alloc(bytes int64) uint64 {
	s.ids++
	s.events = append(s.events, trace.Event{Time: s.now, Kind: trace.Alloc, Space: pressure.Device(0), ID: s.ids, Bytes: bytes})
	return s.ids
}

func (s *script) drop(ids ...uint64) { s.dropAt(s.now, ids...) }

// dropAt drops objects now or later; the events are sorted at the end.
func (s *script) dropAt(t int64, ids ...uint64) {
	for _, id := range ids {
		s.events = append(s.events, trace.Event{Time: t, Kind: trace.Drop, Space: pressure.Device(0), ID: id})
	}
}

func (s *script) sync(wait time.Duration) {
	wait = time.Duration(float64(wait) * (0.8 + 0.4*s.Float64()))
	s.events = append(s.events, trace.Event{Time: s.now, Kind: trace.Sync, Duration: wait})
	s.now += int64(wait)
}

func (s *script) trace(name string) *trace.Trace {
	slices.SortStableFunc(s.events, func(a, b trace.Event) int { return int(a.Time - b.Time) })
	return &trace.Trace{Name: name, Events: s.events}
}

// logUniform draws between lo and hi, every factor of two as likely.
func (s *script) logUniform(lo, hi float64) int64 {
	return int64(math.Exp(math.Log(lo) + s.Float64()*(math.Log(hi)-math.Log(lo))))
}

// training is a network of layers: activations live from the forward to the
// backward pass. spread is by how much steps differ in size.
func (s *script) training(steps, layers int, unit int64, op, wait time.Duration, spread float64) {
	for range layers { // parameters
		s.alloc(unit / 8)
	}
	for range steps {
		scale := 1 - spread*s.Float64()
		size := func(i int) int64 { return int64(scale * float64(unit) * (1 + float64(i%4)) / 2) }
		var kept []uint64
		for i := range layers {
			kept = append(kept, s.alloc(size(i)))
			t := s.alloc(size(i) / 2)
			s.work(op)
			s.drop(t)
		}
		for i := layers - 1; i >= 0; i-- {
			grad := s.alloc(size(i))
			s.work(2 * op)
			s.drop(kept[i], grad)
		}
		s.work(op)
		s.sync(wait)
	}
}

// server answers requests that come at random and overlap, over a cache that
// turns over slowly.
func (s *script) server(requests int, gap, service time.Duration, bytes float64) {
	var cache []uint64
	for range 64 {
		cache = append(cache, s.alloc(int64(bytes)))
	}
	for i := range requests {
		s.now += int64(s.ExpFloat64() * float64(gap))
		end := s.now + int64(s.ExpFloat64()*float64(service))
		for range 1 + s.IntN(8) {
			s.dropAt(end, s.alloc(s.logUniform(bytes/64, bytes)))
		}
		if i%16 == 0 {
			k := s.IntN(len(cache))
			s.drop(cache[k])
			cache[k] = s.alloc(int64(bytes))
		}
		if s.IntN(4) == 0 {
			s.events = append(s.events, trace.Event{Time: s.now, Kind: trace.Sync, Duration: service / 8})
		}
	}
}

// decoder is a language model that writes: each sequence holds a cache that
// grows token by token, and ends at random.
func (s *script) decoder(tokens, batch int, unit int64, op time.Duration) {
	seqs := make([][]uint64, batch)
	for range tokens {
		for b := range seqs {
			seqs[b] = append(seqs[b], s.alloc(unit))
			if s.IntN(200) == 0 {
				s.drop(seqs[b]...)
				seqs[b] = nil
			}
		}
		t := s.alloc(unit * int64(batch) * 4)
		s.work(op)
		s.sync(op / 2)
		s.drop(t)
	}
}

// solver iterates for a number of times drawn anew, between large set-ups.
func (s *script) solver(solves int, unit int64, op time.Duration) {
	for range solves {
		m := s.alloc(40 * unit)
		p := s.alloc(10 * unit)
		s.work(20 * op)
		s.sync(8 * op)
		s.drop(m)
		for range 20 + s.IntN(60) {
			a, b := s.alloc(unit), s.alloc(unit/2)
			s.work(op)
			s.sync(op)
			s.drop(a, b)
		}
		s.drop(p)
	}
}

// graph allocates blocks of all sizes that live for all lengths of time.
func (s *script) graph(blocks int, gap, life time.Duration, bytes float64) {
	for range blocks {
		s.now += int64(s.ExpFloat64() * float64(gap))
		id := s.alloc(s.logUniform(bytes/1024, bytes))
		s.dropAt(s.now+int64(s.ExpFloat64()*float64(life)), id)
	}
}

// idler works in bursts with silence in between.
func (s *script) idler(bursts int, bytes int64, op, silence time.Duration) {
	for range bursts {
		for range 10 + s.IntN(200) {
			id := s.alloc(s.logUniform(float64(bytes)/8, float64(bytes)))
			s.work(op)
			s.drop(id)
		}
		s.work(silence)
	}
}

// synthetic are programs of other shapes than the recorded ones.
func synthetic() []*trace.Trace {
	make := func(name string, seed uint64, write func(*script)) *trace.Trace {
		s := newScript(seed)
		write(s)
		return s.trace(name)
	}
	const us, ms = time.Microsecond, time.Millisecond
	return []*trace.Trace{
		make("train", 1, func(s *script) { s.training(60, 50, 64*mib, 300*us, 20*ms, 0) }),
		make("train-ragged", 2, func(s *script) { s.training(60, 50, 64*mib, 300*us, 20*ms, 0.8) }),
		make("train-nowait", 3, func(s *script) { s.training(60, 50, 64*mib, 500*us, 0, 0.1) }),
		make("train-phases", 4, func(s *script) {
			s.training(20, 50, 64*mib, 300*us, 10*ms, 0)
			s.training(40, 20, 32*mib, 100*us, 2*ms, 0)
			s.training(20, 100, 32*mib, 200*us, 30*ms, 0.3)
		}),
		make("server", 5, func(s *script) { s.server(8000, 400*us, 30*ms, 8*mib) }),
		make("server-busy", 6, func(s *script) { s.server(20000, 50*us, 10*ms, 16*mib) }),
		make("decoder", 7, func(s *script) { s.decoder(2000, 16, 2*mib, 3*ms) }),
		make("solver", 8, func(s *script) { s.solver(60, 32*mib, 500*us) }),
		make("graph", 9, func(s *script) { s.graph(30000, 100*us, 50*ms, 64*mib) }),
		make("graph-slow", 10, func(s *script) { s.graph(20000, 300*us, 500*ms, 16*mib) }),
		make("idler", 11, func(s *script) { s.idler(60, 32*mib, 200*us, 60*ms) }),
		make("mixed", 12, func(s *script) {
			s.solver(10, 32*mib, 500*us)
			s.server(2000, 400*us, 30*ms, 8*mib)
			s.training(20, 30, 64*mib, 300*us, 5*ms, 0)
			s.graph(8000, 100*us, 50*ms, 64*mib)
			s.idler(20, 64*mib, 200*us, 40*ms)
		}),
	}
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
