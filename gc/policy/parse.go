package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// A Spec is a checked text form of a policy, from which every run makes its own. The zero value is
// never. Specs are comparable, and equal if and only if their texts are; they are safe for
// concurrent use.
type Spec struct{ text string }

// Parse reads the text form of a policy:
//
//	name[:value][,key=value]...
//
// A value without a key can only come first, and is that of the policy's first parameter.
// Parameters that are left out have their defaults. [List] gives names and parameters. The error
// for an unknown name lists the known ones, or says which import the rule needs.
func Parse(text string) (Spec, error) {
	p, err := build(text)
	if err != nil {
		return Spec{}, err
	}
	return Spec{p.String()}, nil
}

// MustParse is [Parse] for texts known to be good; it panics on others.
func MustParse(text string) Spec {
	s, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// SplitList cuts a list of texts at its commas. Since parameters are separated by commas too, a
// key=value belongs to the text before it:
//
//	never, growth:0.5,min=1%, every-sync,n=2  ->  never | growth:0.5,min=1% | every-sync:n=2
func SplitList(list string) []string {
	var texts []string
	for piece := range strings.SplitSeq(list, ",") {
		piece = strings.TrimSpace(piece)
		name, _, isParam := strings.Cut(piece, "=")
		if !isParam || len(texts) == 0 || strings.Contains(name, ":") {
			texts = append(texts, piece)
			continue
		}
		last, separator := &texts[len(texts)-1], ","
		if !strings.Contains(*last, ":") {
			separator = ":"
		}
		*last += separator + piece
	}
	return texts
}

// String returns the canonical text: headline parameters first and bare, then the others that
// differ from their defaults.
func (s Spec) String() string {
	if s.text == "" {
		return "never"
	}
	return s.text
}

// New returns a fresh policy. It has the form of the func() Policy that runs ask for: pass
// spec.New.
func (s Spec) New() Policy {
	p, err := build(s.String())
	if err != nil {
		panic(err) // the text was checked when the Spec was made
	}
	return p
}

// build makes the policy that text describes.
func build(text string) (Policy, error) {
	name, args, hasArgs := strings.Cut(text, ":")
	rows := table()
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return nil, unknown(name, rows)
	}
	var list []string
	if hasArgs {
		list = strings.Split(args, ",")
	}
	p := rows[i].make()
	if err := param.Read(paramsOf(p), list...); err != nil {
		return nil, fmt.Errorf("policy: %s: %w", name, err)
	}
	return p, nil
}

// unknown returns the error for a name that is not in the table.
func unknown(name string, rows []row) error {
	if name != "" && strings.Contains(compared, " "+name+" ") {
		return fmt.Errorf("policy: %s is a rule for studies: import _ %q", name, comparators)
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return fmt.Errorf("policy: unknown policy %q (there are %s)", name, strings.Join(names, ", "))
}
