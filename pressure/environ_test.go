package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestEnvReadsWhatIsSet: a text is parsed once, without the spaces around it. What parse refuses is said by name, once for each text.
func TestEnvReadsWhatIsSet(t *testing.T) {
	const name = "EAGERGC_TEST"
	for _, c := range []struct{ text, reads, says string }{
		{"", "", ""}, {" \t", "", ""}, {" a b ", "a b", ""}, {"x", "x", ""},
		{" bad", "bad", `level=WARN msg="eagergc: EAGERGC_TEST=\" bad\" cannot be read, and counts as not set: no use"`}, {"bad2", "bad2", `EAGERGC_TEST=\"bad2\" cannot`},
	} {
		t.Setenv(name, c.text)
		var read []string
		refuse := error(nil)
		if c.says != "" {
			refuse = errors.New("no use")
		}
		out := warnings(t, func() {
			for range 2 {
				if set := Env(name, func(text string) error { read = append(read, text); return refuse }); set != (c.reads != "" && c.says == "") {
					t.Errorf("%q: set %v", c.text, set)
				}
			}
		})
		if strings.Join(read, "|") != strings.Trim(c.reads+"|"+c.reads, "|") || strings.Count(out, "\n") != min(1, len(c.says)) || !strings.Contains(out, c.says) {
			t.Errorf("%q: parsed %q; said %q", c.text, read, out)
		}
	}
}

// TestEnvChoice: words in any case, and other words for on and off where those are choices.
func TestEnvChoice(t *testing.T) {
	for _, c := range []struct{ text, words, want, says string }{
		{"", "on off stress", "on", ""}, {" ", "on off stress", "on", ""}, {"1", "on off stress", "on", ""}, {"TRUE", "off on", "on", ""},
		{"yes", "off on", "on", ""}, {"OFF", "on off stress", "off", ""}, {"0", "on off", "off", ""}, {"false", "on off", "off", ""}, {"No", "on off", "off", ""},
		{"none", "on off", "off", ""}, {" off ", "on off", "off", ""}, {"Stress", "on off stress", "stress", ""}, {"2", "off on", "off", "want off, on"},
		{"of", "on off stress", "on", "want on, off, stress"}, {"no", "slow fast", "slow", "want slow, fast"}, {"true", "none yes", "yes", ""}, {"0", "yes none never", "none", ""},
	} {
		t.Setenv("EAGERGC_TEST", c.text)
		var got string
		out := warnings(t, func() { got = EnvChoice("EAGERGC_TEST", strings.Fields(c.words)...) })
		if got != c.want || (c.says == "") != (out == "") || !strings.Contains(out, c.says) {
			t.Errorf("%q of %s is %s, want %s; said %q", c.text, c.words, got, c.want, out)
		}
	}
}

// TestEnvLimit: the hard limit goes before the soft one. What cannot be read takes no other with it and is named; the size of the space
// is asked for only if a variable is set, and bounds the limit where it is known.
func TestEnvLimit(t *testing.T) {
	const all = 100 << 30
	for _, c := range []struct {
		hard, soft   string
		total, bytes int64
		set          bool
		asked        int
		warns        string
	}{
		{"", "", all, 0, false, 0, ""},
		{"2GiB", "1GiB", all, 2 << 30, true, 1, ""},
		{"", "1GiB", all, 1 << 30, true, 1, ""},
		{" 1GiB ", "", all, 1 << 30, true, 1, ""},
		{"50%", "", all, 50 << 30, true, 1, ""},
		{"1000TiB", "", all, all, true, 1, ""},
		{"1PiB", "1GiB", 0, 1 << 50, true, 1, ""},
		{"none", "1GiB", all, 0, true, 1, ""},
		{"2Gib", "1GiB", all, 1 << 30, true, 1, `EAGERGC_HOST_HARD_MEMORY_LIMIT=\"2Gib\"`},
		{"2GiB", "lots", all, 2 << 30, true, 1, ""},
		{"", "1e9", all, 0, false, 0, `EAGERGC_HOST_SOFT_MEMORY_LIMIT=\"1e9\"`},
		{"300", "", all, 300, true, 1, `EAGERGC_HOST_HARD_MEMORY_LIMIT=300 is a limit of 300 bytes; for MiB write 300MiB`},
		{"0", "1GiB", all, 0, true, 1, ""},
		{"104857600", "", all, 100 << 20, true, 1, ""},
		{"50%", "", 0, 0, false, 1, "the total of the space is not known"},
		{"50%", "1GiB", 0, 1 << 30, true, 2, "the total of the space is not known"},
	} {
		t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", c.hard)
		t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", c.soft)
		asked := 0
		out := warnings(t, func() {
			if bytes, set := EnvLimit(Host, func() int64 { asked++; return c.total }); bytes != c.bytes || set != c.set || asked != c.asked {
				t.Errorf("%q and %q: %d, %v, asked %d times; want %+v", c.hard, c.soft, bytes, set, asked, c)
			}
		})
		if strings.Count(out, "level=WARN") != min(1, len(c.warns)) || !strings.Contains(out, c.warns) {
			t.Errorf("%q and %q: said %q", c.hard, c.soft, out)
		}
	}
}

