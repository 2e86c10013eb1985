package gc

import "math"

// A PolicyInfo describes one policy that [Parse] knows, for help texts and
// tables.
type PolicyInfo struct {
	Name   string  // what Parse calls it
	Doc    string  // what it does, in a line
	Source string  // whose rule it is; empty if it is a control or our own
	Scaled string  // the variant for memory far larger than the rule was made for; empty if it needs none
	Params []Param // in order; the first may be given without its key
}

// Policies lists every policy, in the order in which tables show them. The
// result is the caller's.
func Policies() []PolicyInfo {
	list := make([]PolicyInfo, len(policyTable))
	for i, r := range policyTable {
		list[i] = PolicyInfo{Name: r.name, Doc: r.doc, Source: r.source, Scaled: r.scaled, Params: r.make().params()}
	}
	return list
}

// A configurable is a policy that Parse can make.
type configurable interface {
	Policy
	params() []Param // bound to the policy's fields; the first may come without its key
}

// noParams is for policies without parameters.
type noParams struct{}

func (noParams) params() []Param { return nil }

// A blocking is what policies share whose rule holds the caller for each cycle,
// because their collector does. Ours does not have to.
type blocking struct {
	Overlap bool // run the cycles beside the program: the same rule without its pauses
}

func (b *blocking) overlapParam() Param {
	return bind(&b.Overlap, "overlap", false, boolKind(), "run the cycle beside the program instead of holding it")
}

// action is Block, or Overlap, of which one runs at a time.
func (b *blocking) action(at Point) Action {
	switch {
	case !b.Overlap:
		return Block
	case at.Running:
		return Skip
	}
	return Overlap
}

// policyTable is the one list of policies: controls first, then comparators.
var policyTable = []struct {
	name, doc, source, scaled string
	make                      func() configurable
}{
	{"never", "leaves everything to the refusal ladder", "", "", func() configurable { return new(Never) }},
	{"always", "a blocking cycle at every sync point: makes recordings exact", "", "", func() configurable { return new(Always) }},
	{"every-sync", "a blocking cycle at every nth sync point", "gotorch, Flux", "", func() configurable { return new(EverySync) }},
	{"periodic", "a blocking cycle each time a period has passed", "", "", func() configurable { return new(Periodic) }},
	{"random", "a blocking cycle at points drawn by lot", "", "", func() configurable { return new(Random) }},
	{"threshold", "a blocking cycle whenever pressure has reached a ratio", "", "", func() configurable { return new(Threshold) }},
	{"cudajl", "pressure, past yield and a bound on collector time; more eager where the caller waits", "CUDA.jl 5.4", "", func() configurable { return new(CUDAjl) }},
	{"autopacer", "every step if steps are long, else as often as a share of time allows", "Flux", "", func() configurable { return new(AutoPacer) }},
	{"rtorch", "when the cache has no room and a fifth of the device is taken", "R torch", "", func() configurable { return new(RTorch) }},
	{"opencl", "above a mark, until collecting proves futile; always above a second mark", "R OpenCL", "", func() configurable { return new(OpenCL) }},
	{"softmax", "above a soft maximum that grows when much was reachable", "Lua torch", "softmax:max=25%", func() configurable { return new(Softmax) }},
	{"growth", "when live bytes have grown by a factor since the last cycle", "Go's GOGC", "growth:1,min=1%", func() configurable { return new(Growth) }},
	{"erlang", "when a virtual heap is full; it grows and shrinks with what is reachable", "Erlang/OTP", "erlang:min=1%", func() configurable { return new(Erlang) }},
	{"sqrt", "at the headroom whose price equals the collector time that it saves", "MemBalancer, V8", "", func() configurable { return new(Sqrt) }},
	{"v8step", "after a fixed growth beside the program, after a large one blocking", "V8", "v8step:soft=1%", func() configurable { return new(V8Step) }},
	{"dotnet", "after a budget of new bytes that grows when cycles free little; at most a fifth of the time", ".NET", "dotnet:budget=0.4%", func() configurable { return new(Dotnet) }},
	{"art", "when new bytes weigh more than the heap's free part; blocking when falling behind", "Android ART", "art:free=1%,stop=25%", func() configurable { return new(ART) }},
	{"pacer", "beside the program, so as to end just before headroom does, where it frees the most for its pause", "", "", func() configurable { return new(Pacer) }},
	{"gomemlimit", "a model of Go's pacer under a memory limit steered by headroom", "Go 1.26", "", func() configurable { return new(GoMemLimit) }},
}

func newPolicy(name string) configurable {
	for _, r := range policyTable {
		if r.name == name {
			return r.make()
		}
	}
	return nil
}

func policyNames() []string {
	names := make([]string, len(policyTable))
	for i, r := range policyTable {
		names[i] = r.name
	}
	return names
}

// granted is what will be live once the request has been granted.
func granted(at *Point) int64 { return at.Sample.Live + at.Request }

// startCycle answers with a cycle beside the program, or with a blocking one. One
// cycle runs at a time. After its end the policy is asked again.
func startCycle(at Point, overlap bool, reason string) Decision {
	switch {
	case !overlap:
		return Decision{Action: Block, Reason: reason}
	case at.Running:
		return Decision{Wake: math.MaxInt64, Reason: "cycle under way"}
	}
	return Decision{Action: Overlap, Wake: math.MaxInt64, Reason: reason}
}

// wakeBelow returns a Wake that is below bytes even if bytes was rounded up on
// the way here. It is 0, which is to ask always, if there is no such number.
func wakeBelow(bytes float64) int64 { return toBytes(bytes - 1 - bytes*0x1p-50) }

const miB = 1 << 20

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
