package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
)

func TestTexts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "1ns", 999: "999ns", 1000: "1.00us", 12345 * time.Microsecond: "12.3ms",
		880 * time.Millisecond: "880ms", 1540 * time.Millisecond: "1.54s", time.Hour: "3600s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 160000: "160,000", 12345678: "12,345,678"} {
		if got := formatCount(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := lostText(math.NaN()); got != "-" {
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

func TestReadCost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cost.json")
	for text, want := range map[string]string{
		`{"base_ns": 5, "heap_mib": 1.5}`: "",
		`{"base_ns": 5} {}`:               "byte 15: more than one object",
		`{"base_ns": -5}`:                 "negative coefficient -5",
		`{"bass_ns": 5}`:                  "unknown field",
		`{"base_ns": `:                    "byte ",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readCost(path)
		switch {
		case want == "" && (err != nil || c != sim.Cost{Base: 5, HeapMiB: 1.5}):
			t.Errorf("%s is %+v, %v", text, c, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
}