// TestOrFromEnv: the variable of a space goes before the general one, limit by limit. The general one does not bound memory of the host, and is asked
// where that of the space cannot be read or obeyed.
func TestOrFromEnv(t *testing.T) {
	asItIs := func(l Limits) (Limits, error) { return l, nil }
	noHard := func(l Limits) (Limits, error) {
		if l.Hard != (Limit{}) {
			return l, errors.New("not here")
		}
		return l, nil
	}
	t.Setenv("EAGERGC_SOFT_MEMORY_LIMIT", "1GiB")
	t.Setenv("EAGERGC_HARD_MEMORY_LIMIT", "50%")
	for _, c := range []struct {
		space      Space
		own        Limits
		soft, hard string // of the space
		obey       func(Limits) (Limits, error)
		want       string
		warns      []string
	}{
		{Device(0), Limits{}, "", "", asItIs, "1GiB 50%", nil},
		{Device(1), Limits{}, "", "2GiB", asItIs, "1GiB 2GiB", nil},
		{Managed, Limits{}, "", "", asItIs, "1GiB 50%", nil},
		{Pinned, Limits{}, "1MiB", "", asItIs, "1MiB ", nil},
		{Host, Limits{}, "", "", asItIs, " ", nil},
		{Device(0), Limits{Hard: Limit{Bytes: 9}}, "2MiB", "3MiB", asItIs, "2MiB 9B", nil},
		{Device(0), Limits{Soft: Limit{Percent: 9}}, "2MiB", "3MiB", asItIs, "9% 3MiB", nil},
		{Device(0), Limits{}, "", "lots", asItIs, "1GiB 50%", []string{"DEVICE0_HARD"}},
		{Device(0), Limits{}, "2Gib", " none ", asItIs, "1GiB ", []string{"DEVICE0_SOFT"}},
		{Device(0), Limits{}, "3000.5", "4000B", asItIs, "1GiB 4k", []string{"DEVICE0_SOFT"}},
		{Device(0), Limits{}, "", "1GiB", noHard, "1GiB ", []string{"DEVICE0_HARD", "EAGERGC_HARD", "not here"}},
	} {
		name := "EAGERGC_" + strings.ToUpper(c.space.String())
		t.Setenv(name+"_SOFT_MEMORY_LIMIT", c.soft)
		t.Setenv(name+"_HARD_MEMORY_LIMIT", c.hard)
		out := warnings(t, func() {
			if got := c.own.OrFromEnv(c.space, c.obey); fmt.Sprint(got.Soft, " ", got.Hard) != c.want {
				t.Errorf("%+v: %v %v", c, got.Soft, got.Hard)
			}
		})
		for _, want := range c.warns {
			if !strings.Contains(out, want) {
				t.Errorf("%q and %q: no word of %s in %q", c.soft, c.hard, want, out)
			}
		}
		if len(c.warns) == 0 && out != "" {
			t.Errorf("%q and %q: said %q", c.soft, c.hard, out)
		}
		os.Unsetenv(name + "_SOFT_MEMORY_LIMIT")
		os.Unsetenv(name + "_HARD_MEMORY_LIMIT")
	}
}

// TestUnknownVariables: a misspelt name is listed. The names that packages read are those of the table.
func TestUnknownVariables(t *testing.T) {
	known := []string{"EAGERGC_DEVICE12_SOFT_MEMORY_LIMIT", "EAGERGC_TEST_X", "EAGERG", "PATH", "EAGERGC_EMPTY= ", "EAGERGC_NONE="}
	unknown := []string{"EAGERGC_HOST_HARD_MEMORY_LIMT", "EAGERGC_LIMIT", "EAGERGC_GPU_HARD_MEMORY_LIMIT", "EAGERGC_DEVICE_SOFT_MEMORY_LIMIT", "EAGERGC_host_HARD_MEMORY_LIMIT", "EAGERGCX"}
	for _, folder := range []string{"../gc/", "../gc/auto/", "../gc/auto/trim/", "../pool/cuda/"} {
		files, _ := filepath.Glob(folder + "*.go")
		for _, file := range files {
			text, _ := os.ReadFile(file)
			for _, m := range regexp.MustCompile(`"(EAGERGC(?:_[A-Z_]*[A-Z])?)"`).FindAllSubmatch(text, -1) {
				known = append(known, string(m[1]))
			}
		}
	}
	for _, v := range Variables() {
		if !slices.Contains(known, v.Name) && !strings.HasSuffix(v.Name, "_LIMIT") {
			t.Errorf("nothing reads %s", v.Name)
		}
	}
	environ := slices.Concat(known, unknown)
	for i, name := range environ {
		if !strings.Contains(name, "=") {
			environ[i] += "=1"
		}
	}
	if got := SetVariables([]string{"PATH=/", "EAGERGC=off", "EAGERGC_HOST_SOFT_MEMORY_LIMIT=1GiB", "EAGERGC_TRIM=", "EAGERGC_SPACE_HARD_MEMORY_LIMIT=1"}); !slices.Equal(got, []string{"EAGERGC=off", "EAGERGC_HOST_SOFT_MEMORY_LIMIT=1GiB"}) {
		t.Errorf("set are %q", got)
	}
	if got := UnknownVariables(environ); !slices.Equal(got, unknown) {
		t.Errorf("%v, want %v", got, unknown)
	}
}
