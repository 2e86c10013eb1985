package pressure

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// warnings returns what f says in the log.
func warnings(t *testing.T, f func()) string {
	t.Helper()
	var out bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	said.Clear()
	f()
	return out.String()
}

func TestEnvChoice(t *testing.T) {
	for text, want := range map[string]string{
		"": "on", " ": "on", "on": "on", "1": "on", "TRUE": "on", "yes": "on",
		"off": "off", "OFF": "off", "0": "off", "false": "off", "No": "off", "none": "off", " off ": "off",
		"stress": "stress", "Stress": "stress", "of": "on", "2": "on",
	} {
		t.Setenv("EAGERGC", text)
		var got string
		out := warnings(t, func() { got = EnvChoice("EAGERGC", "on", "off", "stress"); EnvChoice("EAGERGC", "on", "off", "stress") })
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if said := strings.Count(out, "cannot be read"); said > 1 || (said == 1) != (text == "of" || text == "2") {
			t.Errorf("%q: said %d times: %s", text, said, out)
		}
	}
}

// TestEnvReadsWhatIsSet: a text without the spaces around it is parsed once; one that is empty is not; what parse says is said by name, with the
// text as it is, once for each text.
func TestEnvReadsWhatIsSet(t *testing.T) {
	const name = "EAGERGC_TEST"
	for _, c := range []struct{ text, reads string }{{"", ""}, {" \t", ""}, {" a b ", "a b"}, {"x", "x"}} {
		t.Setenv(name, c.text)
		calls, read := 0, ""
		out := warnings(t, func() {
			if set := Env(name, func(text string) error { calls, read = calls+1, text; return nil }); set != (c.reads != "") {
				t.Errorf("%q: set %v", c.text, set)
			}
		})
		if read != c.reads || calls != min(1, len(c.reads)) || out != "" {
			t.Errorf("%q: parsed %d times, %q; said %q", c.text, calls, read, out)
		}
	}
	out := warnings(t, func() {
		for _, text := range []string{" bad", " bad", "worse"} {
			t.Setenv(name, text)
			if Env(name, func(string) error { return errors.New("no use") }) {
				t.Error("what cannot be read is set")
			}
		}
	})
	for _, want := range []string{`level=WARN msg="eagergc: EAGERGC_TEST=\" bad\" cannot be read, and counts as not set: no use"`, `EAGERGC_TEST=\"worse\" cannot`} {
		if strings.Count(out, want) != 1 {
			t.Errorf("want %s once in %s", want, out)
		}
	}
}

// Where off is no choice, its words are none.
func TestEnvChoiceOfOtherWords(t *testing.T) {
	t.Setenv("EAGERGC_TEST", "no")
	out := warnings(t, func() {
		if got := EnvChoice("EAGERGC_TEST", "slow", "fast"); got != "slow" {
			t.Error(got)
		}
	})
	if !strings.Contains(out, "want slow, fast") {
		t.Errorf("said %q", out)
	}
	for text, want := range map[string]string{"true": "yes", "0": "none", "no": "none", "never": "never"} {
		t.Setenv("EAGERGC_TEST", text)
		if out := warnings(t, func() {
			if got := EnvChoice("EAGERGC_TEST", "yes", "none", "never"); got != want {
				t.Errorf("%s is %s", text, got)
			}
		}); out != "" {
			t.Errorf("%s: %s", text, out)
		}
	}
}

// A share of what is not known is no limit, and the size of the space is not asked for in vain.
func TestEnvLimitOfAnUnknownSpace(t *testing.T) {
	asked := 0
	total := func() int64 { asked++; return 0 }
	for _, c := range []struct {
		hard, soft string
		bytes      int64
		set        bool
		asked      int
	}{{"", "", 0, false, 0}, {"50%", "", 0, false, 1}, {"50%", "1GiB", 1 << 30, true, 2}, {"1PiB", "1GiB", 1 << 50, true, 1}} {
		t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", c.hard)
		t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", c.soft)
		asked = 0
		out := warnings(t, func() {
			if bytes, set := EnvLimit(Host, total); bytes != c.bytes || set != c.set || asked != c.asked {
				t.Errorf("%q and %q: %d, %v, asked %d times; want %+v", c.hard, c.soft, bytes, set, asked, c)
			}
		})
		if strings.Contains(out, "the total of the space is not known") != (c.hard == "50%") {
			t.Errorf("%q and %q: said %q", c.hard, c.soft, out)
		}
	}
}

// What cannot be read takes no other with it, is named, and is not taken for a limit of nothing.
func TestEnvLimit(t *testing.T) {
	const total = 100 << 30
	all := func() int64 { return total }
	for _, test := range []struct {
		hard, soft string
		bytes      int64
		set        bool
		warns      string
	}{
		{"", "", 0, false, ""},
		{"2GiB", "1GiB", 2 << 30, true, ""},
		{"", "1GiB", 1 << 30, true, ""},
		{" 1GiB ", "", 1 << 30, true, ""},
		{"50%", "", 50 << 30, true, ""},
		{"1000TiB", "", total, true, ""},
		{"none", "1GiB", 0, true, ""},
		{"2Gib", "1GiB", 1 << 30, true, `EAGERGC_HOST_HARD_MEMORY_LIMIT=\"2Gib\"`},
		{"2GiB", "lots", 2 << 30, true, ""},
		{"", "1e9", 0, false, `EAGERGC_HOST_SOFT_MEMORY_LIMIT=\"1e9\"`},
	} {
		t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", test.hard)
		t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", test.soft)
		out := warnings(t, func() {
			if bytes, set := EnvLimit(Host, all); bytes != test.bytes || set != test.set {
				t.Errorf("%q and %q: %d, %v; want %d, %v", test.hard, test.soft, bytes, set, test.bytes, test.set)
			}
			EnvLimit(Host, all)
		})
		if want := min(1, len(test.warns)); strings.Count(out, "cannot be read") != want || !strings.Contains(out, test.warns) {
			t.Errorf("%q and %q: said %q", test.hard, test.soft, out)
		}
	}
}
