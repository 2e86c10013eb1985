package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A Spec is a checked text form of a policy, from which every run makes its
// own. The zero value is never. Specs are comparable, and equal if and only if
// their texts are; they are safe for concurrent use.
type Spec struct{ text string }

// Parse reads the text form of a policy:
//
//	name[:value][,key=value]...
//
// A value without a key, which can only come first, is that of the policy's
// first parameter. Parameters left out have their defaults. [List] gives
// names and parameters. The error for an unknown name ends with those that
// exist.
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

// SplitList cuts a list of texts at its commas. Since parameters are separated
// by commas too, a key=value belongs to the text before it:
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

// String returns the canonical text: headline parameters first and bare, then
// the others that differ from their defaults.
func (s Spec) String() string {
	if s.text == "" {
		return "never"
	}
	return s.text
}

// New returns a fresh policy. It has the form of the func() Policy that runs
// ask for: pass spec.New.
func (s Spec) New() Policy {
	p, err := build(s.String())
	if err != nil {
		panic(err) // the text was checked when the Spec was made
	}
	return p
}

// MarshalText returns the canonical text.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is [Parse].
func (s *Spec) UnmarshalText(text []byte) (err error) {
	*s, err = Parse(string(text))
	return err
}

// build makes the policy that text describes.
func build(text string) (Policy, error) {
	name, args, hasArgs := strings.Cut(text, ":")
	rows := table()
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		names := make([]string, len(rows))
		for i, r := range rows {
			names[i] = r.name
		}
		return nil, fmt.Errorf("policy: unknown policy %q (there are %s)", name, strings.Join(names, ", "))
	}
	p := rows[i].make()
	params := paramsOf(p)
	for _, q := range params {
		q.reset()
	}
	if !hasArgs {
		return p, nil
	}
	given := make(map[string]bool, len(params))
	for i, arg := range strings.Split(args, ",") {
		key, value, hasKey := strings.Cut(arg, "=")
		if !hasKey && i == 0 && len(params) > 0 {
			key, value = params[0].Name, arg
		} else if !hasKey {
			return nil, fmt.Errorf("policy: %s: want key=value, got %q", name, arg)
		}
		if err := assign(params, key, value); err != nil {
			return nil, fmt.Errorf("policy: %s: %w", name, err)
		}
		if given[key] {
			return nil, fmt.Errorf("policy: %s: parameter %s given twice", name, key)
		}
		given[key] = true
	}
	return p, nil
}

// assign sets the parameter called key.
func assign(params []Param, key, value string) error {
	if len(params) == 0 {
		return fmt.Errorf("unknown parameter %q (it has none)", key)
	}
	names := make([]string, len(params))
	for i, q := range params {
		if q.Name == key {
			if err := q.set(value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			return nil
		}
		names[i] = q.Name
	}
	return fmt.Errorf("unknown parameter %q (there are %s)", key, strings.Join(names, ", "))
}

// textOf writes the canonical form of a policy; its String method.
func textOf(name string, params []Param) string {
	var args []string
	for _, q := range params {
		switch text := q.get(); {
		case q.Headline:
			args = append(args, text)
		case text != q.Default:
			args = append(args, q.Name+"="+text)
		}
	}
	if args == nil {
		return name
	}
	return name + ":" + strings.Join(args, ",")
}
