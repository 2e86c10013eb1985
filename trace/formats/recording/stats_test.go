package recording_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"pgregory.net/rapid"
)

// quantilesOf counts for each quantile how many values do not exceed it.
func quantilesOf(values []int64) (q recording.Quantiles) {
	if len(values) == 0 {
		return q
	}
	slices.Sort(values)
	least := func(share int) int64 {
		for i, v := range values {
			if (i+1)*100 >= share*len(values) {
				return v
			}
		}
		return 0
	}
	for _, v := range values {
		q.Mean += float64(v)
	}
	q.Mean /= float64(len(values))
	q.Min, q.P50, q.P90, q.P99, q.Max = values[0], least(50), least(90), least(99), values[len(values)-1]
	return q
}

// A life is an object with all that happened to it.
type life struct {
	trace.Event
	end, freed int64 // when it died and was freed; -1: not
}

func livesOf(tr *trace.Trace, space pressure.Space) (lives []*life) {
	byID := map[uint64]*life{}
	for _, e := range tr.Events {
		switch {
		case e.Space != space:
		case e.Kind == trace.Alloc:
			byID[e.ID] = &life{e, -1, -1}
			lives = append(lives, byID[e.ID])
		case e.Kind == trace.Drop || e.Kind == trace.Free:
			l := byID[e.ID]
			if l.end < 0 {
				l.end = e.Time
			}
			if e.Kind == trace.Free {
				l.freed = e.Time
			}
		}
	}
	return lives
}

// TestStatsModel compares the figures of a space with those of its objects' lives.
func TestStatsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawValid(t)
		space := pressure.Space(between(t, 0, 2))
		lives := livesOf(tr, space)
		want, frees := recording.Stats{}, slices.ContainsFunc(tr.Events, func(e trace.Event) bool { return e.Kind == trace.Free })
		var sizes, lifetimes, waits []int64
		for _, l := range lives {
			want.Allocs++
			want.AllocatedBytes += l.Bytes
			sizes = append(sizes, l.Bytes)
			if l.end >= 0 {
				lifetimes = append(lifetimes, l.end-l.Time)
			} else {
				want.LastBytes, want.LastObjects = want.LastBytes+l.Bytes, want.LastObjects+1
			}
		}
		dead, gone := map[uint64]bool{}, map[uint64]bool{}
		var reserved int64
		first, last := int64(-1), int64(0)
		for _, e := range tr.Events {
			if e.Space != space && e.Kind != trace.Sync {
				continue
			}
			want.Events++
			switch e.Kind {
			case trace.Drop:
				want.Drops++
				dead[e.ID], gone[e.ID] = true, !frees
			case trace.Free:
				want.Frees++
				dead[e.ID], gone[e.ID] = true, true
			case trace.Sync:
				want.Syncs++
				want.Wait += e.Duration
				waits = append(waits, int64(e.Duration))
			case trace.Cycle:
				want.Cycles++
				want.CycleTime += e.Duration
			case trace.Refuse:
				want.Refusals++
			case trace.Reserve, trace.Release:
				if reserved += e.Bytes; e.Kind == trace.Release {
					reserved -= 2 * e.Bytes
				}
				want.PeakReserved = max(want.PeakReserved, reserved)
			}
			if e.Kind <= trace.Sync {
				if first < 0 {
					first = e.Time
				}
				last = e.Time
			}
			var reachable, held int64
			for _, l := range lives {
				if l.ID > uint64(len(tr.Events)) || slices.Index(tr.Events, l.Event) > slices.Index(tr.Events, e) {
					break
				}
				if !dead[l.ID] {
					reachable += l.Bytes
				}
				if !gone[l.ID] {
					held += l.Bytes
				}
			}
			want.PeakReachable, want.PeakHeld = max(want.PeakReachable, reachable), max(want.PeakHeld, held)
		}
		want.Span = time.Duration(last - max(0, first))
		if s := want.Span.Seconds(); s > 0 {
			want.WaitShare = want.Wait.Seconds() / s
		}
		want.Sizes, want.Lifetimes, want.Waits = quantilesOf(sizes), quantilesOf(lifetimes), quantilesOf(waits)
		if got := recording.StatsOf(tr, space); got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
	if got := recording.StatsOf(new(trace.Trace)); got != (recording.Stats{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestDeathsBetweenTwoCycles: the recorder had cycles at 10 and 20 ns. The program drops object 1, object 2 is
// still there at the first cycle, and object 3 begins after it.
func TestDeathsBetweenTwoCycles(t *testing.T) {
	seen := parse(t, `
0 alloc id=1 bytes=1
2 alloc id=2 bytes=10
3 alloc id=6
4 drop id=1 bytes=1
10 cycle bytes=1 duration=1
11 free id=1 bytes=1 aux=1
16 alloc id=3 bytes=100
20 cycle bytes=110 duration=1
22 free id=2 bytes=10 aux=1
23 free id=3 bytes=100 aux=1
24 alloc id=4 bytes=1
25 alloc id=5 bytes=1
26 free id=5 bytes=1
30 sync
`)
	early, late := recording.Earliest(seen)
	if err := early.Validate(); err != nil {
		t.Fatal(err)
	}
	at := make(map[uint64]int64)
	for _, e := range early.Events {
		if e.Kind == trace.Drop {
			at[e.ID] = e.Time
		}
	}
	if want := map[uint64]int64{1: 4, 2: 10, 3: 16, 4: 24, 6: 20}; !maps.Equal(at, want) || !slices.Equal(late, []time.Duration{4, 10}) {
		t.Errorf("drops at %v, late by %v", at, late)
	}
	if w, err := sim.Compile(seen, 0); err != nil || w.SeenDeaths != 2 {
		t.Errorf("%d deaths from cycles, %v", w.SeenDeaths, err)
	}
	if recording.StatsOf(early).PeakReachable != 100 || recording.StatsOf(seen).PeakReachable != 110 {
		t.Error("the bounds of the peak are wrong")
	}
	told := parse(t, "0 alloc id=1 bytes=8\n5 drop id=1 bytes=8\n9 free id=1 bytes=8 aux=1\n10 cycle")
	if same, late := recording.Earliest(told); late != nil || !slices.Equal(same.Events, told.Events) {
		t.Errorf("all deaths were said, and %v late: %v", late, same.Events)
	}
}

// TestPlain: what steers a terminal is escaped.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "gpt2": "gpt2", `a "b" \c`: `a "b" \c`, "größer 日本": "größer 日本", "\x1b[31mred": `\x1b[31mred`, "a\nb\r": `a\nb\r`,
		"\u009b2J": `\u009b2J`, "a\u202eb": `a\u202eb`, "\x00\x7f": `\x00\x7f`, "a\xffb": `a\xffb`, "\ufffd": "\ufffd",
	} {
		if got := recording.Plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
