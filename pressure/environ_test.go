package pressure

import (
	"bytes"
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
