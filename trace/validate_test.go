package trace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

func TestValidate(t *testing.T) {
	type events = []trace.Event
	of := func(k trace.Kind, bytes int64) trace.Event { return trace.Event{Kind: k, ID: 1, Bytes: bytes} }
	alloc, drop, free := of(trace.Alloc, 8), of(trace.Drop, 8), of(trace.Free, 8)
	elsewhere := drop
	elsewhere.Space = pressure.Device(0)
	for _, c := range []struct {
		events events
		want   string
		index  int
	}{
		{events{alloc, drop, free}, "", 0},
		{events{alloc, free}, "", 0},
		{events{{Time: -5, Kind: trace.Mark}, {Time: -5, Kind: trace.Decision, Bytes: -1}}, "", 0},
		{events{alloc, alloc}, "object 1 is allocated twice", 1},
		{events{alloc, free, alloc}, "object 1 is allocated again", 2},
		{events{drop}, "object 1 was not allocated", 0},
		{events{alloc, drop, drop}, "dropped before", 2},
		{events{alloc, drop, drop, free}, "dropped before", 2},
		{events{alloc, free, drop}, "object 1 was freed before", 2},
		{events{alloc, free, free}, "object 1 was freed before", 2},
		{events{alloc, of(trace.Drop, 9)}, "9 bytes of object 1, which has 8", 1},
		{events{alloc, elsewhere}, "object 1 is in host, not in device0", 1},
		{events{of(trace.Alloc, -1)}, "-1 bytes", 0},
		{events{of(trace.Reserve, 1<<62)}, "not below 2^62", 0},
		{events{of(trace.Alloc, 1<<62-1), {ID: 2, Bytes: 1}}, "all sizes together", 1},
		{events{of(trace.Alloc, 1<<61), {ID: 2, Bytes: 1 << 60}, {ID: 3, Bytes: 1 << 60}}, "all sizes together", 2},
		{events{{Kind: trace.Sync, Duration: -1}}, "lasts -1 ns", 0},
		{events{{Time: 2}, {Time: 1, ID: 2}}, "time goes backwards: 1 ns after 2 ns", 1},
		{events{{Kind: 200}}, "unknown kind 200", 0},
		{events{{Kind: trace.Sync, Aux: 1}}, "label 1 of 1", 0},
	} {
		err := (&trace.Trace{Events: c.events, Labels: []string{""}}).Validate()
		if c.want == "" {
			if err != nil {
				t.Errorf("%v: %v", c.events, err)
			}
			continue
		}
		var ee *trace.EventError
		if !errors.As(err, &ee) || ee.Index != c.index || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q at event %d", c.events, err, c.want, c.index)
		}
	}
}
