package synthetic

import (
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

func TestSetSizes(t *testing.T) {
	device := pressure.Device(0)
	events := []trace.Event{
		{Kind: trace.Alloc, ID: 1, Bytes: 8, Space: device},
		{Kind: trace.Drop, ID: 1},
		{Kind: trace.Free, ID: 1},
		{Kind: trace.Drop, ID: 2, Bytes: 5},
		{Kind: trace.Decision, ID: 1, Bytes: -1},
	}
	want := slices.Clone(events)
	want[1].Bytes, want[1].Space = 8, device
	want[2].Bytes, want[2].Space = 8, device
	setSizes(events)
	if !slices.Equal(events, want) {
		t.Errorf("got %+v\nwant %+v", events, want)
	}
}
