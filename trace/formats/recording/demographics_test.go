package recording_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func TestDemographics(t *testing.T) {
	r := new(trace.Trace)
	add := func(at int64, kind trace.Kind, id uint64, bytes int64, space pressure.Space) {
		r.Record(trace.Event{Time: at, Kind: kind, ID: id, Bytes: bytes, Space: space})
	}
	add(0, trace.Alloc, 1, 1024, pressure.Host)
	add(0, trace.Alloc, 2, 1025, pressure.Host)
	add(0, trace.Alloc, 3, 2048, pressure.Host)
	add(0, trace.Alloc, 4, 1, pressure.Pinned)
	add(999, trace.Drop, 2, 0, pressure.Host)
	add(1000, trace.Free, 3, 2048, pressure.Host)
	add(5000, trace.Free, 2, 1025, pressure.Host) // dead already
	add(5000, trace.Free, 4, 1, pressure.Pinned)
	got := recording.DemographicsOf(r, pressure.Host)
	want := recording.Demographics{
		Sizes: []recording.SizeClass{
			{Max: 1024, Objects: 1, Bytes: 1024, Survivors: 1},
			{Max: 2048, Objects: 2, Bytes: 3073, Lifetimes: recording.Quantiles{Min: 999, P50: 999, P90: 1000, P99: 1000, Max: 1000, Mean: 999.5}},
		},
		Lifetimes: []recording.LifetimeClass{
			{Below: time.Microsecond, Objects: 1, Bytes: 1025},
			{Below: 10 * time.Microsecond, Objects: 1, Bytes: 2048},
			{Below: 0, Objects: 1, Bytes: 1024},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if all := recording.DemographicsOf(r); len(all.Sizes) != 3 || all.Sizes[0].Max != 1 {
		t.Errorf("all spaces: %+v", all)
	}
}

// Both ways of classing count every object and every byte once, and agree with
// Stats.
func TestDemographicsAddUp(t *testing.T) {
	check(t, 100, func(t *random) {
		r := new(trace.Trace)
		var alive []trace.Event
		for i := range between(t, 0, 60) {
			at := int64(i) * between[int64](t, 1, 1e9)
			if i > 0 && at < r.Events[i-1].Time {
				at = r.Events[i-1].Time
			}
			if len(alive) > 0 && t.coin() {
				dead := alive[0]
				alive = alive[1:]
				r.Record(trace.Event{Time: at, Kind: trace.Drop, ID: dead.ID})
				continue
			}
			e := trace.Event{Time: at, Kind: trace.Alloc, ID: uint64(i + 1), Bytes: between[int64](t, 0, 1<<40)}
			alive = append(alive, e)
			r.Record(e)
		}
		s, d := recording.StatsOf(r), recording.DemographicsOf(r)
		objects, bytes, survivors := 0, int64(0), 0
		for _, c := range d.Sizes {
			objects, bytes, survivors = objects+c.Objects, bytes+c.Bytes, survivors+c.Survivors
			if c.Bytes > int64(c.Objects)*c.Max {
				t.Fatalf("class %+v holds more than its objects can", c)
			}
		}
		if objects != s.Allocs || bytes != s.AllocatedBytes || survivors != s.LastObjects {
			t.Fatalf("sizes %+v do not add up to %+v", d.Sizes, s)
		}
		for _, c := range d.Lifetimes {
			objects, bytes = objects-c.Objects, bytes-c.Bytes
		}
		if objects != 0 || bytes != 0 {
			t.Fatalf("lifetimes %+v leave %d objects, %d bytes", d.Lifetimes, objects, bytes)
		}
	})
}
