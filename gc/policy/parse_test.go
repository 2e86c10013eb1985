package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseCanonical(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"never", "never"},
		{"always", "always"},
		{"cudajl", "cudajl"},
		{"threshold", "threshold:0.8"},
		{"threshold:0.80", "threshold:0.8"},
		{"threshold:ratio=.5", "threshold:0.5"},
		{"threshold:-0", "threshold:0"},
		{"periodic", "periodic:10ms"},
		{"periodic:10000us", "periodic:10ms"},
		{"periodic:every=1.5s", "periodic:1.5s"},
		{"growth:min=4096KiB,factor=.25", "growth:0.25"},
		{"growth:1,min=1.50%,overlap=0", "growth:1,min=1.5%,overlap=false"},
		{"softmax:100000KiB", "softmax:max=102400k"},
		{"growth:min=100M", "growth:1,min=100M"},
		{"growth:min=1.5 GiB", "growth:1,min=1536MiB"},
		{"softmax:max=300000000B", "softmax"},
		{"v8step:soft=67108864B,hard=50%", "v8step"},
		{"random:0.5,seed=1", "random:0.5"},
		{"sqrt:c=0.000000001", "sqrt:c=1e-09"},
		{"random:1,seed=9223372036854775807", "random:1,seed=9223372036854775807"},
		{"random:0,seed=0", "random:0,seed=0"},
		{"cudajl:poll=0s,young=1,overlap=true", "cudajl:overlap=true"},
		{"cudajl:poll=1ns", "cudajl:poll=1ns"},
		{"host:overhead=0%", "host:overhead=0%"},
		{"host:overhead=100%,price=1", "host:price=1,overhead=100%"},
		{"host:overhead=2.5%", "host:overhead=2.5%"},
		{"growth:1000000", "growth:1e+06"},
		{"growth:0", "growth:0"},
		{"every-sync:1", "every-sync"},
		{"every-sync:2", "every-sync:n=2"},
		{"gomemlimit:1MiB", "gomemlimit:handle=1MiB"},
		{"erlang:min=100%", "erlang:min=100%"},
	} {
		s, err := Parse(c.text)
		if err != nil || s.String() != c.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", c.text, s, err, c.want)
		}
		if got := s.New().String(); got != c.want {
			t.Errorf("Parse(%q).New().String() = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `policy: unknown policy "" (there are `},
		{"treshold:0.8", `policy: unknown policy "treshold" (there are `},
		{"cuda.jl", `policy: unknown policy "cuda.jl" (there are `},
		{"NEVER", `policy: unknown policy "NEVER" (there are `},
		{"threshold:", `policy: threshold: ratio: "" is not a number from 0 to 1`},
		{"threshold:NaN", `policy: threshold: ratio: "NaN" is not a number`},
		{"threshold:80%", `policy: threshold: ratio: "80%" is not a number`},
		{"threshold:1.01", `policy: threshold: ratio: "1.01" is not a number`},
		{"threshold:raito=0.8", `policy: threshold: unknown parameter "raito" (there are `},
		{"threshold:0.8,0.9", `policy: threshold: want key=value, got "0.9"`},
		{"threshold:0.8,ratio=0.8", `policy: threshold: parameter ratio given twice`},
		{"periodic:0s", `policy: periodic: every: "0s" is not a duration such as`},
		{"periodic:10", `policy: periodic: every: "10" is not a duration`},
		{"dotnet:budget=0", `policy: dotnet: budget: "0" is not a size such as`},
		{"dotnet:budget=0%", `policy: dotnet: budget: "0%" is not a size such as`},
		{"dotnet:budget=101%", `policy: dotnet: budget: "101%" is not a size such as`},
		{"dotnet:budget=9007199254740992KiB", `policy: dotnet: budget: "9007199254740992KiB" is not a size such as`},
		{"cudajl:poll=-1ns", `policy: cudajl: poll: "-1ns" is not a duration such as 10ms, or 0s`},
		{"periodic:-1ns", `policy: periodic: every: "-1ns" is not a duration`},
		{"host:overhead=2", `policy: host: overhead: "2" is not a share such as 2%`},
		{"host:overhead=x%", `policy: host: overhead: "x%" is not a share such as 2%`},
		{"host:overhead=100.5%", `policy: host: overhead: "100.5%" is not a share such as 2%`},
		{"host:overhead=-1%", `policy: host: overhead: "-1%" is not a share such as 2%`},
		{"every-sync:0", `policy: every-sync: n: "0" is not an integer from 1`},
		{"every-sync:1.5", `policy: every-sync: n: "1.5" is not an integer from 1`},
		{"growth:1000000.1", `policy: growth: factor: "1000000.1" is not a number from 0 to 1e+06`},
		{"growth:-0.1", `policy: growth: factor: "-0.1" is not a number from 0 to 1e+06`},
		{"growth:1,min=", `policy: growth: min: "" is not a size such as 64MiB, or 1% of the limit`},
		{"growth:1,min=none", `policy: growth: min: "none" is not a size such as`},
		{"growth:1,min=7", `policy: growth: min: "7" is not a size such as`},
		{"gomemlimit:handle=none", `policy: gomemlimit: handle: "none" is not a size such as 64MiB`},
		{"gomemlimit:1%", `policy: gomemlimit: handle: "1%" is not a size such as`},
		{"random:0.1,seed=-1", `policy: random: seed: "-1" is not an integer from 0`},
		{"growth:1,overlap=maybe", `policy: growth: overlap: "maybe" is not true or false`},
		{"never:1", `policy: never: want key=value, got "1"`},
		{"opencl:x=1", `policy: opencl: unknown parameter "x" (there are trigger, high, reset, overlap)`},
		{"gomemlimit:0.5%", `policy: gomemlimit: handle: "0.5%" is not a size such as 64MiB`},
		{"never:x=1", `policy: never: unknown parameter "x" (it has none)`},
	} {
		if s, err := Parse(c.text); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Parse(%q) = %q, %v; want error %s", c.text, s, err, c.want)
		}
	}
}

