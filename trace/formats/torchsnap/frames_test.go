package torchsnap

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eagergc/eagergc/trace"
)

// Real snapshots: each place in the Python program allocated what Python says of
// the file, whether C++ frames stand between or not.
func TestStacks(t *testing.T) {
	var want map[string]map[string][2]int64
	if err := json.Unmarshal(sample(t, "stacks.json"), &want); err != nil {
		t.Fatal(err)
	}
	for name, sums := range want {
		tr := mustRead(t, sample(t, "stacks."+name+".p4.pickle.gz"))
		before, _ := strconv.Atoi(tr.Meta["live_before_objects"])
		got := map[string][2]int64{}
		for _, e := range tr.Events {
			if e.Kind != trace.Alloc {
				continue
			}
			if before--; before >= 0 {
				continue
			}
			var places []string
			for line := range strings.Lines(tr.Label(e)) {
				_, place, _ := strings.Cut(strings.TrimSpace(line), "\t")
				if strings.Contains(place, ".py:") {
					places = append(places, place)
				}
				if name, place, _ := strings.Cut(line, "\t"); isMachinery(name, place) && !strings.Contains(place, ".py:") {
					t.Errorf("%s: %q is left", name, line)
				}
			}
			n := got[strings.Join(places, ";")]
			got[strings.Join(places, ";")] = [2]int64{n[0] + 1, n[1] + e.Bytes}
		}
		if !maps.Equal(got, sums) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got, sums)
		}
		if !slices.ContainsFunc(tr.Labels, func(l string) bool { return strings.Contains(l, "linear.forward\ttorch/nn/modules/linear.py:134") }) {
			t.Errorf("%s: no site in a linear layer: %q", name, tr.Labels)
		}
	}
}

func frameOf(name, file, line any) dict {
	return dict{{"name", name}, {"filename", file}, {"line", line}}
}

// with adds items to a dict.
func with(d any, items ...item) dict { return append(slices.Clone(d.(dict)), items...) }

// sites returns the labels of the allocations.
func sites(tr *trace.Trace) (out []string) {
	for _, e := range tr.Events {
		if e.Kind == trace.Alloc {
			out = append(out, tr.Label(e))
		}
	}
	return out
}

