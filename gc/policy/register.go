package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// An Info describes one policy that [Parse] knows, for help texts and tables.
type Info struct {
	Name   string  // what Parse calls it
	Doc    string  // the rule, in a line
	Source string  // the system that has this rule; empty for controls, our own rules and yours
	Scaled string  // the variant for memory far larger than the rule was made for; empty if not needed
	Params []Param // in order; the first may be given without its key
}

// A Param describes one parameter of a policy's text form.
type Param = param.Param

// List describes every policy, in the order in which tables show them: controls, the rules of
// others, ours, and then those of [Register]. The result is the caller's. It is safe for concurrent
// use.
func List() []Info {
	rows := table()
	list := make([]Info, len(rows))
	for i, r := range rows {
		list[i] = Info{Name: r.name, Doc: r.doc, Source: r.source, Scaled: r.scaled, Params: paramsOf(r.make())}
	}
	return list
}

// Register makes your own policy known by name: to [Parse], and so to every command and table. Doc
// is the rule in a line. Each call of fresh makes a new policy, whose String is the name. A name
// consists of lower-case letters, digits and dashes, and begins with a letter. Register panics if
// the name is malformed or taken, or if it is not the String of the policy. Call it from an init
// function or from main, before the first Parse of the name. It is safe for concurrent use.
func Register(name, doc string, fresh func() Policy) {
	RegisterInfo(Info{Name: name, Doc: doc}, fresh)
}

// RegisterInfo is [Register] for a policy with a Source or a Scaled form. If the policy has a
// method Params() []Param, these are its parameters, and its String is [param.Text]. The Params of
// the Info are ignored.
func RegisterInfo(info Info, fresh func() Policy) {
	name := info.Name
	switch {
	case !goodName(name):
		panic(fmt.Sprintf("policy: Register: %q is no name: want lower-case letters, digits and dashes, a letter first", name))
	case info.Doc == "" || fresh == nil:
		panic(fmt.Sprintf("policy: Register(%q): want a line of documentation, and a function", name))
	}
	p := fresh()
	if p == nil {
		panic(fmt.Sprintf("policy: Register(%q): the function returns nil", name))
	}
	if text, _, _ := strings.Cut(p.String(), ":"); text != name {
		panic(fmt.Sprintf("policy: Register(%q): the policy's String is %q; it has to be the name", name, text))
	}
	registered.mu.Lock()
	defer registered.mu.Unlock()
	for _, r := range slices.Concat(builtin, registered.rows) {
		if r.name == name {
			panic(fmt.Sprintf("policy: Register(%q): the name is taken", name))
		}
	}
	registered.rows = append(registered.rows, row{name, info.Doc, info.Source, info.Scaled, fresh})
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

// table returns all policies.
func table() []row {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	return slices.Concat(builtin, registered.rows)
}

// paramsOf returns the parameters of a policy.
func paramsOf(p Policy) []Param {
	if c, ok := p.(interface{ Params() []Param }); ok {
		return c.Params()
	}
	return nil
}

// A blocking is the common part of rules that hold the caller for each cycle, as their collectors
// do.
type blocking struct {
	Overlap bool // run the cycles beside the program: the same rule without its pauses
}

// action is Block, or Overlap unless a cycle is under way.
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
	{"threshold", "a blocking cycle whenever pressure has reached a ratio", "", "", func() Policy { return new(threshold) }},
	{"cudajl", "pressure, past yield and a bound on collector time; more eager where the caller waits", "CUDA.jl 6", "", func() Policy { return new(cudajl) }},
	{"growth", "when live bytes have grown by a factor since the last cycle", "Go's GOGC", "growth:1,min=1%", func() Policy { return new(growth) }},
	{"sqrt", "at the headroom whose price equals the collector time that it saves", "MemBalancer, V8", "", func() Policy { return new(sqrt) }},
	{"pacer", "beside the program, so as to end just before headroom does, where it frees the most for its pause", "", "", func() Policy { return new(pacer) }},
	{"host", "at the headroom that a price of memory grants, or sooner while cycles take less than a share of processor time", "", "", func() Policy { return new(host) }},
}

// Rules that only studies want are not linked into a program that does not import them.
const (
	comparators = "github.com/eagergc/eagergc/cmd/replay/comparators"
	compared    = " art autopacer cpucontrol cpython dotnet eve gomemlimit imgproxy nemo ocaml opencl oxcaml rtorch torchtitan v8 v8step "
)

// granted is the live bytes once the request has been granted.
func granted(at *Point) int64 { return at.Sample.Live + at.Request }

// startCycle answers with a cycle beside the program, or with a blocking one. The policy is asked
// again after its end.
func startCycle(at Point, overlap bool, reason string) Decision {
	switch {
	case !overlap:
		return Decision{Action: Block, Reason: reason}
	case at.Running:
		return Decision{Wake: math.MaxInt64, Reason: "cycle under way"}
	}
	return Decision{Action: Overlap, Wake: math.MaxInt64, Reason: reason}
}

// wakeBelow returns a Wake that is below bytes even if bytes was rounded up before. It is 0, which
// means always, if no such number exists.
func wakeBelow(bytes float64) int64 { return toBytes(bytes - 1 - bytes*0x1p-50) }

const miB = 1 << 20

func toBytes(bytes float64) int64 { return param.Bytes(bytes) }
