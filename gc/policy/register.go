package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// An Info describes one policy that [Parse] knows, for help texts and tables.
type Info struct {
	Name   string  // what Parse calls it
	Doc    string  // the rule, in a line
	Source string  // whose rule it is; empty if it is a control, or our own or yours
	Scaled string  // the variant for memory far larger than the rule was made for; empty if it needs none
	Params []Param // in order; the first may be given without its key
}

// List describes every policy, in the order in which tables show them: controls, the rules of
// others, ours, and then those of [Register]. The result is the caller's. It is safe for concurrent use.
func List() []Info {
	rows := table()
	list := make([]Info, len(rows))
	for i, r := range rows {
		list[i] = Info{Name: r.name, Doc: r.doc, Source: r.source, Scaled: r.scaled, Params: paramsOf(r.make())}
	}
	return list
}

// Register makes a policy of your own known by name: to [Parse], and so to every command and
// table. Doc is the rule in a line. Each call of fresh makes a new policy, whose String is the
// name. A name consists of lower-case letters, digits and dashes, and begins with a letter. Register
// panics if it does not, if the name is taken, or if fresh makes another policy than that.
// Call it from an init function or from main, before the first Parse of the name. It is
// safe for concurrent use.
func Register(name, doc string, fresh func() Policy) {
	switch {
	case !goodName(name):
		panic(fmt.Sprintf("policy: Register: %q is no name: want lower-case letters, digits and dashes, a letter first", name))
	case doc == "" || fresh == nil:
		panic(fmt.Sprintf("policy: Register(%q): want a line of documentation, and a function", name))
	}
	p := fresh()
	if p == nil {
		panic(fmt.Sprintf("policy: Register(%q): the function returns nil", name))
	}
	if text := p.String(); text != name {
		panic(fmt.Sprintf("policy: Register(%q): the policy's String is %q; it has to be the name", name, text))
	}
	registered.mu.Lock()
	defer registered.mu.Unlock()
	for _, r := range slices.Concat(builtin, registered.rows) {
		if r.name == name {
			panic(fmt.Sprintf("policy: Register(%q): the name is taken", name))
		}
	}
	registered.rows = append(registered.rows, row{name: name, doc: doc, make: fresh})
}

func goodName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return name != "" && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"0123456789-") == ""
}

var registered struct {
	mu   sync.Mutex
	rows []row // only ever appended to
}

// A row is one policy in the table.
type row struct {
	name, doc, source, scaled string
	make                      func() Policy
}

// table is every policy that there is.
func table() []row {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	return slices.Concat(builtin, registered.rows)
}

// paramsOf are the parameters of a policy; those that are registered have none.
func paramsOf(p Policy) []Param {
	if c, ok := p.(configurable); ok {
		return c.params()
	}
	return nil
}

// A configurable is a policy with parameters.
type configurable interface {
	params() []Param // bound to the policy's fields; the first may come without its key
}

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

// builtin are the policies of this package: controls first, then the rules of others and ours.
var builtin = []row{
	{"never", "leaves everything to the refusal ladder", "", "", func() Policy { return new(never) }},
	{"always", "a blocking cycle at every sync point: makes recordings exact", "", "", func() Policy { return new(always) }},
	{"every-sync", "a blocking cycle at every nth sync point", "gotorch, Flux", "", func() Policy { return new(everySync) }},
	{"periodic", "a blocking cycle each time a period has passed", "", "", func() Policy { return new(periodic) }},
	{"random", "a blocking cycle at points drawn by lot", "", "", func() Policy { return new(random) }},
	{"threshold", "a blocking cycle whenever pressure has reached a ratio", "", "", func() Policy { return new(threshold) }},
	{"cudajl", "pressure, past yield and a bound on collector time; more eager where the caller waits", "CUDA.jl 5.4", "", func() Policy { return new(cudajl) }},
	{"autopacer", "every step if steps are long, else as often as a share of time allows", "Flux", "", func() Policy { return new(autoPacer) }},
	{"rtorch", "when the cache has no room and a fifth of the device is taken", "R torch", "", func() Policy { return new(rtorch) }},
	{"opencl", "above a mark, until collecting proves futile; always above a second mark", "R OpenCL", "", func() Policy { return new(openCL) }},
	{"softmax", "above a soft maximum that grows when much was reachable", "Lua torch", "softmax:max=25%", func() Policy { return new(softmax) }},
	{"growth", "when live bytes have grown by a factor since the last cycle", "Go's GOGC", "growth:1,min=1%", func() Policy { return new(growth) }},
	{"erlang", "when a virtual heap is full; it grows and shrinks with what is reachable", "Erlang/OTP", "erlang:min=1%", func() Policy { return new(erlang) }},
	{"sqrt", "at the headroom whose price equals the collector time that it saves", "MemBalancer, V8", "", func() Policy { return new(sqrt) }},
	{"cpucontrol", "when the heap is full; it grows while cycles take more than a share of processor time, and shrinks while less", "ZGC (MPLR'23), Ruby MMTk", "cpucontrol:min=1%", func() Policy { return new(cpuControl) }},
	{"v8step", "after a fixed growth beside the program, after a large one blocking", "V8", "v8step:soft=1%", func() Policy { return new(v8step) }},
	{"dotnet", "after a budget of new bytes that grows when cycles free little; at most a fifth of the time", ".NET", "dotnet:budget=0.4%", func() Policy { return new(dotnet) }},
	{"art", "when new bytes weigh more than the heap's free part; blocking when falling behind", "Android ART", "art:free=1%,stop=25%", func() Policy { return new(art) }},
	{"pacer", "beside the program, so as to end just before headroom does, where it frees the most for its pause", "", "", func() Policy { return new(pacer) }},
	{"host", "at the headroom that a price of memory grants, or sooner while cycles take less than a share of processor time", "", "", func() Policy { return new(host) }},
	{"gomemlimit", "a model of Go's pacer under a memory limit steered by headroom", "Go 1.26", "", func() Policy { return new(goMemLimit) }},
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
