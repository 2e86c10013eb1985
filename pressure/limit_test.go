package pressure

import (
	"math"
	"strings"
	"testing"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"":                    {},
		"10000":               {Bytes: 10000},
		"100M":                {Bytes: 100e6},
		"100MB":               {Bytes: 100e6},
		"1.5GiB":              {Bytes: 3 << 29},
		"1.5 GiB":             {Bytes: 3 << 29},
		"2k":                  {Bytes: 2000},
		"2KiB":                {Bytes: 2048},
		"0.5k":                {Bytes: 500},
		"50%":                 {Percent: 50},
		"12.5%":               {Percent: 12.5},
		"9223372036854775807": {Bytes: math.MaxInt64},
	} {
		got, err := ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseLimitSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"1.5gib":               `did you mean "GiB"`,
		"1m":                   `did you mean "M"`,
		"3 parsecs":            "unknown unit",
		"-1":                   "want a number",
		"GiB":                  "want a number",
		"1.2.3M":               "want a number",
		"0":                    "out of range",
		"9223372036854775808":  "out of range",
		"8388608TiB":           "out of range",
		"9007199254740993000P": "out of range",
		"101%":                 "at most 100%",
		"0%":                   "above 0%",
	} {
		if l, err := ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("ParseLimit(%q) = %v, %v; want an error with %q and the text", text, l, err, want)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"10000", "100M", "50%", "1.5GiB", "0.1KiB", "1e3", "99.99%", "7 TB", "٣M"} {
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
	if _, err := (Limit{Percent: 50}).Of(0); err == nil {
		t.Error("a share of an unknown total is no error")
	}
	if got, err := (Limit{Bytes: 7}).Of(0); got != 7 || err != nil {
		t.Errorf("7 bytes of an unknown total = %d, %v", got, err)
	}
}

func TestLimitsFromEnv(t *testing.T) {
	env := map[string]string{EnvSoft: "1GiB", EnvHard: "50%"}
	look := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	got, err := LimitsFromEnv(Device(0), look)
	if want := (Limits{Soft: Limit{Bytes: 1 << 30}, Hard: Limit{Percent: 50}}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	env[EnvHard] = "lots"
	got, err = LimitsFromEnv(Device(0), look)
	if err == nil || !strings.Contains(err.Error(), EnvHard) {
		t.Errorf("error %v does not name %s", err, EnvHard)
	}
	if want := (Limits{Soft: Limit{Bytes: 1 << 30}}); got != want {
		t.Errorf("what can be read: %v, want %v", got, want)
	}
	env["EAGERGC_DEVICE0_SOFT_MEMORY_LIMIT"] = "2Gib"
	env["EAGERGC_DEVICE0_HARD_MEMORY_LIMIT"] = " none "
	got, err = LimitsFromEnv(Device(0), look)
	if want := (Limits{Soft: Limit{Bytes: 1 << 30}}); got != want || strings.Contains(err.Error(), EnvHard) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// The variable of a space goes before the general one, limit by limit; the
// general one does not bound memory of the host.
func TestLimitsFromEnvOfASpace(t *testing.T) {
	env := map[string]string{
		EnvSoft: "1GiB", EnvHard: "50%",
		"EAGERGC_DEVICE1_HARD_MEMORY_LIMIT": "2GiB",
		"EAGERGC_PINNED_SOFT_MEMORY_LIMIT":  "1MiB",
	}
	look := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	gib := func(n int64) Limit { return Limit{Bytes: n << 30} }
	for space, want := range map[Space]Limits{
		Device(0): {Soft: gib(1), Hard: Limit{Percent: 50}},
		Device(1): {Soft: gib(1), Hard: gib(2)},
		Managed:   {Soft: gib(1), Hard: Limit{Percent: 50}},
		Pinned:    {Soft: Limit{Bytes: 1 << 20}},
		Host:      {},
	} {
		if got, err := LimitsFromEnv(space, look); err != nil || got != want {
			t.Errorf("%v: got %v, %v; want %v", space, got, err, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[Bytes]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 3 << 29: "1.50 GiB", -3 << 29: "-1.50 GiB",
		1<<20 - 1: "1.00 MiB", math.MaxInt64: "8.00 EiB",
	} {
		if got := n.String(); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", int64(n), got, want)
		}
	}
}
