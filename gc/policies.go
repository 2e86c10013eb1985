package gc

import "math"

// A PolicyInfo describes one policy that [Parse] knows, for help texts and
// tables.
type PolicyInfo struct {
	Name   string  // what Parse calls it
	Doc    string  // what it does, in a line
	Source string  // whose rule it is; empty if it is a control or our own
	Params []Param // in order; the first may be given without its key
}

// Policies lists every policy, in the order in which tables show them. The
// result is the caller's.
func Policies() []PolicyInfo {
	list := make([]PolicyInfo, len(registry))
	for i, r := range registry {
		list[i] = PolicyInfo{Name: r.name, Doc: r.doc, Source: r.source, Params: r.make().params()}
	}
	return list
}

// A configurable is a policy that Parse can make.
type configurable interface {
	Policy
	params() []Param // bound to the policy's fields; the first may come without its key
}

// none is for policies without parameters.
type none struct{}

func (none) params() []Param { return nil }

// registry is the one table of policies: controls first, then comparators.
var registry = []struct {
	name, doc, source string
	make              func() configurable
}{
	{"never", "leaves everything to the refusal ladder", "", func() configurable { return new(Never) }},
	{"always", "a blocking cycle at every sync point: makes recordings exact", "", func() configurable { return new(Always) }},
	{"periodic", "a blocking cycle each time a period has passed", "", func() configurable { return new(Periodic) }},
	{"threshold", "a blocking cycle whenever pressure has reached a ratio", "", func() configurable { return new(Threshold) }},
	{"cudajl", "pressure, past yield and a bound on collector time; more eager where the caller waits", "CUDA.jl 5.4", func() configurable { return new(CUDAjl) }},
}

func newPolicy(name string) configurable {
	for _, r := range registry {
		if r.name == name {
			return r.make()
		}
	}
	return nil
}

func policyNames() []string {
	names := make([]string, len(registry))
	for i, r := range registry {
		names[i] = r.name
	}
	return names
}

// asks reports whether a point is one at which the published rules decide:
// an allocation or a sync point. After a refusal the ladder acts, and the end
// of a cycle is no place to start another.
func asks(at Point) bool { return at.At == Allocation || at.At == Sync }

// wakeBelow returns a Wake that is certainly below bytes, whatever was rounded
// on the way to it; 0, always ask, if there is no such place.
func wakeBelow(bytes float64) int64 { return toBytes(bytes - 1 - bytes*0x1p-50) }

// toBytes rounds down, to within 0 and the largest int64; NaN is 0.
func toBytes(bytes float64) int64 {
	switch {
	case !(bytes > 0):
		return 0
	case bytes >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(bytes)
}