func TestSplitList(t *testing.T) {
	for _, c := range []struct {
		list string
		want []string
	}{
		{"", []string{""}},
		{"never", []string{"never"}},
		{"never,threshold:0.5, cudajl", []string{"never", "threshold:0.5", "cudajl"}},
		{"growth:0.5,min=1%,overlap=false,never", []string{"growth:0.5,min=1%,overlap=false", "never"}},
		{"periodic,every=5ms,never,", []string{"periodic:every=5ms", "never", ""}},
		{"every=5ms,sqrt:c=1", []string{"every=5ms", "sqrt:c=1"}},
	} {
		if got := SplitList(c.list); !slices.Equal(got, c.want) {
			t.Errorf("SplitList(%q) = %q, want %q", c.list, got, c.want)
		}
	}
}

// TestNewIsFresh makes sure that two runs share nothing.
func TestNewIsFresh(t *testing.T) {
	for _, info := range List() {
		s := MustParse(info.Name)
		a, b := paramsOf(s.New()), paramsOf(s.New())
		for i, q := range a {
			q.reset()
			if got := b[i].get(); got != q.Default {
				t.Errorf("%s: default of %s is %s, want %s", info.Name, q.Name, got, q.Default)
			}
		}
	}
}

// TestTable checks what help texts and documents are made of.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, info := range List() {
		if seen[info.Name] || info.Doc == "" {
			t.Errorf("%s: twice in the table, or without a line about it", info.Name)
		}
		seen[info.Name] = true
		if name, _, _ := strings.Cut(MustParse(info.Name).String(), ":"); name != info.Name {
			t.Errorf("%s calls itself %s", info.Name, name)
		}
		if name, _, _ := strings.Cut(info.Scaled, ":"); info.Scaled != "" && (name != info.Name || MustParse(info.Scaled).String() != info.Scaled) {
			t.Errorf("%s: %s is not a scaled form of it", info.Name, info.Scaled)
		}
		for i, q := range info.Params {
			if q.Name == "" || q.Doc == "" || q.Values == "" || q.Headline && i > 0 {
				t.Errorf("%s: parameter %q lacks a text, or is a headline but not first", info.Name, q.Name)
			}
			if s, err := Parse(info.Name + ":" + q.Name + "=" + q.Default); err != nil || s != MustParse(info.Name) {
				t.Errorf("%s: default %s=%s gives %v, %v", info.Name, q.Name, q.Default, s, err)
			}
		}
	}
}

