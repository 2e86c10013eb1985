package trace

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// TestKinds: the numbers, words and labels of kinds are part of the format.
func TestKinds(t *testing.T) {
	words := []string{"alloc", "drop", "free", "sync", "cycle", "refuse", "reserve", "release", "mark", "decision"}
	labelled := []Kind{Alloc, Sync, Mark, Decision}
	for i, word := range words {
		k, err := ParseKind(word)
		if err != nil || k != Kind(i) || k.String() != word || k.Labelled() != slices.Contains(labelled, k) {
			t.Errorf("%s is kind %d, written %v, labelled %v, %v", word, k, k, k.Labelled(), err)
		}
		tr := Trace{Labels: []string{"", "a"}}
		want := ""
		if k.Labelled() {
			want = "a"
		}
		if tr.Label(Event{Kind: k, Aux: 1}) != want || tr.Label(Event{Kind: k, Aux: 2}) != "" || tr.Label(Event{Kind: k, Aux: 1 << 31}) != "" {
			t.Errorf("%v has a label that it has not", k)
		}
	}
	if Kind(len(words)).String() != "unknown" || Kind(255).String() != "unknown" {
		t.Error("a kind too many")
	}
	if _, err := ParseKind("Alloc"); err == nil || err.Error() != `unknown kind "Alloc" (want one of alloc, drop, free, sync, cycle, refuse, reserve, release, mark, decision)` {
		t.Error(err)
	}
	if FreeExplicit != 0 || FreeCycle != 1 || eventBytes != 48 {
		t.Error("numbers of the format have changed")
	}
}

// TestSort: by time, and where times are not in order waits come last at each; other events stay as they are.
func TestSort(t *testing.T) {
	of := func(numbers ...uint64) (events []Event) { // time, and 1 for a wait, and its place
		for _, n := range numbers {
			e := Event{Time: int64(n / 100), ID: n, Kind: Kind(n / 10 % 10)}
			events = append(events, e)
		}
		return events
	}
	for _, c := range []struct{ in, want []Event }{
		{of(), of()},
		{of(130, 101, 230, 202), of(130, 101, 230, 202)}, // in order
		{of(230, 202, 130, 121, 111, 101, 102), of(121, 111, 101, 102, 130, 202, 230)},
		{of(231, 232, 130, 133, 121, 234), of(121, 130, 133, 231, 232, 234)},
		{of(300, 130, 201, 131, 230, 200), of(130, 131, 201, 200, 230, 300)},
	} {
		in := slices.Clone(c.in)
		if Sort(in); !slices.Equal(in, c.want) {
			t.Errorf("%v is sorted as %v, want %v", c.in, in, c.want)
		}
	}
}

// TestValidateWithoutFrees: where nothing is freed a drop is an object's end, and its identity is not given again.
func TestValidateWithoutFrees(t *testing.T) {
	alloc, drop, free := Event{ID: 700, Bytes: 5}, Event{ID: 700, Bytes: 5, Kind: Drop}, Event{Time: 9, Kind: Free, ID: 1}
	for want, events := range map[string][]Event{
		"trace: event 2 (drop at 0 ns): object 700 was dropped before":                {alloc, drop, drop},
		"trace: event 2 (alloc at 0 ns): object 700 is allocated again":               {alloc, drop, alloc},
		"trace: event 2 (alloc at 0 ns): object 700 is allocated twice":               {alloc, drop, alloc, free},
		"trace: event 1 (free at 9 ns): object 1 was not allocated":                   {alloc, free},
		"trace: event 0 (unknown at -3 ns): unknown kind 10":                          {{Kind: kinds, Time: -3}},
		"trace: event 0 (mark at 0 ns): label 2 of 2":                                 {{Kind: Mark, Aux: 2}},
		"trace: event 0 (sync at 0 ns): 4611686018427387904 bytes are not below 2^62": {{Kind: Sync, Bytes: MaxBytes}},
		"trace: event 1 (alloc at 0 ns): all sizes together are not below 2^62 bytes": {alloc, {ID: 2, Bytes: MaxBytes - 5}},
	} {
		err := (&Trace{Events: events, Labels: []string{"", "a"}}).Validate()
		var at *EventError
		if err == nil || err.Error() != want || !errors.As(err, &at) || at.Event != events[at.Index] || errors.Unwrap(err) != at.Err {
			t.Errorf("%v, want %s", err, want)
		}
	}
	fine := []Event{alloc, {ID: 2, Bytes: MaxBytes - 6}, drop, {Kind: Cycle, Aux: 77, Bytes: 3}, {Kind: Mark, Aux: 1, Time: 4}, {Kind: Decision, Bytes: -9, Time: 4}}
	if err := (&Trace{Events: fine, Labels: []string{"", "a"}}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (&Trace{Events: []Event{{Kind: Mark}}}).Validate(); err != nil {
		t.Errorf("no label of no labels: %v", err)
	}
}

// TestRecorderSizes: the defaults, and how many events find room.
func TestRecorderSizes(t *testing.T) {
	if got, want := (RecorderConfig{}).orDefault(), (RecorderConfig{65536, 250 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := (RecorderConfig{-1, -1}).orDefault(), (RecorderConfig{65536, 250 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := (RecorderConfig{3, 4}).orDefault(), (RecorderConfig{3, 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range []struct{ processors, buffer, shards, each int }{
		{1, 0, 1, 65536}, {1, 10, 1, 64}, {2, 1000, 2, 500}, {3, 1000, 4, 250}, {4, 1000, 4, 250}, {5, 1000, 8, 125}, {64, 6400, 64, 100}, {200, 64000, 64, 1000},
	} {
		runtime.GOMAXPROCS(c.processors)
		r := NewRecorder(nowhere{}, RecorderConfig{Buffer: c.buffer, Interval: time.Hour})
		for i := range r.shards {
			s := &r.shards[i]
			if cap(s.events) != c.each || cap(r.spare[i]) != c.each || s.half != c.each/2 {
				t.Errorf("%+v: a shard of %d, %d to spare, half is %d", c, cap(s.events), cap(r.spare[i]), s.half)
			}
		}
		if len(r.shards) != c.shards || cap(r.batch) < c.shards*c.each+1 || pressure.StackHash()>>r.shift >= uint64(c.shards) {
			t.Errorf("%+v: %d shards, a batch of %d", c, len(r.shards), cap(r.batch))
		}
		r.Close()
	}
}
