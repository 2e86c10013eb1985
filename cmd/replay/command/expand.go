package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxExpansion is how many texts one text may expand to, so that a range with a
// typing error does not fill the memory.
const maxExpansion = 100_000

// expand replaces every pair of braces in text by each of its values:
//
//	{a|b|c}      these
//	{0.5..0.9/5} five values from 0.5 to 0.9, evenly spaced
//	{1ms..1s*7}  seven values from 1ms to 1s, evenly spaced in their logarithm
//
// The ends of a range are durations, or numbers with the same unit behind them
// (1.1x, 64MiB, 5%).
func expand(text string) ([]string, error) {
	open := strings.IndexByte(text, '{')
	if open < 0 {
		return []string{text}, nil
	}
	length := strings.IndexByte(text[open:], '}')
	if length < 0 {
		return nil, fmt.Errorf("%q: no } after {", text)
	}
	values, err := expandBraces(text[open+1 : open+length])
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	rest, err := expand(text[open+length+1:])
	if err != nil {
		return nil, err
	}
	if len(values)*len(rest) > maxExpansion {
		return nil, fmt.Errorf("%q expands to more than %d values", text, maxExpansion)
	}
	var all []string
	for _, v := range values {
		for _, r := range rest {
			all = append(all, text[:open]+v+r)
		}
	}
	return all, nil
}

func expandBraces(body string) ([]string, error) {
	lo, rest, isRange := strings.Cut(body, "..")
	if !isRange {
		return strings.Split(body, "|"), nil
	}
	at := strings.LastIndexAny(rest, "/*")
	if at < 0 {
		return nil, fmt.Errorf("{%s}: say how many values: /5 for evenly spaced, *5 for evenly spaced logarithms", body)
	}
	n, err := strconv.Atoi(rest[at+1:])
	if err != nil || n < 2 || n > maxExpansion {
		return nil, fmt.Errorf("{%s}: want 2 to %d values", body, maxExpansion)
	}
	from, to, text, err := ends(lo, rest[:at])
	if err != nil {
		return nil, fmt.Errorf("{%s}: %w", body, err)
	}
	logs := rest[at] == '*'
	if logs && !(from > 0 && to > 0) {
		return nil, fmt.Errorf("{%s}: logarithms need ends above 0", body)
	}
	var values []string
	for i := range n {
		f := float64(i) / float64(n-1)
		v := from + f*(to-from)
		if logs {
			v = from * math.Pow(to/from, f)
		}
		values = append(values, text(v))
	}
	return values, nil
}

// ends reads the ends of a range and returns how to write a value between them.
func ends(lo, hi string) (from, to float64, text func(float64) string, err error) {
	a, errA := time.ParseDuration(lo)
	b, errB := time.ParseDuration(hi)
	if errA == nil && errB == nil && (a != 0 || b != 0) {
		return float64(a), float64(b), func(v float64) string {
			d := time.Duration(v)
			for unit := time.Duration(1); unit < time.Second && d >= 10_000*unit; unit *= 10 {
				d = d.Round(unit)
			}
			return d.String()
		}, nil
	}
	unit := strings.TrimLeft(hi, "0123456789.eE+-")
	from, errA = strconv.ParseFloat(strings.TrimSuffix(lo, unit), 64)
	to, errB = strconv.ParseFloat(strings.TrimSuffix(hi, unit), 64)
	if errA != nil || errB != nil || math.IsInf(from, 0) || math.IsInf(to, 0) || from != from || to != to {
		return 0, 0, nil, fmt.Errorf("the ends are neither durations nor numbers of one unit")
	}
	return from, to, func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) + unit }, nil
}

// expandList expands the items of a list. Its commas are those outside braces.
func expandList(text string) (string, error) {
	var all []string
	for _, item := range strings.Split(text, ",") {
		items, err := expand(item)
		if err != nil {
			return "", err
		}
		all = append(all, items...)
	}
	return strings.Join(all, ","), nil
}
