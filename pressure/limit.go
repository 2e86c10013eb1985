package pressure

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Limit is a number of bytes or a share of a space's total. The zero value means no limit. Its
// text form is that of CUDA.jl's memory limits: 10000, 100M, 1.5GiB, 50%.
type Limit struct {
	Bytes   int64   // absolute bytes; used if Percent is 0
	Percent float64 // 0..100 of the total
}

// Limits bounds a space. The zero value bounds nothing.
type Limits struct {
	Soft Limit // cached memory is given back down to it at sync points
	Hard Limit // no reservation passes it, not for a moment
}

// multiples of a unit; a trailing B after k, M, G, T or P changes nothing.
var units = []struct {
	name string
	size int64
}{
	{"B", 1}, {"", 1},
	{"k", 1e3}, {"kB", 1e3}, {"K", 1e3}, {"KB", 1e3}, {"M", 1e6}, {"MB", 1e6}, {"G", 1e9}, {"GB", 1e9},
	{"T", 1e12}, {"TB", 1e12}, {"P", 1e15}, {"PB", 1e15},
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
}

// ParseLimit reads a limit: a number and a unit, with at most one space between them. The units k,
// M, G, T and P, with or without B, are powers of 1000. KiB, MiB, GiB, TiB and PiB are powers of
// 1024. B is bytes, and % is a share of the total. A whole number without a unit is bytes.
// Fractions of a byte are cut off. The empty text, "none" and "0" mean no limit. Spaces around the
// text do not count.
func ParseLimit(text string) (Limit, error) {
	if text = strings.TrimSpace(text); text == "" || text == "none" || text == "0" {
		return Limit{}, nil
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(text)
	}
	number, unit := text[:end], strings.TrimPrefix(text[end:], " ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Limit{}, fmt.Errorf("pressure: limit %q: want a number and a unit, such as 100M, 1.5GiB or 50%%", text)
	}
	if unit == "%" {
		if value <= 0 || value > 100 {
			return Limit{}, fmt.Errorf("pressure: limit %q: a share must be above 0%% and at most 100%%", text)
		}
		return Limit{Percent: value}, nil
	}
	if unit == "" && strings.Contains(number, ".") {
		return Limit{}, fmt.Errorf("pressure: limit %q has no unit: want a size such as %sGiB", text, number)
	}
	size, err := unitSize(unit)
	if err != nil {
		return Limit{}, fmt.Errorf("pressure: limit %q: %w", text, err)
	}
	bytes, ok := scale(number, value, size)
	if !ok {
		return Limit{}, fmt.Errorf("pressure: limit %q: out of range (1 byte to %v)", text, Bytes(math.MaxInt64))
	}
	return Limit{Bytes: bytes}, nil
}

// scale returns number times size, exactly if number is whole.
func scale(number string, value float64, size int64) (int64, bool) {
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return whole * size, whole > 0 && whole <= math.MaxInt64/size
	}
	product := value * float64(size)
	return int64(product), product >= 1 && product < math.MaxInt64
}

func unitSize(unit string) (int64, error) {
	near := ""
	for _, u := range units {
		if u.name == unit {
			return u.size, nil
		}
		if near == "" && strings.EqualFold(u.name, unit) {
			near = u.name
		}
	}
	if near != "" {
		return 0, fmt.Errorf("unknown unit %q, did you mean %q", unit, near)
	}
	return 0, fmt.Errorf("unknown unit %q (want k, M, G, T or P, KiB, MiB, GiB, TiB or PiB, or %%)", unit)
}

// String returns a short exact text form, "" for no limit. [ParseLimit] reads it back to the same
// Limit, if that is not below 0.
func (l Limit) String() string {
	if l.Percent != 0 {
		return strconv.FormatFloat(l.Percent, 'f', -1, 64) + "%"
	}
	if l.Bytes == 0 {
		return ""
	}
	best := strconv.FormatInt(l.Bytes, 10) + "B"
	for _, u := range units {
		if u.size > 1 && l.Bytes%u.size == 0 {
			if text := strconv.FormatInt(l.Bytes/u.size, 10) + u.name; len(text) < len(best) {
				best = text
			}
		}
	}
	return best
}

// Of returns the limit in bytes for a space of total bytes; 0 means no limit. A share needs a known
// total: it is an error if total is not above 0.
func (l Limit) Of(total int64) (int64, error) {
	if l.Percent == 0 {
		return l.Bytes, nil
	}
	if total <= 0 {
		return 0, fmt.Errorf("pressure: limit %v: the total of the space is not known", l)
	}
	return max(1, int64(l.Percent/100*float64(total))), nil
}

// Of returns the limits in bytes for a space of total bytes: see [Limit.Of].
func (l Limits) Of(total int64) (Limits, error) {
	soft, errSoft := l.Soft.Of(total)
	hard, errHard := l.Hard.Of(total)
	return Limits{Soft: Limit{Bytes: soft}, Hard: Limit{Bytes: hard}}, errors.Join(errSoft, errHard)
}
