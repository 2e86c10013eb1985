package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc/policy/param"
)

func TestParseCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"never": "never", "threshold": "threshold:0.8", "threshold:ratio=.50": "threshold:0.5", "threshold:-0": "threshold:0",
		"periodic:10000us": "periodic:10ms", "periodic:every=1.5s": "periodic:1.5s", "growth:min=4096KiB,factor=.25": "growth:0.25", "growth:1000000": "growth:1e+06",
		"growth:1,min=1.50%,overlap=0": "growth:1,min=1.5%,overlap=false", "growth:min=100M": "growth:1,min=100M", "growth:min=1.5 GiB": "growth:1,min=1536MiB", "growth:min=100%": "growth:1,min=100%",
		"sqrt:c=0.000000001": "sqrt:c=1e-09", "cudajl:poll=0s,young=1,overlap=true": "cudajl:overlap=true", "cudajl:poll=1ns": "cudajl:poll=1ns",
		"host:overhead=100%,price=1": "host:price=1,overhead=100%", "host:overhead=2.5%": "host:overhead=2.5%", "host:overhead=0%": "host:overhead=0%",
		"every-sync:1": "every-sync", "every-sync:9223372036854775807": "every-sync:n=9223372036854775807",
	} {
		s, err := Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", text, s, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": `unknown policy ""`, "treshold:0.8": `unknown policy "treshold" (there are never, always, `, "dotnet:budget=1%": `dotnet is a rule for studies: import _ "github.com/eagergc/eagergc/cmd/replay/comparators"`,
		"threshold:": `threshold: ratio: "" is not a number from 0 to 1`, "threshold:NaN": `threshold: ratio: "NaN" is not a number`, "threshold:1.01": `threshold: ratio: "1.01" is not a number`,
		"threshold:raito=0.8": `threshold: unknown parameter "raito" (there are ratio, overlap)`, "threshold:0.8,0.9": `threshold: want key=value, got "0.9"`, "threshold:0.8,ratio=0.8": `threshold: parameter ratio given twice`,
		"periodic:0s": `periodic: every: "0s" is not a duration such as`, "periodic:10": `periodic: every: "10" is not a duration`, "periodic:-1ns": `periodic: every: "-1ns" is not a duration`,
		"growth:1,min=0": `growth: min: "0" is not a size such as`, "growth:1,min=9007199254740992KiB": `growth: min: "9007199254740992KiB" is not a size such as`, "growth:1,min=none": `growth: min: "none" is not a size such as`,
		"cudajl:poll=-1ns": `cudajl: poll: "-1ns" is not a duration such as 10ms, or 0s`, "host:overhead=2": `host: overhead: "2" is not a share such as 2%`, "host:overhead=100.5%": `host: overhead: "100.5%" is not a share such as 2%`,
		"every-sync:0": `every-sync: n: "0" is not an integer from 1`, "every-sync:1.5": `every-sync: n: "1.5" is not an integer from 1`, "growth:1000000.1": `growth: factor: "1000000.1" is not a number from 0 to 1e+06`,
		"growth:1,overlap=maybe": `growth: overlap: "maybe" is not true or false`, "never:1": `never: want key=value, got "1"`, "never:x=1": `never: unknown parameter "x" (it has none)`,
	} {
		if s, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), "policy: "+want) {
			t.Errorf("Parse(%q) = %q, %v; want error %s", text, s, err, want)
		}
	}
}

func TestSplitList(t *testing.T) {
	for _, c := range []struct {
		list string
		want []string
	}{
		{"", []string{""}}, {"never", []string{"never"}},
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

// TestTable checks the texts that help and documents are made of.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, info := range List() {
		name, _, _ := strings.Cut(MustParse(info.Name).String(), ":")
		if seen[info.Name] || info.Doc == "" || name != info.Name {
			t.Errorf("%s: twice in the table, without a line about it, or calls itself %s", info.Name, name)
		}
		seen[info.Name] = true
		if info.Scaled != "" && (!strings.HasPrefix(info.Scaled, info.Name+":") || MustParse(info.Scaled).String() != info.Scaled) {
			t.Errorf("%s: %s is not a scaled form of it", info.Name, info.Scaled)
		}
		for i, q := range info.Params {
			s, err := Parse(info.Name + ":" + q.Name + "=" + q.Default)
			if q.Name == "" || q.Doc == "" || q.Values == "" || q.Headline && i > 0 || err != nil || s != MustParse(info.Name) {
				t.Errorf("%s: parameter %q lacks a text, or is a headline but not first, or its default gives %v, %v", info.Name, q.Name, s, err)
			}
		}
	}
}

func TestSpecText(t *testing.T) {
	var zero Spec
	if zero.String() != "never" || zero.New().String() != "never" {
		t.Errorf("the zero Spec is %s", zero)
	}
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), `unknown policy "nope"`) {
			t.Errorf("panics with %v", err)
		}
	}()
	MustParse("nope")
}

// TestSizes: a percentage counts under a known limit, and bytes elsewhere. A size of 0 or less is 0, and none is too large.
func TestSizes(t *testing.T) {
	percent := func(p float64) param.Size { return param.Size{Bytes: 77, Percent: p} }
	for _, c := range []struct {
		size        param.Size
		limit, want int64
	}{
		{percent(1), 1000, 10}, {percent(1.5), 1000, 15}, {percent(100), 7, 7}, {percent(1), 99, 0}, {percent(1), 0, 77}, {percent(1), -1, 77}, {percent(0), 1000, 77},
		{percent(100), math.MaxInt64, math.MaxInt64}, {percent(math.NaN()), 10, 77}, {percent(50), 1 << 62, 1 << 61},
	} {
		if got := c.size.Of(c.limit); got != c.want {
			t.Errorf("%+v of %d is %d, want %d", c.size, c.limit, got, c.want)
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
	if p, ok := MustParse("cudajl:young=0.25").New().(interface{ CycleShare() float64 }); !ok || p.CycleShare() != 0.25 {
		t.Errorf("%v, want 0.25", p)
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
