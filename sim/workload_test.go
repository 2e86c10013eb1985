package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestCompileRefuses: each fault of a trace, with the event that has it.
func TestCompileRefuses(t *testing.T) {
	alloc := func(id uint64, bytes int64) trace.Event { return trace.Event{Kind: trace.Alloc, ID: id, Bytes: bytes} }
	wait := func(d time.Duration) trace.Event { return trace.Event{Kind: trace.Sync, Duration: d} }
	other := trace.Event{Kind: trace.Alloc, ID: 1, Bytes: -1, Space: 5, Time: -9}
	for want, events := range map[string][]trace.Event{
		"event 2: time goes backwards: 4 ns after 5 ns":                                                 {{Time: 5, ID: 1}, other, {Time: 4, Kind: trace.Sync}},
		"event 0: allocation of -1 bytes after 0 in all is out of range":                                {alloc(1, -1)},
		"event 1: allocation of 2305843009213693948 bytes after 4 in all is out of range":               {alloc(1, 4), alloc(2, largest-3)},
		"event 2: object 7 is allocated twice":                                                          {other, alloc(7, 1), alloc(7, 1)},
		"event 0: a wait of -1 ns after 0 in all is out of range":                                       {wait(-1)},
		"event 2: a wait of 2305843009213693948 ns after 4 in all is out of range":                      {alloc(1, 1), wait(4), wait(largest - 3)},
		"event 0: drop of object 3, which is not there":                                                 {{Kind: trace.Drop, ID: 3}},
		"event 2: drop of object 3, which is not there":                                                 {alloc(3, 1), {Kind: trace.Free, ID: 3}, {Kind: trace.Drop, ID: 3}},
		"no allocations in host":                                                                        {wait(1), other},
		"event 3: allocation of 1 bytes after 2305843009213693951 in all is out of range, freed or not": {alloc(1, largest), {Kind: trace.Free, ID: 1}, wait(1), alloc(2, 1)},
	} {
		_, err := Compile(&trace.Trace{Name: "bad", Events: events}, pressure.Host)
		want, _, _ = strings.Cut(want, ", freed")
		if err == nil || err.Error() != "sim: bad: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	most := []trace.Event{alloc(1, 4), wait(largest - 4), alloc(2, largest-4), wait(4), {Kind: trace.Free, ID: 9}}
	if w, err := Compile(&trace.Trace{Events: most}, pressure.Host); err != nil || w.AllocatedBytes != largest || w.Wait != largest {
		t.Errorf("as many as there may be: %v", err)
	}
}

func TestSpaceOf(t *testing.T) {
	of := func(k trace.Kind, s pressure.Space, bytes int64) trace.Event {
		return trace.Event{Kind: k, Space: s, Bytes: bytes}
	}
	for want, events := range map[pressure.Space][]trace.Event{
		0:   nil,
		1:   {of(trace.Alloc, 1, 5), of(trace.Alloc, 2, 5)},
		3:   {of(trace.Alloc, 2, 5), of(trace.Alloc, 3, 3), of(trace.Alloc, 3, 3), of(trace.Free, 2, 5), of(trace.Reserve, 2, 9)},
		255: {of(trace.Alloc, 0, 5), of(trace.Alloc, 255, 6)},
	} {
		if got := SpaceOf(&trace.Trace{Events: events}); got != want {
			t.Errorf("the most bytes are in %v, want %v", got, want)
		}
	}
}

func FuzzParseLadder(f *testing.F) {
	for _, seed := range []string{"2x", "20ms", "0x", "-0x", "1e6x", "NaNx", "1h3ns", "9223372036854775807ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLadder(text)
		if err != nil {
			return
		}
		if l.Of(1) < 0 {
			t.Fatalf("%q takes %v", text, l.Of(1))
		}
		if again, err := ParseLadder(l.String()); err != nil || again != l {
			t.Fatalf("%q prints as %q, which reads as %v, %v", text, l, again, err)
		}
	})
}
