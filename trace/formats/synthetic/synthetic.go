// Package synthetic makes recordings of programs that do not exist: training, serving, solving,
// searching and others. A seed gives each its sizes, times and lengths. They test policies that were
// tuned on real recordings.
package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Shapes returns the names of the kinds of program. The result is the caller's.
func Shapes() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return names
}

// Open makes the program of a shape and a seed, with 5,000 to 50,000 allocations on device 0. The same
// arguments give the same trace. The caller owns the trace. An unknown shape is an error. Open is safe
// for concurrent use.
func Open(shape string, seed uint64) (*trace.Trace, error) {
	i := slices.IndexFunc(shapes, func(s kind) bool { return s.name == shape })
	if i < 0 {
		return nil, fmt.Errorf("synthetic: no shape %q (there are %s)", shape, strings.Join(Shapes(), ", "))
	}
	s := &script{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
	shapes[i].write(s)
	// A stable sort keeps the order at one time, in which a drop comes after its allocation.
	slices.SortStableFunc(s.events, func(a, b trace.Event) int { return int(a.Time - b.Time) })
	return &trace.Trace{Name: fmt.Sprintf("%s:%d", shape, seed), Events: s.events}, nil
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
