package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Param describes one parameter of a policy's text form.
type Param struct {
	Name     string // the key in key=value
	Default  string // text of the default
	Values   string // its values, with unit and range
	Doc      string // its effect, in a line
	Headline bool   // always written, first and without its key: threshold:0.8

	reset func()             // put the default into the policy's field
	set   func(string) error // read text into the field
	get   func() string      // write the field as text
}

// A kind is one type of parameter: how to read and to write it, and its range.
type kind[T any] struct {
	values string
	parse  func(string) (T, error)
	format func(T) string
}

// bind ties a parameter to the field of a policy.
func bind[T any](field *T, name string, def T, k kind[T], doc string) Param {
	return Param{
		Name: name, Default: k.format(def), Values: k.values, Doc: doc,
		reset: func() { *field = def },
		set: func(text string) error {
			v, err := k.parse(text)
			if err != nil {
				return fmt.Errorf("%q is not %s", text, k.values)
			}
			*field = v
			return nil
		},
		get: func() string { return k.format(*field) },
	}
}

// headline marks the parameter that names the policy's variant in tables.
func headline(p Param) Param {
	p.Headline = true
	return p
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

// numberKind is a float64 within [min, max].
func numberKind(min, max float64) kind[float64] {
	return kind[float64]{
		values: "a number from " + formatFloat(min) + " to " + formatFloat(max),
		parse:  within(parseFloat, func(v float64) bool { return v >= min && v <= max }), // NaN fails as well
		format: formatFloat,
	}
}

// percentKind is a share from 0 to 1, written in percent.
func percentKind() kind[float64] {
	return kind[float64]{
		values: "a share such as 2%",
		parse: within(func(text string) (float64, error) {
			digits, ok := strings.CutSuffix(text, "%")
			if !ok {
				return 0, errRange
			}
			v, err := parseFloat(digits)
			return v / 100, err
		}, func(v float64) bool { return v >= 0 && v <= 1 }),
		format: func(v float64) string { return formatFloat(v*100) + "%" },
	}
}

// integerKind is an int64 within [min, max].
func integerKind(min, max int64) kind[int64] {
	values := fmt.Sprintf("an integer from %d to %d", min, max)
	if max == math.MaxInt64 {
		values = fmt.Sprintf("an integer from %d", min)
	}
	return kind[int64]{
		values: values,
		parse: within(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) },
			func(v int64) bool { return v >= min && v <= max }),
		format: func(v int64) string { return strconv.FormatInt(v, 10) },
	}
}

// boolKind is a bool, written true or false.
func boolKind() kind[bool] {
	return kind[bool]{values: "true or false", parse: strconv.ParseBool, format: strconv.FormatBool}
}

// durationKind is a time.Duration of at least 1 ns, in Go's text form.
func durationKind() kind[time.Duration] {
	return kind[time.Duration]{
		values: "a duration such as 10ms",
		parse:  within(time.ParseDuration, func(v time.Duration) bool { return v > 0 }),
		format: time.Duration.String,
	}
}

// waitKind is a time.Duration of at least 0.
func waitKind() kind[time.Duration] {
	k := durationKind()
	k.values += ", or 0s"
	k.parse = within(time.ParseDuration, func(v time.Duration) bool { return v >= 0 })
	return k
}

// A size is an amount of memory: Percent of the limit if both are known, else
// Bytes. The percentage is what makes a constant from another collector usable
// on a device a thousand times larger than the heap it was chosen for.
type size pressure.Limit

// Of returns the size in bytes under a limit (0 = none known).
func (s size) Of(limit int64) int64 {
	if s.Percent > 0 && limit > 0 {
		return toBytes(s.Percent / 100 * float64(limit))
	}
	return s.Bytes
}

// String returns the form that [pressure.ParseLimit] reads: 64MiB, 1500B or 2%.
func (s size) String() string { return pressure.Limit(s).String() }

// sizeKind is a size above 0; a percentage of the limit falls back on the
// default's bytes as long as no limit is known.
func sizeKind(fallback int64) kind[size] {
	return kind[size]{
		values: "a size such as 64MiB, or 1% of the limit",
		parse:  func(text string) (size, error) { return parseSize(text, fallback) },
		format: size.String,
	}
}

// bytesKind is a number of bytes above 0, with its unit.
func bytesKind() kind[int64] {
	return kind[int64]{
		values: "a size such as 64MiB",
		parse: func(text string) (int64, error) {
			v, err := parseSize(text, 0)
			if v.Percent > 0 {
				err = errRange
			}
			return v.Bytes, err
		},
		format: func(v int64) string { return size{Bytes: v}.String() },
	}
}

func parseSize(text string, fallback int64) (size, error) {
	l, err := pressure.ParseLimit(text)
	switch {
	case l.Percent > 0:
		l.Bytes = fallback
	case err == nil && l.Bytes == 0:
		err = errRange
	}
	return size(l), err
}
