// Package pprof answers "who holds the memory" with the tools of Go profiles: it
// turns a trace into a profile for go tool pprof, by the sites of allocations.
//
// A site is the label of an Alloc event: function names, one a line, the innermost
// first. A name may be followed by a tab and a place, FILE:LINE. Objects without a
// label are at "(unknown)".
//
// The profile has the sample types of Go's heap profiles: alloc_objects and
// alloc_space of all objects so far, inuse_objects and inuse_space of those that
// are reachable at the moment of the profile. Samples are labelled with their
// space, so that -tagfocus=device0 picks one.
package pprof

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// AtPeak is the moment at which the most bytes are reachable.
const AtPeak = time.Duration(-1)

const unknown = "(unknown)"

// Write writes the profile of t at a moment of it, or [AtPeak], packed with gzip
// as go tool pprof reads it. The trace must be valid: see [trace.Trace.Validate].
func Write(w io.Writer, t *trace.Trace, at time.Duration) error {
	if err := Profile(t, at).Write(w); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return nil
}

// Profile returns what [Write] writes.
func Profile(t *trace.Trace, at time.Duration) *profile.Profile {
	last := len(t.Events)
	if at == AtPeak {
		last = peak(t)
	} else {
		for last > 0 && t.Events[last-1].Time > int64(at) {
			last--
		}
	}
	b := builder{
		p:         &profile.Profile{SampleType: types, DefaultSampleType: "inuse_space", PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 1},
		samples:   make(map[key]*profile.Sample),
		locations: make(map[string]*profile.Location),
		functions: make(map[string]*profile.Function),
	}
	b.add(t, t.Events[:last])
	if last > 0 {
		b.p.DurationNanos = t.Events[last-1].Time
	}
	if !t.Start.IsZero() {
		b.p.TimeNanos = t.Start.UnixNano() + b.p.DurationNanos
	}
	if t.Name != "" {
		b.p.Comments = append(b.p.Comments, t.Name)
	}
	return b.p
}

// Sample values, as in Go's heap profiles.
const (
	allocObjects = iota
	allocSpace
	inuseObjects
	inuseSpace
)

var types = []*profile.ValueType{
	allocObjects: {Type: "alloc_objects", Unit: "count"},
	allocSpace:   {Type: "alloc_space", Unit: "bytes"},
	inuseObjects: {Type: "inuse_objects", Unit: "count"},
	inuseSpace:   {Type: "inuse_space", Unit: "bytes"},
}

// peak returns how many events there are up to the peak of reachable bytes.
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
	site  uint32 // a label
	space pressure.Space
}

type builder struct {
	p         *profile.Profile
	samples   map[key]*profile.Sample
	locations map[string]*profile.Location
	functions map[string]*profile.Function
}

// add counts events. Samples are in the order of their first allocation.
func (b *builder) add(t *trace.Trace, events []trace.Event) {
	type object struct {
		bytes int64
		at    *profile.Sample
	}
	live := make(map[uint64]object)
	for _, e := range events {
		switch e.Kind {
		case trace.Alloc:
			s := b.sample(t, e)
			live[e.ID] = object{e.Bytes, s}
			s.Value[allocObjects]++
			s.Value[allocSpace] += e.Bytes
			s.Value[inuseObjects]++
			s.Value[inuseSpace] += e.Bytes
		case trace.Drop, trace.Free:
			if o, ok := live[e.ID]; ok {
				o.at.Value[inuseObjects]--
				o.at.Value[inuseSpace] -= o.bytes
				delete(live, e.ID)
			}
		}
	}
}

// sample returns the sample that the object of an Alloc counts in.
func (b *builder) sample(t *trace.Trace, e trace.Event) *profile.Sample {
	k := key{e.Aux, e.Space}
	s := b.samples[k]
	if s != nil {
		return s
	}
	s = &profile.Sample{Value: make([]int64, len(types)), Label: map[string][]string{"space": {e.Space.String()}}}
	site := t.Label(e)
	if site == "" {
		site = unknown
	}
	for line := range strings.Lines(site) {
		if line = strings.TrimSpace(line); line != "" {
			s.Location = append(s.Location, b.location(line))
		}
	}
	b.samples[k] = s
	b.p.Sample = append(b.p.Sample, s)
	return s
}

// location returns that of one line of a site.
func (b *builder) location(line string) *profile.Location {
	l := b.locations[line]
	if l != nil {
		return l
	}
	name, place, _ := strings.Cut(line, "\t")
	file, number := place, int64(0)
	if i := strings.LastIndexByte(place, ':'); i >= 0 {
		if n, err := strconv.ParseInt(place[i+1:], 10, 32); err == nil && n >= 0 {
			file, number = place[:i], n
		}
	}
	f := b.functions[name+"\t"+file]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.functions[name+"\t"+file] = f
		b.p.Function = append(b.p.Function, f)
	}
	l = &profile.Location{ID: uint64(len(b.p.Location) + 1), Line: []profile.Line{{Function: f, Line: number}}}
	b.locations[line] = l
	b.p.Location = append(b.p.Location, l)
	return l
}
