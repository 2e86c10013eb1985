package chart

import (
	"testing"
	"time"
)

func TestWordsForNumbers(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{Number(0), "0.00"}, {Number(0.254), "0.25"}, {Number(9.994), "9.99"}, {Number(9.996), "10.0"},
		{Number(99.94), "99.9"}, {Number(99.96), "100"}, {Number(4310.4), "4310"}, {Number(-12.34), "-12.3"},
		{Percent(0.1234), "12.3%"}, {Percent(1), "100%"}, {Percent(-0.5), "-50.0%"},
		{Duration(0), "0"}, {Duration(999), "999ns"}, {Duration(1540 * time.Millisecond), "1.54s"},
		{Duration(880 * time.Millisecond), "880ms"}, {Duration(-12 * time.Microsecond), "-12.0us"}, {Duration(time.Hour), "3600s"},
	} {
		if x.got != x.want {
			t.Errorf("%q, want %q", x.got, x.want)
		}
	}
}
