package kineto

import (
	"errors"
	"math"
	"strconv"
)

var errRange = errors.New("number out of range")

// nanoseconds turns a JSON number of microseconds into nanoseconds. A float64 would
// be wrong by up to 0.5 us for times since 1970. The result is exact up to three
// decimals; further decimals are rounded, halves away from zero.
func nanoseconds(us []byte) (int64, error) {
	var digits [maxNumber]byte // the number without sign, point and exponent
	n, point, exp := 0, -1, 0
	negative := len(us) > 0 && us[0] == '-'
	for i, c := range us {
		switch {
		case '0' <= c && c <= '9':
			digits[n] = c
			n++
		case c == '.':
			point = n
		case c|0x20 == 'e':
			var err error
			if exp, err = strconv.Atoi(string(us[i+1:])); err != nil || exp < -maxNumber || exp > maxNumber {
				return 0, errRange
			}
		}
		if c|0x20 == 'e' {
			break
		}
	}
	if point < 0 {
		point = n
	}
	ns, err := scaled(digits[:n], point+exp+3)
	if negative {
		ns = -ns
	}
	return ns, err
}

// scaled returns the integer nearest to the number with these digits and the
// decimal point before digits[point]; point may lie outside digits.
func scaled(digits []byte, point int) (int64, error) {
	var whole int64
	for i := range max(point, 0) {
		d := int64(0)
		if i < len(digits) {
			d = int64(digits[i] - '0')
		}
		if whole > (math.MaxInt64-d)/10 {
			return 0, errRange
		}
		whole = whole*10 + d
	}
	if point >= 0 && point < len(digits) && digits[point] >= '5' {
		whole++
	}
	if whole < 0 {
		return 0, errRange
	}
	return whole, nil
}
