package pressure

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"":                     {},
		"10000B":               {Bytes: 10000},
		"100M":                 {Bytes: 100e6},
		"100MB":                {Bytes: 100e6},
		"1.5GiB":               {Bytes: 3 << 29},
		"1.5 GiB":              {Bytes: 3 << 29},
		"2k":                   {Bytes: 2000},
		"2KiB":                 {Bytes: 2048},
		" 7MiB\t":              {Bytes: 7 << 20},
		"none":                 {},
		" none ":               {},
		"  ":                   {},
		"100%":                 {Percent: 100},
		"0.001%":               {Percent: 0.001},
		"1.9B":                 {Bytes: 1},
		"1B":                   {Bytes: 1},
		"0.0015k":              {Bytes: 1},
		".5KiB":                {Bytes: 512},
		"8191PiB":              {Bytes: 8191 << 50},
		"1.5PiB":               {Bytes: 3 << 49},
		"0.5k":                 {Bytes: 500},
		"50%":                  {Percent: 50},
		"12.5%":                {Percent: 12.5},
		"9223372036854775807B": {Bytes: math.MaxInt64},
	} {
		got, err := ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestUnits: each unit alone, with or without B, is what its letter says in powers of 1000 or 1024, and is read back.
func TestUnits(t *testing.T) {
	n := 0
	for i, letter := range []string{"k", "M", "G", "T", "P"} {
		decimal, binary := int64(math.Pow10(3*(i+1))), int64(1)<<(10*(i+1))
		names := map[string]int64{letter: decimal, letter + "B": decimal, strings.ToUpper(letter) + "iB": binary}
		if letter == "k" {
			names["K"], names["KB"] = decimal, decimal
		}
		for unit, size := range names {
			for _, text := range []string{"3" + unit, "3 " + unit, "3.0" + unit} {
				got, err := ParseLimit(text)
				if err != nil || got != (Limit{Bytes: 3 * size}) {
					t.Errorf("%s is %+v, %v; want %d", text, got, err, 3*size)
				}
			}
			n++
		}
	}
	if n+1 != len(units) { // and B
		t.Errorf("%d units, want %d", len(units), n+1)
	}
	for bytes, want := range map[int64]string{
		0: "", 1: "1B", 999: "999B", 1000: "1k", 1024: "1KiB", 1500: "1500B", 2000: "2k", 1e6: "1M", 1024000: "1024k", 3 << 20: "3MiB", 1536 << 20: "1536MiB",
		5e15: "5P", 1 << 50: "1PiB", 10e9: "10G", 10240: "10KiB", 12e12: "12T", 12 << 40: "12TiB", math.MaxInt64: "9223372036854775807B",
	} {
		if got := (Limit{Bytes: bytes}).String(); got != want {
			t.Errorf("%d bytes print as %q, want %q", bytes, got, want)
		}
	}
	for percent, want := range map[float64]string{50: "50%", 12.5: "12.5%", 1e-7: "0.0000001%"} {
		if got := (Limit{Percent: percent, Bytes: 7}).String(); got != want {
			t.Errorf("%g percent print as %q, want %q", percent, got, want)
		}
	}
}

// TestLimitText: as JSON and others have it.
func TestLimitText(t *testing.T) {
	text, err := Limit{Bytes: 3 << 20}.MarshalText()
	if err != nil || string(text) != "3MiB" {
		t.Errorf("%q, %v", text, err)
	}
	l := Limit{Bytes: 5}
	if err := l.UnmarshalText([]byte("50%")); err != nil || l != (Limit{Percent: 50}) {
		t.Errorf("%v, %v", l, err)
	}
	if err := l.UnmarshalText([]byte("lots")); err == nil || l != (Limit{}) {
		t.Errorf("lots is %v, %v", l, err)
	}
}

func TestParseLimitSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"1.5gib":                 `did you mean "GiB"`,
		"1m":                     `did you mean "M"`,
		"3 parsecs":              `unknown unit "parsecs" (want k, M, G, T or P, KiB, MiB, GiB, TiB or PiB, or %)`,
		"3  MiB":                 `unknown unit " MiB"`,
		"1kib":                   `did you mean "KiB"`,
		"1kb":                    `did you mean "kB"`,
		"1b":                     `did you mean "B"`,
		"1mb":                    `did you mean "MB"`,
		"0.5B":                   "out of range (1 byte to 8.00 EiB)",
		"9223372036854775808.0B": "out of range",
		"100.1%":                 "a share must be above 0% and at most 100%",
		"nothing":                "such as 100M, 1.5GiB or 50%",
		"1e9":                    "unknown unit",
		"1e9B":                   "unknown unit",
		".":                      "want a number",
		"-1":                     "want a number",
		"GiB":                    "want a number",
		"1.2.3M":                 "want a number",
		"0B":                     "out of range",
		"1500":                   "no unit: want a size such as 1500GiB",
		"1.5":                    "no unit: want a size such as 1.5GiB",
		"9223372036854775808B":   "out of range",
		"8388608TiB":             "out of range",
		"9007199254740993000P":   "out of range",
		"101%":                   "at most 100%",
		"0%":                     "above 0%",
	} {
		if l, err := ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("ParseLimit(%q) = %v, %v; want an error with %q and the text", text, l, err, want)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"10000B", "100M", "50%", "1.5GiB", "0.1KiB", "1e3", "99.99%", "7 TB", "٣M"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLimit(text)
		if err != nil {
			if l != (Limit{}) {
				t.Fatalf("%q: limit %v with error %v", text, l, err)
			}
			return
		}
		if l.Bytes < 0 || l.Percent < 0 || l.Percent > 100 || l.Bytes != 0 && l.Percent != 0 {
			t.Fatalf("%q: bad limit %+v", text, l)
		}
		if again, err := ParseLimit(l.String()); err != nil || again != l {
			t.Fatalf("%q prints as %q, which reads as %v, %v", text, l, again, err)
		}
	})
}

