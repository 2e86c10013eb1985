// Package param is the text form of a policy's parameters: key=value, each bound to a field.
package param

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Param describes one parameter.
type Param struct {
	Name     string // the key in key=value
	Default  string // text of the default
	Values   string // its values, with unit and range
	Doc      string // its effect, in a line
	Headline bool   // always written, first and without its key: threshold:0.8

	set func(string) error // reads text into the field
	get func() string      // writes the field as text
}

// A Kind is one type of parameter: its range, and how to read and write it.
type Kind[T any] struct {
	values string
	parse  func(string) (T, error)
	format func(T) string
}

// Bind ties a parameter to a field.
func Bind[T any](field *T, name string, def T, k Kind[T], doc string) Param {
	return Param{
		Name: name, Default: k.format(def), Values: k.values, Doc: doc,
		set: func(text string) error {
			v, err := k.parse(text)
			if err != nil {
				return fmt.Errorf("%s: %q is not %s", name, text, k.values)
			}
			*field = v
			return nil
		},
		get: func() string { return k.format(*field) },
	}
}

// Headline marks the parameter that names the policy's variant in tables.
func Headline(p Param) Param {
	p.Headline = true
	return p
}

// Read sets all parameters: to the values of a list such as "0.5,min=1%", and the others to their
// defaults. The first value may come without its key.
func Read(params []Param, list ...string) error {
	for _, p := range params {
		if err := p.set(p.Default); err != nil {
			return err
		}
	}
	given := make(map[string]bool, len(params))
	for i, arg := range list {
		key, value, hasKey := strings.Cut(arg, "=")
		if !hasKey && i == 0 && len(params) > 0 {
			key, value = params[0].Name, arg
		} else if !hasKey {
			return fmt.Errorf("want key=value, got %q", arg)
		}
		if err := assign(params, key, value); err != nil {
			return err
		}
		if given[key] {
			return fmt.Errorf("parameter %s given twice", key)
		}
		given[key] = true
	}
	return nil
}

func assign(params []Param, key, value string) error {
	if len(params) == 0 {
		return fmt.Errorf("unknown parameter %q (it has none)", key)
	}
	names := make([]string, len(params))
	for i, p := range params {
		if p.Name == key {
			return p.set(value)
		}
		names[i] = p.Name
	}
	return fmt.Errorf("unknown parameter %q (there are %s)", key, strings.Join(names, ", "))
}

// Text returns the canonical text of a policy: its name, headline parameters without their keys,
// and then the others that differ from their defaults.
func Text(name string, params []Param) string {
	var args []string
	for _, p := range params {
		switch text := p.get(); {
		case p.Headline:
			args = append(args, text)
		case text != p.Default:
			args = append(args, p.Name+"="+text)
		}
	}
	if args == nil {
		return name
	}
	return name + ":" + strings.Join(args, ",")
}

var errRange = errors.New("out of range")

// within adds a range to a parser.
func within[T any](parse func(string) (T, error), ok func(T) bool) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		if err == nil && !ok(v) {
			err = errRange
		}
		return v, err
	}
}

func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	return v + 0, err // -0 becomes 0
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Number is a float64 from least to most.
func Number(least, most float64) Kind[float64] {
	return Kind[float64]{
		values: "a number from " + formatFloat(least) + " to " + formatFloat(most),
		parse:  within(parseFloat, func(v float64) bool { return v >= least && v <= most }), // NaN fails as well
		format: formatFloat,
	}
}

// Percent is a share from 0 to 1, written in percent.
func Percent() Kind[float64] {
	return Kind[float64]{
		values: "a share such as 2%",
		parse: within(func(text string) (float64, error) {
			digits, ok := strings.CutSuffix(text, "%")
			if !ok {
				return 0, errRange
			}
			v, err := parseFloat(digits)
			return v / 100, err
		}, func(v float64) bool { return v >= 0 && v <= 1 }),
		format: func(v float64) string {
			if short := math.Round(v*1e14) / 1e12; short/100 == v { // not 7.000000000000001
				return formatFloat(short) + "%"
			}
			return formatFloat(v*100) + "%"
		},
	}
}

// Integer is an int64 that is not below least.
func Integer(least int64) Kind[int64] {
	return Kind[int64]{
		values: fmt.Sprintf("an integer from %d", least),
		parse:  within(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }, func(v int64) bool { return v >= least }),
		format: func(v int64) string { return strconv.FormatInt(v, 10) },
	}
}

// Bool is true or false.
func Bool() Kind[bool] {
	return Kind[bool]{values: "true or false", parse: strconv.ParseBool, format: strconv.FormatBool}
}

// Overlap is a parameter of rules that hold the caller for each cycle. It makes the rule run its
// cycles beside the program instead.
func Overlap(field *bool) Param {
	return Bind(field, "overlap", false, Bool(), "run the cycle beside the program instead of holding it")
}

// Duration is a time of at least 1 ns, in Go's text form.
func Duration() Kind[time.Duration] {
	return Kind[time.Duration]{
		values: "a duration such as 10ms",
		parse:  within(time.ParseDuration, func(v time.Duration) bool { return v > 0 }),
		format: time.Duration.String,
	}
}

// Wait is a time of at least 0.
func Wait() Kind[time.Duration] {
	k := Duration()
	k.values += ", or 0s"
	k.parse = within(time.ParseDuration, func(v time.Duration) bool { return v >= 0 })
	return k
}

// A Size is an amount of memory: Percent of the limit if both are known, else Bytes. The percentage
// makes a constant from another collector usable on a device that is a thousand times larger than
// the heap it was chosen for.
type Size pressure.Limit

// Of returns the size in bytes under a limit (0 = none known).
func (s Size) Of(limit int64) int64 {
	if s.Percent > 0 && limit > 0 {
		return Bytes(s.Percent / 100 * float64(limit))
	}
	return s.Bytes
}

// String returns the form that [pressure.ParseLimit] reads: 64MiB, 1500B or 2%.
func (s Size) String() string { return pressure.Limit(s).String() }

// SizeOr is a size above 0. Where no limit is known, a percentage of it is fallback bytes.
func SizeOr(fallback int64) Kind[Size] {
	return Kind[Size]{
		values: "a size such as 64MiB, or 1% of the limit",
		parse: func(text string) (Size, error) {
			l, err := pressure.ParseLimit(text)
			switch {
			case l.Percent > 0:
				l.Bytes = fallback
			case err == nil && l.Bytes == 0:
				err = errRange
			}
			return Size(l), err
		},
		format: Size.String,
	}
}

// Bytes rounds down, to within 0 and the largest int64; NaN is 0.
func Bytes(bytes float64) int64 {
	switch {
	case !(bytes > 0):
		return 0
	case bytes >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(bytes)
}
