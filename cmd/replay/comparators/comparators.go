// Package comparators holds the rules of other collectors, and of programs that collect by hand,
// for comparison. [policy.Parse] knows their names in a program that imports the package. Each
// type's comment states the rule, its source, and the differences of the copy. All copies share two
// of them: every cycle is a full one, and of the Go heap a rule knows only [policy.Point]'s Heap.
package comparators

import "github.com/eagergc/eagergc/gc/policy"

func init() {
	for _, r := range []struct {
		name, doc, source, scaled string
		fresh                     func() policy.Policy
	}{
		{"autopacer", "every step if steps are long, else as often as a share of time allows", "Flux", "", func() policy.Policy { return new(autoPacer) }},
		{"rtorch", "when the cache has no room and a fifth of the device is taken", "R torch", "", func() policy.Policy { return new(rtorch) }},
		{"opencl", "above a mark, until collecting proves futile; always above a second mark", "R OpenCL", "", func() policy.Policy { return new(openCL) }},
		{"cpucontrol", "when the heap is full; it grows while cycles take more than a share of processor time, and shrinks while less", "ZGC (MPLR'23), Ruby MMTk", "cpucontrol:min=1%", func() policy.Policy { return new(cpuControl) }},
		{"v8step", "after a fixed growth beside the program, after a large one blocking", "V8 before 14.8", "v8step:soft=1%", func() policy.Policy { return new(v8step) }},
		{"dotnet", "after a budget of new bytes that grows when cycles free little; at most a fifth of the time", ".NET", "dotnet:budget=0.4%", func() policy.Policy { return new(dotnet) }},
		{"art", "when new bytes weigh more than the heap's free part; blocking when falling behind", "Android ART", "art:free=1%,stop=25%", func() policy.Policy { return new(art) }},
		{"gomemlimit", "a model of Go's pacer under a memory limit steered by headroom", "Go 1.26", "", func() policy.Policy { return new(goMemLimit) }},
		{"v8", "above what the last cycle left, by a tenth of the external bytes and a share of the Go heap", "V8", "", func() policy.Policy { return new(v8) }},
		{"ocaml", "after so many new bytes as a third of the Go heap", "OCaml 5", "", func() policy.Policy { return new(ocaml) }},
		{"oxcaml", "after so many new bytes as are worth the work of a cycle", "OxCaml", "", func() policy.Policy { return new(oxcaml) }},
		{"cpython", "after many allocations, if those since the last cycle are a quarter of the old ones", "CPython", "", func() policy.Policy { return new(cpython) }},
		{"imgproxy", "every ten seconds beside the program", "imgproxy", "", func() policy.Policy { return new(imgproxy) }},
		{"eve", "on memory pressure, ten seconds apart, after some growth", "EVE", "", func() policy.Policy { return new(eve) }},
		{"torchtitan", "a blocking cycle at every 50th step", "torchtitan", "", func() policy.Policy { return &steps{name: "torchtitan", usual: 50} }},
		{"nemo", "a blocking cycle at every 100th step", "NeMo", "", func() policy.Policy { return &steps{name: "nemo", usual: 100} }},
	} {
		policy.RegisterInfo(policy.Info{Name: r.name, Doc: r.doc, Source: r.source, Scaled: r.scaled}, r.fresh)
	}
}

// A blocking is the common part of rules that hold the caller for each cycle, as their collectors
// do.
type blocking struct {
	Overlap bool // run the cycles beside the program: the same rule without its pauses
}

// action is Block, or Overlap unless a cycle is under way.
func (b *blocking) action(at policy.Point) policy.Action {
	switch {
	case !b.Overlap:
		return policy.Block
	case at.Running:
		return policy.Skip
	}
	return policy.Overlap
}

// overlap starts a cycle beside the program, unless one is under way.
func overlap(at *policy.Point, reason string) policy.Decision {
	if at.Running {
		return policy.Decision{Reason: "cycle under way"}
	}
	return policy.Decision{Action: policy.Overlap, Reason: reason}
}

// granted is the live bytes once the request has been granted.
func granted(at *policy.Point) int64 { return at.Sample.Live + at.Request }

const miB = 1 << 20

// smooth folds a new value into an average that keeps a share of the old one. An average of 0 has
// seen nothing.
func smooth(average, value, keep float64) float64 {
	if average == 0 {
		return value
	}
	return keep*average + (1-keep)*value
}
