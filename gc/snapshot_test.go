package gc

import "github.com/eagergc/eagergc/gc/policy"

import "testing"

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
	if len(got.Cycles) == 0 || got.Cycles[0].Trigger != policy.TriggerPolicy {
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