func TestLimitOf(t *testing.T) {
	if got, err := (Limit{Percent: 50}).Of(1000); got != 500 || err != nil {
		t.Errorf("50%% of 1000 = %d, %v", got, err)
	}
	if got, err := (Limit{Percent: 1}).Of(50); got != 1 || err != nil { // 0 would be none
		t.Errorf("1%% of 50 = %d, %v", got, err)
	}
	if got, err := (Limit{Percent: 12.5}).Of(1001); got != 125 || err != nil {
		t.Errorf("12.5%% of 1001 = %d, %v", got, err)
	}
	for _, total := range []int64{0, -1} {
		if got, err := (Limit{Percent: 50}).Of(total); err == nil || got != 0 || err.Error() != "pressure: limit 50%: the total of the space is not known" {
			t.Errorf("a share of an unknown total: %d, %v", got, err)
		}
	}
	both := Limits{Soft: Limit{Percent: 20}, Hard: Limit{Percent: 50}}
	if got, err := both.Of(1000); err != nil || got != (Limits{Soft: Limit{Bytes: 200}, Hard: Limit{Bytes: 500}}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := both.Of(0); err == nil || strings.Count(err.Error(), "is not known") != 2 {
		t.Errorf("both of an unknown total: %v", err)
	}
	for _, l := range []Limits{{Soft: Limit{Percent: 20}, Hard: Limit{Bytes: 9}}, {Soft: Limit{Bytes: 9}, Hard: Limit{Percent: 20}}} {
		if _, err := l.Of(0); err == nil {
			t.Errorf("%v of an unknown total: no error", l)
		}
	}
	if got, err := (Limit{Bytes: 7}).Of(0); got != 7 || err != nil {
		t.Errorf("7 bytes of an unknown total = %d, %v", got, err)
	}
}

const (
	allSoft = "EAGERGC_SOFT_MEMORY_LIMIT"
	allHard = "EAGERGC_HARD_MEMORY_LIMIT"
)

func asItIs(l Limits) (Limits, error) { return l, nil }

// What cannot be read, or not be obeyed, is said by name, and takes no other limit with it; the general variable is asked then.
func TestOrFromEnv(t *testing.T) {
	t.Setenv(allSoft, "1GiB")
	t.Setenv(allHard, "50%")
	refused := func(l Limits) (Limits, error) {
		if l.Hard != (Limit{}) {
			return l, errors.New("not here")
		}
		return l, nil
	}
	for _, test := range []struct {
		soft, hard string
		obey       func(Limits) (Limits, error)
		want       Limits
		warns      []string
	}{
		{"", "", asItIs, Limits{Soft: Limit{Bytes: 1 << 30}, Hard: Limit{Percent: 50}}, nil},
		{"", "lots", asItIs, Limits{Soft: Limit{Bytes: 1 << 30}, Hard: Limit{Percent: 50}}, []string{"DEVICE0_HARD"}},
		{"2Gib", " none ", asItIs, Limits{Soft: Limit{Bytes: 1 << 30}}, []string{"DEVICE0_SOFT"}},
		{"3000", "4000B", asItIs, Limits{Soft: Limit{Bytes: 3000}, Hard: Limit{Bytes: 4000}}, nil},
		{"", "1GiB", refused, Limits{Soft: Limit{Bytes: 1 << 30}}, []string{"DEVICE0_HARD", "EAGERGC_HARD", "not here"}},
	} {
		t.Setenv("EAGERGC_DEVICE0_SOFT_MEMORY_LIMIT", test.soft)
		t.Setenv("EAGERGC_DEVICE0_HARD_MEMORY_LIMIT", test.hard)
		out := warnings(t, func() {
			if got := (Limits{}).OrFromEnv(Device(0), test.obey); got != test.want {
				t.Errorf("%q and %q: %v, want %v", test.soft, test.hard, got, test.want)
			}
		})
		for _, name := range test.warns {
			if !strings.Contains(out, name) {
				t.Errorf("%q and %q: no word of %s in %q", test.soft, test.hard, name, out)
			}
		}
		if len(test.warns) == 0 && out != "" {
			t.Errorf("%q and %q: said %q", test.soft, test.hard, out)
		}
	}
}

// The variable of a space goes before the general one, limit by limit; the
// general one does not bound memory of the host.
func TestOrFromEnvOfASpace(t *testing.T) {
	for name, text := range map[string]string{
		allSoft: "1GiB", allHard: "50%",
		"EAGERGC_DEVICE1_HARD_MEMORY_LIMIT": "2GiB",
		"EAGERGC_PINNED_SOFT_MEMORY_LIMIT":  "1MiB",
	} {
		t.Setenv(name, text)
	}
	gib := func(n int64) Limit { return Limit{Bytes: n << 30} }
	for space, want := range map[Space]Limits{
		Device(0): {Soft: gib(1), Hard: Limit{Percent: 50}},
		Device(1): {Soft: gib(1), Hard: gib(2)},
		Managed:   {Soft: gib(1), Hard: Limit{Percent: 50}},
		Pinned:    {Soft: Limit{Bytes: 1 << 20}},
		Host:      {},
	} {
		if got := (Limits{}).OrFromEnv(space, asItIs); got != want {
			t.Errorf("%v: got %v, want %v", space, got, want)
		}
		if got := (Limits{Hard: gib(9)}).OrFromEnv(space, asItIs); got.Hard != gib(9) || got.Soft != want.Soft {
			t.Errorf("%v: got %v beside a limit of its own", space, got)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[Bytes]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 3 << 29: "1.50 GiB", -3 << 29: "-1.50 GiB",
		1<<20 - 1: "1.00 MiB", math.MaxInt64: "8.00 EiB", math.MinInt64: "-8.00 EiB", -5: "-5 B",
		1 << 20: "1.00 MiB", 1 << 30: "1.00 GiB", 1 << 40: "1.00 TiB", 1 << 50: "1.00 PiB", 1 << 60: "1.00 EiB",
		1024*1023 + 1018: "1023.99 KiB", 1024*1023 + 1019: "1.00 MiB", 2047: "2.00 KiB", 2000: "1.95 KiB", -1024: "-1.00 KiB",
	} {
		if got := n.String(); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", int64(n), got, want)
		}
	}
}
