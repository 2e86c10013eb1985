package command

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/pressure"
)

func TestTexts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "1ns", 999: "999ns", 1000: "1.00us", 12345 * time.Microsecond: "12.3ms",
		880 * time.Millisecond: "880ms", 1540 * time.Millisecond: "1.54s", time.Hour: "3600s",
	} {
		if got := chart.Duration(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 160000: "160,000", 12345678: "12,345,678"} {
		if got := pressure.Count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := chart.LostText(math.NaN()); got != "-" {
		t.Errorf("no share is %q", got)
	}
}

func TestTableAligns(t *testing.T) {
	var b bytes.Buffer
	table{{"a", "1", left + "x"}, {"long", "22", left + "yy"}, {"µ", "3", left}}.print(&b)
	if want := "  a      1 x\n  long  22 yy\n  µ      3\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
