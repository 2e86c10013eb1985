package pprof

import (
	"math"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

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

// A builder makes a profile out of samples.
type builder struct {
	p         *profile.Profile
	locations map[string]*profile.Location
	functions map[string]*profile.Function
}

func newBuilder() *builder {
	// pprof looks for the program's binary unless all names are marked as known.
	named := &profile.Mapping{ID: 1, HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	return &builder{
		p:         &profile.Profile{SampleType: types, DefaultSampleType: "inuse_space", PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 1, Mapping: []*profile.Mapping{named}},
		locations: make(map[string]*profile.Location),
		functions: make(map[string]*profile.Function),
	}
}

// sample adds one sample. An estimate that is a little below 0 counts as 0.
func (b *builder) sample(stack string, space pressure.Space, value [inuseSpace + 1]float64) {
	s := &profile.Sample{Value: make([]int64, len(types)), Label: map[string][]string{"space": {space.String()}}}
	for i, v := range value {
		s.Value[i] = int64(min(max(math.Round(v), 0), 1<<62))
	}
	for line := range strings.Lines(stack) {
		if line = strings.TrimSpace(line); line != "" {
			s.Location = append(s.Location, b.location(line))
		}
	}
	b.p.Sample = append(b.p.Sample, s)
}

// location returns the location of one line of a stack.
func (b *builder) location(line string) *profile.Location {
	l := b.locations[line]
	if l != nil {
		return l
	}
	name, place, _ := strings.Cut(line, "\t")
	name, place = recording.Plain(name), recording.Plain(place)
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
	l = &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: b.p.Mapping[0], Line: []profile.Line{{Function: f, Line: number}}}
	b.locations[line] = l
	b.p.Location = append(b.p.Location, l)
	return l
}
