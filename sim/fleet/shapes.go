package fleet

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A program writes the events of a job that does not exist.
type program struct {
	*rand.Rand
	events []trace.Event
	now    int64 // ns
	ids    uint64
}

// shapes are the kinds of programs that are made up. Each writes about n events of
// objects up to some bytes, where an operation takes about op.
var shapes = []func(p *program, n int, bytes float64, op time.Duration){
	(*program).training, (*program).server, (*program).decoder, (*program).solver, (*program).graph, (*program).bursts,
}

// probe is the recording by which a Mapper knows what the rules of a policy do. It has
// phases of all shapes, so that a change of a rule shows.
func probe() *sim.Workload {
	p := &program{Rand: rand.New(rand.NewPCG(1, 1))}
	for _, shape := range shapes {
		shape(p, 400, 32<<20, 300*time.Microsecond)
	}
	w, err := sim.Compile(p.trace("probe"), pressure.Device(0))
	if err != nil {
		panic(err) // it is the same each time
	}
	return w
}

func (p *program) alloc(bytes float64) uint64 {
	p.ids++
	p.events = append(p.events, trace.Event{Time: p.now, Kind: trace.Alloc, Space: pressure.Device(0), ID: p.ids, Bytes: int64(max(256, bytes))})
	return p.ids
}

func (p *program) drop(t int64, ids ...uint64) {
	for _, id := range ids {
		p.events = append(p.events, trace.Event{Time: t, Kind: trace.Drop, Space: pressure.Device(0), ID: id})
	}
}

// work lets about d pass.
func (p *program) work(d time.Duration) { p.now += int64(float64(d) * (0.8 + 0.4*p.Float64())) }

func (p *program) sync(d time.Duration) {
	p.events = append(p.events, trace.Event{Time: p.now, Kind: trace.Sync, Duration: d})
	p.now += int64(d)
}

// between draws a number, every factor of two as likely.
func (p *program) between(low, high float64) float64 {
	return low * math.Exp(p.Float64()*math.Log(high/low))
}

// trace returns the events in order.
func (p *program) trace(name string) *trace.Trace {
	slices.SortStableFunc(p.events, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range p.events { // a drop carries the size of its object
		p.events[i].Time = max(0, p.events[i].Time)
	}
	sizes := make(map[uint64]int64)
	for i := range p.events {
		switch e := &p.events[i]; e.Kind {
		case trace.Alloc:
			sizes[e.ID] = e.Bytes
		case trace.Drop:
			e.Bytes = sizes[e.ID]
		}
	}
	return &trace.Trace{Name: name, Events: p.events}
}

// training has layers: activations live from the forward to the backward pass.
func (p *program) training(n int, bytes float64, op time.Duration) {
	layers := 4 + p.IntN(40)
	wait, spread := time.Duration(p.between(1, 40)*float64(op)), p.Float64()
	for range layers {
		p.alloc(bytes / 8)
	}
	for end := len(p.events) + n; len(p.events) < end; {
		scale := bytes * (1 - spread*p.Float64())
		var kept []uint64
		for i := range layers {
			kept = append(kept, p.alloc(scale*(1+float64(i%4))/4))
			p.work(op)
		}
		for i := layers - 1; i >= 0; i-- {
			gradient := p.alloc(scale * (1 + float64(i%4)) / 4)
			p.work(2 * op)
			p.drop(p.now, kept[i], gradient)
		}
		p.sync(wait)
	}
}

// server answers requests that come at random and overlap, over a cache.
func (p *program) server(n int, bytes float64, op time.Duration) {
	var cache []uint64
	for range 8 + p.IntN(56) {
		cache = append(cache, p.alloc(bytes))
	}
	service := p.between(4, 400) * float64(op)
	for end, i := len(p.events)+n, 0; len(p.events) < end; i++ {
		p.now += int64(p.ExpFloat64() * float64(op))
		done := p.now + int64(p.ExpFloat64()*service)
		for range 1 + p.IntN(6) {
			p.drop(done, p.alloc(p.between(bytes/64, bytes)))
		}
		if i%16 == 0 {
			k := p.IntN(len(cache))
			p.drop(p.now, cache[k])
			cache[k] = p.alloc(bytes)
		}
		if p.IntN(4) == 0 {
			p.sync(op / 4)
		}
	}
	p.now += int64(8 * service)
}

// decoder is a language model that writes: each sequence holds memory that grows token
// by token.
func (p *program) decoder(n int, bytes float64, op time.Duration) {
	sequences := make([][]uint64, 1+p.IntN(16))
	for end := len(p.events) + n; len(p.events) < end; {
		for i := range sequences {
			sequences[i] = append(sequences[i], p.alloc(bytes/16))
			if p.IntN(60) == 0 {
				p.drop(p.now, sequences[i]...)
				sequences[i] = nil
			}
		}
		step := p.alloc(bytes)
		p.work(op)
		p.sync(op / 2)
		p.drop(p.now, step)
	}
}

// solver iterates between large set-ups.
func (p *program) solver(n int, bytes float64, op time.Duration) {
	for end := len(p.events) + n; len(p.events) < end; {
		matrix, rest := p.alloc(20*bytes), p.alloc(5*bytes)
		p.work(20 * op)
		p.drop(p.now, matrix)
		for range 10 + p.IntN(50) {
			a, b := p.alloc(bytes), p.alloc(bytes/2)
			p.work(op)
			p.sync(op)
			p.drop(p.now, a, b)
		}
		p.drop(p.now, rest)
	}
}

// graph allocates blocks of all sizes that live for all lengths of time.
func (p *program) graph(n int, bytes float64, op time.Duration) {
	life := p.between(10, 1000) * float64(op)
	for end := len(p.events) + n; len(p.events) < end; {
		p.now += int64(p.ExpFloat64() * float64(op))
		p.drop(p.now+int64(p.ExpFloat64()*life), p.alloc(p.between(bytes/1024, bytes)))
	}
	p.now += int64(8 * life)
}

// bursts of work have silence in between.
func (p *program) bursts(n int, bytes float64, op time.Duration) {
	for end := len(p.events) + n; len(p.events) < end; {
		for range 10 + p.IntN(100) {
			id := p.alloc(p.between(bytes/8, bytes))
			p.work(op)
			p.drop(p.now, id)
		}
		p.work(time.Duration(p.between(10, 2000) * float64(op)))
	}
}
