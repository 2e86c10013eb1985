package trace_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestKinds: the numbers, words and labels of kinds are part of the format.
func TestKinds(t *testing.T) {
	labelled := []trace.Kind{trace.Alloc, trace.Sync, trace.Mark, trace.Decision}
	for i, word := range []string{"alloc", "drop", "free", "sync", "cycle", "refuse", "reserve", "release", "mark", "decision", "unknown"} {
		k, err := trace.ParseKind(word)
		if i == 10 {
			k = 10
			if err == nil || err.Error() != `unknown kind "unknown" (want one of alloc, drop, free, sync, cycle, refuse, reserve, release, mark, decision)` {
				t.Error(err)
			}
		} else if err != nil {
			t.Error(err)
		}
		tr, want := trace.Trace{Labels: []string{"", "a"}}, ""
		if k.Labelled() {
			want = "a"
		}
		if k != trace.Kind(i) || k.String() != word || k.Labelled() != slices.Contains(labelled, k) || tr.Label(trace.Event{Kind: k, Aux: 1}) != want {
			t.Errorf("%s is kind %d, written %v, labelled %v", word, k, k, k.Labelled())
		}
		if tr.Label(trace.Event{Kind: k, Aux: 2}) != "" || tr.Label(trace.Event{Kind: k, Aux: 1 << 31}) != "" {
			t.Errorf("%v has a label that is not there", k)
		}
	}
	if trace.FreeExplicit != 0 || trace.FreeCycle != 1 {
		t.Error("numbers of the format have changed")
	}
}

// TestSort: by time. Where times are not in order waits come last at each; other events stay as they are.
func TestSort(t *testing.T) {
	check(t, 300, func(t *random) {
		var events []trace.Event
		for i := range between(t, 0, 20) {
			events = append(events, trace.Event{Time: int64(t.IntN(4)), ID: uint64(i), Kind: pick(t, trace.Alloc, trace.Sync, trace.Drop)})
		}
		want := slices.Clone(events)
		if !slices.IsSortedFunc(events, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) }) {
			for range want { // exchanges neighbours
				for i := 1; i < len(want); i++ {
					a, b := want[i-1], want[i]
					if a.Time > b.Time || a.Time == b.Time && a.Kind == trace.Sync && b.Kind != trace.Sync {
						want[i-1], want[i] = b, a
					}
				}
			}
		}
		if trace.Sort(events); !slices.Equal(events, want) {
			t.Fatalf("got  %v\nwant %v", events, want)
		}
	})
}

// TestValidate: the first event with a fault is named, with the fault. The same events without it are a trace.
func TestValidate(t *testing.T) {
	alloc := func(at int64, id uint64, bytes int64) trace.Event {
		return trace.Event{Time: at, Kind: trace.Alloc, ID: id, Bytes: bytes, Space: pressure.Device(0)}
	}
	end := func(kind trace.Kind, at int64, id uint64, bytes int64) trace.Event {
		return trace.Event{Time: at, Kind: kind, ID: id, Bytes: bytes, Space: pressure.Device(0)}
	}
	drop, free := trace.Drop, trace.Free
	dropped := []trace.Event{alloc(0, 510, 8), alloc(0, 511, 8), alloc(1, 512, 7), end(drop, 1, 511, 8)}
	freed := append(slices.Clone(dropped), end(free, 2, 511, 8), end(free, 2, 512, 7), alloc(3, 1<<40, 0))
	most := []trace.Event{alloc(0, 1, 1<<61), alloc(0, 2, 1<<61-1)}
	for _, c := range []struct {
		valid []trace.Event
		bad   trace.Event
		want  string
	}{
		{nil, trace.Event{Kind: trace.Decision + 1}, "unknown kind 10"},
		{dropped, trace.Event{Kind: trace.Sync}, "time goes backwards: 0 ns after 1 ns"},
		{[]trace.Event{{Time: -5, Kind: trace.Decision, Bytes: -1}}, trace.Event{Kind: trace.Mark, Bytes: -1}, "-1 bytes"},
		{nil, trace.Event{Kind: trace.Reserve, Bytes: 1 << 62}, "4611686018427387904 bytes are not below 2^62"},
		{nil, trace.Event{Kind: trace.Sync, Duration: -1}, "lasts -1 ns"},
		{[]trace.Event{{Kind: trace.Sync, Aux: 1}, {Kind: trace.Cycle, Aux: 2}}, trace.Event{Kind: trace.Mark, Aux: 2}, "label 2 of 2"},
		{dropped, alloc(4, 510, 1), "object 510 is allocated twice"},
		{dropped, alloc(4, 511, 1), "object 511 is allocated twice"},
		{freed, alloc(4, 512, 1), "object 512 is allocated twice"},
		{most, alloc(0, 3, 1), "all sizes together are not below 2^62 bytes"},
		{freed, end(free, 4, 9, 1), "object 9 was not allocated"},
		{freed, end(free, 4, 513, 1), "object 513 was not allocated"},
		{freed, end(drop, 4, 512, 7), "object 512 was freed before"},
		{dropped, end(drop, 4, 511, 8), "object 511 was dropped before"},
		{append(freed, end(drop, 3, 510, 8)), end(drop, 4, 510, 8), "object 510 was dropped before"},
		{freed, end(free, 4, 510, 9), "9 bytes of object 510, which has 8"},
		{freed, trace.Event{Time: 4, Kind: free, ID: 510, Bytes: 8}, "object 510 is in device0, not in host"},
	} {
		tr := trace.Trace{Labels: []string{"", "a"}, Events: slices.Clone(c.valid)}
		if err := tr.Validate(); err != nil {
			t.Errorf("before %q: %v", c.want, err)
		}
		tr.Events = append(tr.Events, c.bad, trace.Event{Kind: 99})
		err := tr.Validate()
		if err == nil || err.Error() != fmt.Sprintf("trace: event %d (%v at %d ns): %s", len(c.valid), c.bad.Kind, c.bad.Time, c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
