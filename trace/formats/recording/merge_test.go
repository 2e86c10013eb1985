package recording_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"pgregory.net/rapid"
)

func TestMergeOrder(t *testing.T) {
	at := time.Unix(1000, 0)
	base := &trace.Trace{Name: "base", Start: at, Meta: map[string]string{"source": "a"}, Events: []trace.Event{
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 5, Space: pressure.Device(3)},
		{Time: 10, Kind: trace.Drop, ID: 1, Bytes: 5, Space: pressure.Device(3)},
	}}
	sync := &trace.Trace{Start: at.Add(-5), Meta: map[string]string{"source": "b"}, Labels: []string{"", "step"}, Events: []trace.Event{
		{Time: 0, Kind: trace.Mark, Aux: 1, Duration: 7},
		{Time: 4, Kind: trace.Alloc, ID: 1, Bytes: 9},
		{Time: 5, Kind: trace.Sync, Duration: 2},
		{Time: 15, Kind: trace.Sync, Duration: 3, Aux: 1},
	}}
	events := slices.Clone(base.Events)
	got, err := recording.Merge(base, sync)
	if err != nil || !slices.Equal(base.Events, events) || got.Name != "base" || !maps.Equal(got.Meta, map[string]string{"source": "a", "sync_source": "b"}) {
		t.Fatal(err, base.Events, got)
	}
	want := []trace.Event{
		{Time: 0, Kind: trace.Mark, Aux: 1, Duration: 2},
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 5, Space: pressure.Device(3)},
		{Time: 0, Kind: trace.Sync, Duration: 2, Space: pressure.Device(3)},
		{Time: 10, Kind: trace.Drop, ID: 1, Bytes: 5, Space: pressure.Device(3)},
		{Time: 10, Kind: trace.Sync, Duration: 3, Aux: 1, Space: pressure.Device(3)},
	}
	if !slices.Equal(got.Events, want) || !got.Start.Equal(at) || !slices.Equal(got.Labels, []string{"", "step"}) {
		t.Errorf("got  %+v\nwant %+v at %v", got, want, at)
	}
	for want, bad := range map[string]*trace.Trace{"need the wall clock": {}, "centuries apart": {Start: time.Date(2600, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		if _, err := recording.Merge(base, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("merge with a start of %v: %v", bad.Start, err)
		}
	}
}

func TestInterleave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lists [][]trace.Event
		var want []trace.Event
		for n := range between(t, 0, 4) {
			if coin(t) {
				lists = append(lists, nil)
			}
			var list []trace.Event
			times := make([]int64, between(t, 0, 19))
			for i := range times {
				times[i] = between[int64](t, 0, 20)
			}
			slices.Sort(times)
			for i, at := range times {
				e := trace.Event{Time: at, ID: uint64(n), Bytes: int64(i)}
				list = append(list, e)
				want = append(want, e)
			}
			lists = append(lists, list)
		}
		slices.SortStableFunc(want, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
		if got := recording.Interleave(lists...); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestStartAtFirst(t *testing.T) {
	tr := &trace.Trace{Start: time.Unix(0, 0), Events: []trace.Event{
		{Time: 90, Kind: trace.Mark, Duration: 3}, {Time: 95, Kind: trace.Reserve, Bytes: 1}, {Time: 100, Kind: trace.Alloc}, {Time: 107, Kind: trace.Sync},
	}}
	recording.StartAtFirst(tr)
	want := []trace.Event{{Kind: trace.Mark}, {Kind: trace.Reserve, Bytes: 1}, {Kind: trace.Alloc}, {Time: 7, Kind: trace.Sync}}
	if !slices.Equal(tr.Events, want) || !tr.Start.Equal(time.Unix(0, 100)) {
		t.Errorf("got %+v", tr)
	}
}

// A profile of another program is refused, with both spans.
func TestMergeOtherProgram(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 27, 0, 0, time.UTC)
	of := func(start time.Time) *trace.Trace {
		return &trace.Trace{Start: start, Events: []trace.Event{{Kind: trace.Alloc, ID: 1, Bytes: 100}, {Time: 3e9, Kind: trace.Sync, Duration: time.Millisecond}}}
	}
	const is = "not of the same time: one is from 2026-11-21 03:27:00.000 to 2026-11-21 03:27:03.001 UTC, the other from "
	for later, want := range map[time.Duration]string{
		0: "<nil>", 3001 * time.Millisecond: "<nil>", -3001 * time.Millisecond: "<nil>", 3002 * time.Millisecond: is + "2026-11-21 03:27:03.002", -3002 * time.Millisecond: is + "2026-11-21 03:26:56.998",
	} {
		if _, err := recording.Merge(of(at), of(at.Add(later))); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v later: %v, want %q", later, err, want)
		}
	}
}