func TestSites(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	deep := make(list, 3*maxDepth)
	for i := range deep {
		deep[i] = frameOf(fmt.Sprint("f", i), "a.py", i)
	}
	wide := make(list, maxDepth)
	for i := range wide {
		wide[i] = frameOf(strings.Repeat("y", 300), strings.Repeat("b", 200)+".cpp", i)
	}
	memoized := raw(string(pickled(frameOf("g", "m.py", 2))[2:][:len(pickled(frameOf("g", "m.py", 2)))-3]) + "q\x05")
	for name, c := range map[string]struct {
		frames any
		want   string
	}{
		"plain":          {list{frameOf("f", "a/b.py", 3), frameOf("<module>", "/c.py", 12)}, "b.f\ta/b.py:3\nc.module\t/c.py:12"},
		"empty":          {list{}, ""},
		"no list":        {5, ""},
		"not frames":     {list{5, "x", list{}, frameOf("f", "a", 1)}, "f\ta:1"},
		"only machinery": {list{frameOf("_PyEval_EvalFrameDefault", "??", 0)}, ""},
		"C++":            {list{frameOf("torch::unwind::unwind()", "??", 0), frameOf("at::empty()", "??", 0), frameOf("at::x<int>", "y.cpp", 0)}, "at::empty\nat::x<int>\ty.cpp:0"},
		"C++ names":      {list{frameOf("a::(anonymous namespace)::b(int, (anonymous namespace)::c)", "", 0), frameOf("(anonymous namespace)::d() const", "??", 0), frameOf("(x)", "", 0)}, "a::(anonymous namespace)::b\n(anonymous namespace)::d\n(x)"},
		"bad types":      {list{frameOf(7, 8, "9")}, "(no name)"},
		"bad line":       {list{frameOf("f", "a.c", -1), frameOf("f", "a.c", 1<<40)}, "f\ta.c:0\nf\ta.c:0"},
		"lost name":      {list{frameOf(long, "a.c", 1)}, "(no name)\ta.c:1"},
		"two lines":      {list{frameOf("f\n0 alloc\t", "a\tb.c", 1)}, "f 0 alloc\ta b.c:1"},
		"no UTF-8":       {list{frameOf("f\xff", "\xfe", 1)}, "f\ufffd\t\ufffd:1"},
		"written late":   {list{memoized, raw("h\x05")}, "m.g\tm.py:2\nm.g\tm.py:2"},
		"frames in frame":/* the outer list is given up */ {list{dict{{"name", "f"}, {"frames", list{frameOf("g", "a.c", 1)}}, {"filename", "a.c"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			alloc := with(entryOf("alloc", 512, 100, modelBase), item{"frames", c.frames})
			held := with(blockOf(1<<20, 77, "active_allocated"), item{"frames", c.frames})
			tr := mustRead(t, pickled(snap(list{segmentOf(0, 0, 1<<21, held)}, alloc)))
			if got := sites(tr); !slices.Equal(got, []string{c.want, c.want}) {
				t.Errorf("got %q, want %q twice", got, c.want)
			}
			if err := tr.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	tr := mustRead(t, pickled(snap(list{}, with(entryOf("alloc", 512, 100, modelBase), item{"frames", deep}), with(entryOf("alloc", 1024, 100, modelBase), item{"frames", wide}))))
	got := sites(tr)
	if lines := strings.Split(got[0], "\n"); len(lines) != maxDepth || lines[maxDepth-1] != "a.f95\ta.py:95" {
		t.Errorf("deep: %q", got[0])
	}
	if len(got[1]) > maxLabel || len(got[1]) < maxLabel-400 || !strings.HasPrefix(got[1], strings.Repeat("y", maxFrameName-3)+"...\tb") {
		t.Errorf("wide: %q", got[1])
	}
}

// A list of frames that several entries share is one site, before and after
// other lists, and one that is made larger later does no harm.
func TestSharedStacks(t *testing.T) {
	frames := func(name string, key byte) raw {
		b := pickled(list{frameOf(name, "a.c", 1)})
		return raw(string(b[2:len(b)-1]) + "q" + string(key))
	}
	entries := list{
		with(entryOf("alloc", 512, 1, modelBase), item{"frames", frames("f", 1)}),
		with(entryOf("alloc", 1024, 1, modelBase), item{"frames", frames("g", 2)}),
		with(entryOf("alloc", 2048, 1, modelBase), item{"frames", raw("h\x01")}),
		with(entryOf("alloc", 4096, 1, modelBase), item{"frames", raw("h\x02(}(X\x04\x00\x00\x00nameX\x01\x00\x00\x00zue")}),
		with(entryOf("alloc", 8192, 1, modelBase), item{"frames", list{}}),
		with(entryOf("alloc", 1<<14, 1, modelBase), item{"frames", frames("g", 3)}),
	}
	tr := mustRead(t, pickled(snap(list{}, entries...)))
	if got := sites(tr); !slices.Equal(got[:3], []string{"f\ta.c:1", "g\ta.c:1", "f\ta.c:1"}) || got[4] != "" || got[5] != "g\ta.c:1" {
		t.Errorf("%q", got)
	}
	if len(tr.Labels) > 4 {
		t.Errorf("labels %q", tr.Labels)
	}
}

// However many stacks a file has, and however long, the labels are bounded.
func TestManyStacks(t *testing.T) {
	var entries list
	for i := range maxStacks + 10 {
		frames := list{frameOf("f", "a.c", i+1), frameOf("f", "a.c", i+2)}
		entries = append(entries, with(entryOf("alloc", 512*(i+1), 1, modelBase), item{"frames", frames}))
	}
	got := sites(mustRead(t, pickled(snap(list{}, entries...))))
	if got[0] != "f\ta.c:1\nf\ta.c:2" || got[maxStacks-1] == otherStacks || got[maxStacks] != otherStacks || got[maxStacks+9] != otherStacks {
		t.Errorf("%q, %q, %q", got[0], got[maxStacks-1], got[maxStacks])
	}
	entries = nil
	for i := range 6000 {
		var frames list
		for k := range 40 {
			frames = append(frames, frameOf(strings.Repeat(fmt.Sprintf("%c", 'a'+k%26), 250), "a.c", i+k))
		}
		entries = append(entries, with(entryOf("alloc", 512*(i+1), 1, modelBase), item{"frames", frames}))
	}
	tr := mustRead(t, pickled(snap(list{}, entries...)))
	total := 0
	for _, l := range tr.Labels {
		total += len(l)
		if !utf8.ValidString(l) {
			t.Fatalf("%q", l)
		}
	}
	if got := sites(tr); total > maxLabels+100 || total < maxLabels/2 || got[5999] != otherStacks {
		t.Errorf("%d bytes of labels, the last %q", total, got[5999])
	}
}
