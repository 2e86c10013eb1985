package gc

import (
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

func TestASnapshotHasTheLast(t *testing.T) {
	reason, action := "low", policy.Skip
	c := newCollector(t, Config{Policy: &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: action, Reason: reason} }}, Limit: 10})
	own := func() { ownFunc(c, new(thing), 1, func() {}).Release() }
	own()
	own()
	reason, action = "high", policy.Overlap
	own()
	c.Wait()
	reason, action = "low", policy.Skip
	own()
	got := c.Snapshot()
	if d := got.Decisions; len(d) != 3 || d[0].Repeats != 2 || d[1].Action != policy.Overlap || d[2].Reason != "low" || d[0].Sample.Limit != 10 {
		t.Errorf("decisions %+v", d)
	}
	if !slices.ContainsFunc(got.Cycles, func(c policy.Cycle) bool { return c.Trigger == policy.TriggerPolicy }) { // beside those of the runtime's own
		t.Errorf("cycles %+v", got.Cycles)
	}
	if r := got.Reasons; r["low"] != 3 || r["high"] != 1 || len(r) != 2 {
		t.Errorf("reasons %v", r)
	}
	if s := got.Sources; len(s) != 1 || s[0].Limit != 10 {
		t.Errorf("samples %v", s)
	}
	var r ring[int]
	for i := range 2*recentLen + 3 {
		r.put(i)
	}
	if got := r.list(); len(got) != recentLen || got[0] != recentLen+3 || got[recentLen-1] != 2*recentLen+2 || *r.newest() != 2*recentLen+2 {
		t.Errorf("ring holds %v", got)
	}
}

// TestLastSumsUpTheStepsThatReachIntoIt.
func TestLastSumsUpTheStepsThatReachIntoIt(t *testing.T) {
	work := func(start time.Duration, n int64) Work {
		return Work{Start: start, Freed: n, Busy: time.Duration(n), Processor: time.Duration(2 * n), Held: time.Duration(3 * n), Longest: time.Duration(n), Cycles: [triggers]uint32{0, uint32(n)}}
	}
	s := Snapshot{Now: 100, Step: 10, Work: []Work{work(0, 1), work(50, 20), work(80, 8), work(90, 400)}}
	for _, test := range []struct{ d, freed, longest, start, span time.Duration }{
		{0, 0, 0, 100, 1}, {1, 400, 400, 99, 1}, {10, 400, 400, 90, 10}, {11, 408, 400, 89, 11}, {40, 408, 400, 60, 40}, {41, 428, 400, 59, 41}, {99, 429, 400, 1, 99},
		{time.Hour, 429, 400, 0, 100}, {-5, 0, 0, 105, 1},
	} {
		got, span := s.Last(test.d)
		want := Work{
			Start: test.start, Freed: int64(test.freed), Busy: test.freed, Processor: 2 * test.freed, Held: 3 * test.freed, Longest: test.longest,
			Cycles: [triggers]uint32{0, uint32(test.freed)},
		}
		if got != want || span != test.span {
			t.Errorf("the last %d: %+v in %d, want %+v in %d", test.d, got, span, want, test.span)
		}
	}
}

// TestTheLastReasonIsOfACycle, and not of a skip.
func TestTheLastReasonIsOfACycle(t *testing.T) {
	var j journal
	for _, step := range []struct {
		action       policy.Action
		reason, want string
	}{{policy.Skip, "low", ""}, {policy.Overlap, "high", "high"}, {policy.Skip, "low", "high"}, {policy.Skip, "high", "high"}, {policy.Block, "full", "full"}} {
		j.decided(policy.Point{}, policy.Decision{Action: step.action, Reason: step.reason})
		if got := j.lastReason(); got != step.want {
			t.Errorf("after %v for %s: %q, want %q", step.action, step.reason, got, step.want)
		}
	}
}
