package pressure_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
)

// TestParseLimit: what is read, and what is said of what is not.
func TestParseLimit(t *testing.T) {
	for text, want := range map[string]pressure.Limit{
		"": {}, "none": {}, " none ": {}, "  ": {}, "10000B": {Bytes: 10000}, "10000": {Bytes: 10000}, "0": {}, "1.5 GiB": {Bytes: 3 << 29}, " 7MiB\t": {Bytes: 7 << 20}, "100%": {Percent: 100},
		"0.001%": {Percent: 0.001}, "1.9B": {Bytes: 1}, "0.0015k": {Bytes: 1}, ".5KiB": {Bytes: 512}, "8191PiB": {Bytes: 8191 << 50}, "1.5PiB": {Bytes: 3 << 49},
		"12.5%": {Percent: 12.5}, "9223372036854775807B": {Bytes: math.MaxInt64}, "1048576": {Bytes: 1 << 20}, "26736171418": {Bytes: 26736171418},
	} {
		if got, err := pressure.ParseLimit(text); err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1.5gib": `did you mean "GiB"`, "1m": `did you mean "M"`, "1kb": `did you mean "kB"`, "1b": `did you mean "B"`, "3  MiB": `unknown unit " MiB"`,
		"3 parsecs": `unknown unit "parsecs" (want k, M, G, T or P, KiB, MiB, GiB, TiB or PiB, or %)`, "0.5B": "out of range (1 byte to 8.00 EiB)",
		"9223372036854775808.0B": "out of range", "9223372036854775808B": "out of range", "9223372036854775808": "out of range", "8388608TiB": "out of range", "9007199254740993000P": "out of range",
		"0B": "out of range", "100.1%": "a share must be above 0% and at most 100%", "0%": "above 0%", "nothing": "such as 100M, 1.5GiB or 50%", "1e9": "unknown unit", ".": "want a number",
		"-1": "want a number", "GiB": "want a number", "1.2.3M": "want a number", "1.5": "no unit: want a size such as 1.5GiB", "2097152.5": "no unit",
	} {
		if l, err := pressure.ParseLimit(text); err == nil || l != (pressure.Limit{}) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("ParseLimit(%q) = %v, %v; want an error with %q and the text", text, l, err, want)
		}
	}
}

// TestUnits: each unit is what its letter says in powers of 1000 or 1024. A limit prints as the shortest exact text.
func TestUnits(t *testing.T) {
	for i, letter := range []string{"k", "M", "G", "T", "P"} {
		decimal, binary, upper := int64(math.Pow10(3*(i+1))), int64(1)<<(10*(i+1)), strings.ToUpper(letter)
		for unit, size := range map[string]int64{letter: decimal, letter + "B": decimal, upper + "iB": binary, upper: decimal, upper + "B": decimal} {
			for _, text := range []string{"3" + unit, "3 " + unit, "3.0" + unit} {
				if got, err := pressure.ParseLimit(text); err != nil || got != (pressure.Limit{Bytes: 3 * size}) {
					t.Errorf("%s is %+v, %v; want %d", text, got, err, 3*size)
				}
			}
		}
	}
	for bytes, want := range map[int64]string{
		0: "", 1: "1B", 999: "999B", 1000: "1k", 1024: "1KiB", 1500: "1500B", 1024000: "1024k", 1536 << 20: "1536MiB", 10240: "10KiB", 12e12: "12T", 1 << 50: "1PiB", math.MaxInt64: "9223372036854775807B",
	} {
		if got := (pressure.Limit{Bytes: bytes}).String(); got != want {
			t.Errorf("%d bytes print as %q, want %q", bytes, got, want)
		}
	}
}

// readBack wants a limit to come back from its text.
func readBack(t *testing.T, l pressure.Limit) {
	t.Helper()
	if again, err := pressure.ParseLimit(l.String()); err != nil || again != l {
		t.Fatalf("%+v prints as %q, which reads as %+v, %v", l, l, again, err)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"10000B", "100M", "50%", "1.5GiB", "0.1KiB", "1e3", "99.99%", "7 TB", "٣M", "0000001%", "1048576"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := pressure.ParseLimit(text)
		if err != nil && l != (pressure.Limit{}) || l.Bytes < 0 || l.Percent < 0 || l.Percent > 100 || l.Bytes != 0 && l.Percent != 0 {
			t.Fatalf("%q: %+v, %v", text, l, err)
		}
		readBack(t, l)
	})
}

