package recording_test

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"pgregory.net/rapid"
)

// parse reads a trace in text form.
func parse(t testing.TB, text string) *trace.Trace {
	t.Helper()
	tr, err := recording.ReadText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func textOf(t interface{ Fatal(...any) }, tr *trace.Trace) string {
	var b bytes.Buffer
	if err := recording.WriteText(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// between returns a number from low to high.
func between[T ~int | ~int64 | ~uint32 | ~uint64](t *rapid.T, low, high T) T {
	return T(rapid.Int64Range(int64(low), int64(high)).Draw(t, "number"))
}

func coin(t *rapid.T) bool { return rapid.Bool().Draw(t, "coin") }

func pick[T cmp.Ordered](t *rapid.T, list ...T) T { return rapid.SampledFrom(list).Draw(t, "pick") }

// drawValid draws a valid trace: objects are allocated, dropped and freed in any
// legal order, between waits, cycles and marks.
func drawValid(t *rapid.T) *trace.Trace {
	tr := &trace.Trace{Name: rapid.String().Draw(t, "text"), Labels: []string{""}}
	if coin(t) {
		tr.Start = time.Unix(0, between[int64](t, 1, 1<<61)).UTC()
	}
	if coin(t) {
		tr.Meta = map[string]string{rapid.String().Draw(t, "text"): rapid.String().Draw(t, "text"), rapid.String().Draw(t, "text"): ""}
	}
	labels := recording.NewLabeler(tr, nil)
	var there []trace.Event // allocated, and not dropped (Drop) or not freed (Free)
	now := int64(0)
	for range between(t, 0, 60) {
		now += between[int64](t, 0, 1000)
		e := trace.Event{Time: now, Stream: between[uint32](t, 0, 3), Space: pressure.Space(between(t, 0, 5))}
		e.Kind = trace.Kind(between(t, 0, int(trace.Decision)))
		switch e.Kind {
		case trace.Drop, trace.Free:
			if len(there) == 0 {
				continue
			}
			i := between(t, 0, len(there)-1)
			o := there[i]
			if e.Kind == trace.Drop && o.Kind == trace.Drop {
				continue
			}
			there[i].Kind = e.Kind
			if e.Kind == trace.Free {
				there = append(there[:i], there[i+1:]...)
			}
			e.ID, e.Bytes, e.Space = o.ID, o.Bytes, o.Space
		case trace.Alloc:
			e.ID, e.Bytes = uint64(len(tr.Events)+1), between[int64](t, 0, 1<<40)
			there = append(there, e)
		default:
			e.Bytes, e.Duration = between[int64](t, 0, 1<<40), time.Duration(between[int64](t, 0, 1<<40))
		}
		if e.Kind.Labelled() {
			e.Aux = labels.Label(pick(t, "", "a b", "c=\"d\"", "\n", "\xff"))
		} else {
			e.Aux = rapid.Uint32().Draw(t, "aux")
		}
		tr.Record(e)
	}
	return tr
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawValid(t)
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
		text := textOf(t, tr)
		got, err := recording.ReadText(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if !reflect.DeepEqual(got, tr) {
			t.Fatalf("got  %+v\nwant %+v\nin:\n%s", got, tr, text)
		}
	})
}

func TestTextErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0 alloc id=1\nx alloc", `line 2: "x" is neither a time nor name, start or meta`},
		{"5 sync\n\n4 sync", "line 3: time goes backwards: 4 ns after 5 ns"},
		{"0 malloc", `line 1: unknown kind "malloc" (want one of alloc, drop`},
		{"0 alloc size=1", "line 1: size: unknown field"},
		{"0 alloc space=gpu", "line 1: space: pressure: unknown space"},
		{"0 alloc bytes=1MiB", "line 1: bytes: "},
		{"0 sync aux=1", "line 1: aux: a sync has a label instead"},
		{"0 alloc stream=4294967296", "line 1: stream: "},
		{"0 drop aux=4294967296", "line 1: aux: "},
		{`0 drop label="x"`, `line 1: label "x" of a drop`},
		{`0 sync label=x`, `line 1: label x of a sync: want a quoted text`},
		{"0 sync bytes", `line 1: "bytes" is no key=value`},
		{"name x", "line 1: invalid syntax"},
		{"start yesterday", "line 1: parsing time"},
		{`meta "a"`, "line 1: invalid syntax"},
		{strings.Repeat("x", 2<<20), "line 1: bufio.Scanner: token too long"},
	} {
		if _, err := recording.ReadText(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzReadText(f *testing.F) {
	f.Add("eagergc trace 1\nname \"x\"\nmeta \"a\" \"b\"\n0 alloc id=1 bytes=5 space=device0 label=\"y\"\n5 sync duration=3\n")
	f.Add("start 2026-11-21T05:00:00Z\n# note\n0 free id=1 aux=1 stream=2")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := recording.ReadText(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := recording.ReadText(strings.NewReader(textOf(t, tr)))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, textOf(t, tr))
		}
		if !reflect.DeepEqual(again, tr) {
			t.Fatalf("got  %+v\nwant %+v", again, tr)
		}
	})
}