func TestSpecText(t *testing.T) {
	var zero, s Spec
	if zero.String() != "never" || zero.New().String() != "never" {
		t.Errorf("the zero Spec is %s", zero)
	}
	text, _ := MustParse("threshold:0.25").MarshalText()
	if err := s.UnmarshalText(text); err != nil || s != MustParse("threshold:0.25") {
		t.Errorf("%s became %v, %v", text, s, err)
	}
	if err := s.UnmarshalText([]byte("nope")); err == nil {
		t.Error("UnmarshalText took nope")
	}
}

// A text that is not good is no mistake of the program's user where MustParse reads it.
func TestMustParsePanics(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), `unknown policy "nope"`) {
			t.Errorf("panics with %v", err)
		}
	}()
	MustParse("nope")
}

// TestSizes: a percentage counts under a known limit, and bytes elsewhere: those of the default.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text        string
		limit, want int64
	}{
		{"1%", 1000, 10}, {"1.5%", 1000, 15}, {"100%", 7, 7}, {"1%", 99, 0}, {"1%", 0, 77}, {"1%", -1, 77}, {"5kB", 1000, 5000}, {"5kB", 0, 5000},
		{"100%", math.MaxInt64, math.MaxInt64},
	} {
		s, err := parseSize(c.text, 77)
		if err != nil || s.Of(c.limit) != c.want {
			t.Errorf("%s of %d: %d, %v; want %d", c.text, c.limit, s.Of(c.limit), err, c.want)
		}
	}
	for bytes, want := range map[float64]int64{0: 0, -1: 0, 0.9: 0, 1.9: 1, math.NaN(): 0, math.Inf(1): math.MaxInt64, math.Inf(-1): 0, 0x1p63: math.MaxInt64, 0x1p62: 1 << 62} {
		if got := toBytes(bytes); got != want {
			t.Errorf("%g is %d bytes, want %d", bytes, got, want)
		}
	}
	for _, bytes := range []float64{0, 1, 2, 1000, 1e6, 1 << 40, 140e9, 0x1p62} {
		if got := wakeBelow(bytes); float64(got) >= max(1, bytes) || float64(got) < bytes-2-bytes*0x1p-49 {
			t.Errorf("wakes at %d, want just below %g", got, bytes)
		}
	}
}

// TestWordsOfEachKind: what recordings, pages and tables call them.
func TestWordsOfEachKind(t *testing.T) {
	got := fmt.Sprint(Allocation, Sync, Skip, Overlap, Block, TriggerPolicy, TriggerRefusal, TriggerNatural, TriggerExplicit)
	if got != "allocation sync skip overlap block policy refusal natural explicit" {
		t.Error(got)
	}
}

// TestCycleShareIsThatOfYoungCollections, which a replay takes for cheaper.
func TestCycleShareIsThatOfYoungCollections(t *testing.T) {
	for text, want := range map[string]float64{"cudajl": 1, "cudajl:young=0.25": 0.25} {
		if p, ok := MustParse(text).New().(interface{ CycleShare() float64 }); !ok || p.CycleShare() != want {
			t.Errorf("%s: %v, want %g", text, p, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, info := range List() {
		f.Add(info.Name)
		for _, q := range info.Params {
			f.Add(info.Name + ":" + q.Name + "=" + q.Default)
		}
	}
	f.Add("threshold:1e-300")
	f.Add("periodic:,every=1ns,every")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "policy: ") {
				t.Fatalf("%q: error without its package: %v", text, err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil || again != s || s.New().String() != s.String() {
			t.Fatalf("%q became %q, which became %q, %v", text, s, again, err)
		}
	})
}