// TestShares: a share of a total is cut off to bytes, is never 0 (which would be none), and needs a total.
func TestShares(t *testing.T) {
	for range 1000 {
		total, percent := 1+rand.Int64N(1<<40), float64(1+rand.IntN(400))/4
		soft, hard := pressure.Limit{Percent: percent}, pressure.Limit{Bytes: rand.Int64N(1 << 40)}
		got, err := pressure.Limits{Soft: soft, Hard: hard}.Of(total)
		if want := max(1, int64(float64(total)*percent/100)); err != nil || got.Hard != hard || got.Soft.Percent != 0 || max(want-got.Soft.Bytes, got.Soft.Bytes-want) > 1 || got.Soft.Bytes < 1 {
			t.Fatalf("%v and %v of %d: %+v, %v, want %d", soft, hard, total, got, err, want)
		}
		readBack(t, soft)
		readBack(t, hard)
	}
	share := pressure.Limit{Percent: 50}
	for _, total := range []int64{0, -1} {
		for n, l := range map[int]pressure.Limits{0: {Soft: pressure.Limit{Bytes: 7}}, 1: {Soft: share}, 2: {Soft: share, Hard: share}} {
			const unknown = "pressure: limit 50%: the total of the space is not known"
			if _, err := l.Of(total); n == 0 && err != nil || n > 0 && (err == nil || strings.Count(err.Error(), unknown) != n) {
				t.Errorf("%v of a total of %d: %v", l, total, err)
			}
		}
	}
}

// TestSpaces: each space has a number, which recordings have, and a name that is read back.
func TestSpaces(t *testing.T) {
	for i := range 256 {
		s, name := pressure.Space(i), ""
		if i < 3 {
			name = []string{"host", "pinned", "managed"}[i]
		} else {
			name = fmt.Sprint("device", i-3)
			if pressure.Device(i-3) != s {
				t.Errorf("device %d is space %d", i-3, pressure.Device(i-3))
			}
		}
		n, ok := s.Device()
		if again, err := pressure.ParseSpace(name); err != nil || again != s || s.String() != name || ok != (i >= 3) || ok && n != i-3 {
			t.Errorf("space %d is %v, %v; %s is %d, %v", i, s, ok, name, again, err)
		}
	}
	if pressure.Host != 0 || pressure.Pinned != 1 || pressure.Managed != 2 || pressure.MaxDevices != 253 {
		t.Error("the numbers of spaces have changed")
	}
	for _, text := range []string{"", "device", "5", "device-1", "device+1", "device99999999999999999999", "device01", "device253", "devices0", "gpu0", "Host"} {
		if s, err := pressure.ParseSpace(text); err == nil || s != 0 || err.Error() != fmt.Sprintf("pressure: unknown space %q (want host, pinned, managed or device0 ... device252)", text) {
			t.Errorf("%q is read as %v, %v", text, s, err)
		}
	}
	for _, n := range []int{-1, pressure.MaxDevices} {
		func() {
			defer func() {
				if text := fmt.Sprintf("pressure: device %d out of range [0, 253)", n); recover() != text {
					t.Errorf("there is a device %d", n)
				}
			}()
			pressure.Device(n)
		}()
	}
	for _, c := range []struct {
		live, limit int64
		pressure    float64
		headroom    int64
	}{{30, 120, 0.25, 90}, {150, 120, 1.25, -30}, {30, 0, 0, -30}, {30, -1, 0, -31}} {
		if s := (pressure.Sample{Live: c.live, Limit: c.limit}); s.Pressure() != c.pressure || s.Headroom() != c.headroom {
			t.Errorf("%+v: pressure %v, headroom %d", s, s.Pressure(), s.Headroom())
		}
	}
}

func TestWordsForNumbers(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B, 0", 5: "5 B, 5", -5: "-5 B, -5", 999: "999 B, 999", 1000: "1000 B, 1,000", 1023: "1023 B, 1,023", 1024: "1.00 KiB, 1,024", -1024: "-1.00 KiB, -1,024", 2000: "1.95 KiB, 2,000",
		1024*1023 + 1018: "1023.99 KiB, 1,048,570", 1024*1023 + 1019: "1.00 MiB, 1,048,571", 1<<20 - 1: "1.00 MiB, 1,048,575", 123456: "120.56 KiB, 123,456", -123456: "-120.56 KiB, -123,456",
		3 << 29: "1.50 GiB, 1,610,612,736", 1 << 40: "1.00 TiB, 1,099,511,627,776", 1 << 50: "1.00 PiB, 1,125,899,906,842,624",
		math.MaxInt64: "8.00 EiB, 9,223,372,036,854,775,807", math.MinInt64: "-8.00 EiB, -9,223,372,036,854,775,808",
	} {
		if got := pressure.Bytes(n).String() + ", " + pressure.Count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestResidentOfThisProcess: what a program writes to outside the Go heap shows; what Go has given back does not count as Go's.
func TestResidentOfThisProcess(t *testing.T) {
	before, err := pressure.ReadResident()
	if err != nil {
		t.Skip(err)
	}
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += os.Getpagesize() {
		block[i] = 1
	}
	after, err := pressure.ReadResident()
	if grown := after.Anonymous - before.Anonymous; err != nil || grown < 60<<20 || after.Mapped <= 0 {
		t.Errorf("64 MiB more in use: %d bytes more, %v", grown, err)
	}
	runtime.KeepAlive(block)
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if got, want := pressure.GoMemory(), int64(m.Sys-m.HeapReleased); got < want-8<<20 || got > want+8<<20 {
		t.Errorf("%d bytes, and %d of MemStats", got, want)
	}
	if r := (pressure.Resident{Anonymous: 100}); r.Outside(30) != 70 || r.Outside(130) != 0 {
		t.Errorf("outside Go: %d and %d", r.Outside(30), r.Outside(130))
	}
}
