// Package pprof turns a trace into a profile for go tool pprof, which shows the code that holds the
// memory.
//
// The label of an Alloc event is its allocation site, a stack: one function a line, the innermost
// first. After a function's name there may be a tab and FILE:LINE. An object without a label belongs
// to "(unknown)".
//
// The profile has the sample types of Go's heap profiles. alloc_objects and alloc_space count all
// objects so far. inuse_objects and inuse_space count those that are reachable at the moment of the
// profile. Each sample has the label space, so -tagfocus=device0 picks the samples of one space.
//
// A Mark with [trace.SiteRateLabel] says that the allocation sites of a space are sampled. Then each
// Alloc with a label stands for 1/(1-exp(-size/rate)) objects, as in Go's heap profiles. "(unknown)"
// is the true sum of the space less these estimates, if that is positive. All pools of a space must
// use the same rate.
package pprof

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/google/pprof/profile"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// AtPeak stands for the moment at which the most bytes are reachable.
const AtPeak = time.Duration(-1)

const unknown = "(unknown)"

// Write writes the profile of t at a moment of the trace, or [AtPeak]. It is packed
// with gzip, as go tool pprof expects. The trace must be valid: see
// [trace.Trace.Validate].
func Write(w io.Writer, t *trace.Trace, at time.Duration) error {
	if err := profileOf(t, at).Write(w); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return nil
}

// profileOf returns the profile that [Write] writes.
func profileOf(t *trace.Trace, at time.Duration) *profile.Profile {
	last := len(t.Events)
	if at == AtPeak {
		last = peak(t)
	} else {
		for last > 0 && t.Events[last-1].Time > int64(at) {
			last--
		}
	}
	s := sums{t: t, b: newBuilder(), places: make(map[key]*sum), spaces: make(map[pressure.Space]*spaceSum)}
	s.rates()
	s.add(t.Events[:last])
	s.finish()
	p := s.b.p
	if last > 0 {
		p.DurationNanos = t.Events[last-1].Time
	}
	if !t.Start.IsZero() {
		p.TimeNanos = t.Start.UnixNano() + p.DurationNanos
	}
	if t.Name != "" {
		p.Comments = append(p.Comments, recording.Plain(t.Name))
	}
	return p
}

// peak returns the number of events up to the peak of reachable bytes.
func peak(t *trace.Trace) int {
	sizes := make(map[uint64]int64)
	var now, most int64
	at := 0
	for i, e := range t.Events {
		switch e.Kind {
		case trace.Alloc:
			sizes[e.ID] = e.Bytes
			if now += e.Bytes; now > most {
				most, at = now, i+1
			}
		case trace.Drop, trace.Free:
			now -= sizes[e.ID]
			delete(sizes, e.ID)
		}
	}
	return at
}

type key struct {
	stack uint32 // a label
	space pressure.Space
}

// sums adds up the objects of a trace.
type sums struct {
	t      *trace.Trace
	b      *builder
	places map[key]*sum
	order  []*sum // of their first allocation
	spaces map[pressure.Space]*spaceSum
}

// A sum is one sample of the profile. Its values are exact up to 2^53.
type sum struct {
	key
	value [inuseSpace + 1]float64
}

func (s *sum) alloc(objects, bytes float64) {
	s.value[allocObjects] += objects
	s.value[allocSpace] += bytes
	s.free(-objects, -bytes)
}

func (s *sum) free(objects, bytes float64) {
	s.value[inuseObjects] -= objects
	s.value[inuseSpace] -= bytes
}

// A spaceSum describes a space whose allocation sites are sampled.
type spaceSum struct {
	rate  float64 // bytes
	truth sum     // of all objects
}

// rates finds the spaces that are sampled.
func (s *sums) rates() {
	for _, e := range s.t.Events {
		if e.Kind == trace.Mark && e.Bytes > 1 && s.t.Label(e) == trace.SiteRateLabel {
			s.spaces[e.Space] = &spaceSum{rate: float64(e.Bytes)}
		}
	}
}

func (s *sums) add(events []trace.Event) {
	type object struct {
		bytes, weight float64
		at            *sum // nil: it counts only in truth
		truth         *sum // nil: the space is not sampled
	}
	live := make(map[uint64]object)
	for _, e := range events {
		switch e.Kind {
		case trace.Alloc:
			o := object{bytes: float64(e.Bytes), weight: 1}
			if space := s.spaces[e.Space]; space != nil {
				o.truth = &space.truth
				o.truth.alloc(1, o.bytes)
				o.weight = -1 / math.Expm1(-o.bytes/space.rate)
			}
			if o.truth == nil || s.t.Label(e) != "" && e.Bytes > 0 {
				o.at = s.place(key{e.Aux, e.Space})
				o.at.alloc(o.weight, o.weight*o.bytes)
			}
			live[e.ID] = o
		case trace.Drop, trace.Free:
			o, ok := live[e.ID]
			if ok && o.at != nil {
				o.at.free(o.weight, o.weight*o.bytes)
			}
			if ok && o.truth != nil {
				o.truth.free(1, o.bytes)
			}
			delete(live, e.ID)
		}
	}
}

func (s *sums) place(k key) *sum {
	x := s.places[k]
	if x == nil {
		x = &sum{key: k}
		s.places[k] = x
		s.order = append(s.order, x)
	}
	return x
}

// finish turns the sums into samples.
func (s *sums) finish() {
	for _, x := range s.order {
		s.b.sample(cmp.Or(s.t.Label(trace.Event{Aux: x.stack}), unknown), x.space, x.value)
		if space := s.spaces[x.space]; space != nil {
			for i, v := range x.value {
				space.truth.value[i] -= v
			}
		}
	}
	for n := range 256 { // in order, so that the same trace gives the same profile
		space := s.spaces[pressure.Space(n)]
		if space == nil {
			continue
		}
		s.b.p.Period = max(s.b.p.Period, int64(space.rate))
		if rest := space.truth.value; rest[allocSpace] > 0 || rest[inuseSpace] > 0 {
			s.b.sample(unknown, pressure.Space(n), rest)
		}
	}
}
