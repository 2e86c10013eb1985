package experiment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A kind is a shape of programs that do not exist: training, serving, solving, idling and searching.
type kind struct {
	name  string
	write func(*script)
}

// synthesize makes a recording of such a program with the sizes, times and lengths of a seed. Number is
// that of the shape. It has 5,000 to 50,000 allocations on device 0. Such programs test policies that
// were tuned on real recordings.
func (k kind) synthesize(number, seed uint64) *trace.Trace {
	s := &script{Rand: rand.New(rand.NewPCG(seed, number))}
	k.write(s)
	// A stable sort keeps the order at one time, in which a drop comes after its allocation.
	slices.SortStableFunc(s.events, func(a, b trace.Event) int { return int(a.Time - b.Time) })
	return &trace.Trace{Name: fmt.Sprintf("%s:%d", k.name, seed), Events: s.events}
}

var shapes = []kind{
	{"training", func(s *script) {
		layers := s.count(15, 120)
		s.training(7000/layers, layers, s.bytes(4*mib, 128*mib), s.time(50*us, ms), s.wait(ms, 50*ms), 0)
	}},
	{"ragged", func(s *script) { // no two steps of one size
		layers := s.count(15, 120)
		s.training(7000/layers, layers, s.bytes(4*mib, 128*mib), s.time(50*us, ms), s.wait(ms, 50*ms), 0.3+0.6*s.Float64())
	}},
	{"phases", func(s *script) {
		for range s.count(2, 6) {
			layers := s.count(15, 120)
			s.training(2500/layers, layers, s.bytes(8*mib, 64*mib), s.time(50*us, ms), s.wait(ms, 50*ms), 0.5*s.Float64())
		}
	}},
	{"server", func(s *script) {
		service := s.time(2*ms, 80*ms)
		s.server(s.count(2000, 8000), time.Duration(float64(service)*s.between(0.005, 0.2)), service, float64(s.bytes(mib, 32*mib)))
	}},
	{"solver", func(s *script) {
		s.solver(s.count(20, 80), s.bytes(4*mib, 64*mib), s.time(100*us, 2*ms))
	}},
	{"idler", func(s *script) {
		s.idler(s.count(20, 90), s.bytes(4*mib, 64*mib), s.time(50*us, ms), s.time(10*ms, 400*ms))
	}},
	{"search", func(s *script) {
		s.search(s.count(30, 60), s.count(16, 48), s.bytes(256*kib, 8*mib), s.time(100*us, ms))
	}},
}

var alike = kind{"alike", func(s *script) {
	s.alike(s.count(100, 200), s.count(30, 60), s.bytes(mib, 4*mib), s.time(100*us, ms))
}}

// training is a network of layers. Activations live from the forward pass to the backward pass. Steps
// differ in size by up to spread.
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
			s.dropAt(end, s.alloc(int64(s.between(bytes/64, bytes))))
		}
		if i%16 == 0 {
			k := s.IntN(len(cache))
			s.drop(cache[k])
			cache[k] = s.alloc(int64(bytes))
		}
		if s.IntN(4) == 0 {
			s.sync(service / 8)
		}
	}
}

// alike reads a large table in each pass, and works on its rows one by one. To a policy one row is like another.
func (s *script) alike(passes, rows int, unit int64, op time.Duration) {
	s.alloc(32 * unit)
	for range passes {
		table := s.alloc(128 * unit)
		s.work(4 * op)
		for range rows {
			row := s.alloc(unit)
			s.work(op)
			s.drop(row)
		}
		s.drop(table)
		s.work(4 * op)
		s.sync(op)
	}
}

// solver iterates for a number of times drawn anew, between large set-ups.
func (s *script) solver(solves int, unit int64, op time.Duration) {
	for range solves {
		m, p := s.alloc(40*unit), s.alloc(10*unit)
		s.work(20 * op)
		s.sync(8 * op)
		s.drop(m)
		for range 20 + s.IntN(120) {
			a, b := s.alloc(unit), s.alloc(unit/2)
			s.work(op)
			s.sync(op)
			s.drop(a, b)
		}
		s.drop(p)
	}
}

// idler works in bursts with silence in between.
func (s *script) idler(bursts int, bytes int64, op, silence time.Duration) {
	for range bursts {
		for range s.count(20, 400) {
			id := s.alloc(s.bytes(bytes/8, bytes))
			s.work(op)
			s.drop(id)
		}
		s.work(silence)
	}
}

// search widens a tree level by level, keeps the best branches, and starts anew at
// a depth that is drawn each time.
func (s *script) search(searches, width int, unit int64, op time.Duration) {
	for range searches {
		level := []uint64{s.alloc(unit)}
		for range s.count(3, 12) {
			var next []uint64
			for range min(4*len(level), 4*width) {
				next = append(next, s.alloc(s.bytes(unit/2, unit)))
				s.work(op / 4)
			}
			s.sync(op)
			s.drop(level...)
			n := min(len(next), width)
			s.drop(next[n:]...)
			level = next[:n]
		}
		s.work(op)
		s.drop(level...)
	}
}

// A script writes the events of a program.
type script struct {
	*rand.Rand
	events []trace.Event
	now    int64   // ns
	sizes  []int64 // of objects, which are numbered from 1
}

const (
	kib = 1 << 10
	mib = 1 << 20

	us = time.Microsecond
	ms = time.Millisecond
)

// work lets about d pass.
func (s *script) work(d time.Duration) { s.now += int64(float64(d) * (0.8 + 0.4*s.Float64())) }

func (s *script) alloc(bytes int64) uint64 {
	s.sizes = append(s.sizes, max(1, bytes))
	id := uint64(len(s.sizes))
	s.events = append(s.events, trace.Event{Time: s.now, Kind: trace.Alloc, Space: pressure.Device(0), ID: id, Bytes: s.sizes[id-1]})
	return id
}

func (s *script) drop(ids ...uint64) { s.dropAt(s.now, ids...) }

// dropAt drops objects now or later.
func (s *script) dropAt(t int64, ids ...uint64) {
	for _, id := range ids {
		s.events = append(s.events, trace.Event{Time: t, Kind: trace.Drop, Space: pressure.Device(0), ID: id, Bytes: s.sizes[id-1]})
	}
}

// sync waits for about d.
func (s *script) sync(d time.Duration) {
	if d <= 0 {
		return
	}
	d = time.Duration(float64(d) * (0.8 + 0.4*s.Float64()))
	s.events = append(s.events, trace.Event{Time: s.now, Kind: trace.Sync, Duration: d})
	s.now += int64(d)
}

// between draws between lo and hi, every factor of two as likely.
func (s *script) between(lo, hi float64) float64 {
	return math.Exp(math.Log(lo) + s.Float64()*(math.Log(hi)-math.Log(lo)))
}

func (s *script) bytes(lo, hi int64) int64 { return int64(s.between(float64(lo), float64(hi))) }

func (s *script) time(lo, hi time.Duration) time.Duration {
	return time.Duration(s.between(float64(lo), float64(hi)))
}

func (s *script) count(lo, hi int) int { return int(s.between(float64(lo), float64(hi))) }

// wait draws the time of a wait. One program in four does not wait.
func (s *script) wait(lo, hi time.Duration) time.Duration {
	if s.IntN(4) == 0 {
		return 0
	}
	return s.time(lo, hi)
}
