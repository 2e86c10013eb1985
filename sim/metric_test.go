package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMetricNames(t *testing.T) {
	a, err := MetricNamed("exposed_pause")
	if err != nil || a.Name != "exposed_pause_ns" {
		t.Errorf("%+v, %v", a, err)
	}
	if b, err := MetricNamed("exposed_pause_ns"); err != nil || b.Name != a.Name {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := MetricNamed("speed"); err == nil || !strings.Contains(err.Error(), "exposed_pause") {
		t.Errorf("unknown metric: %v", err)
	}
}

func TestPareto(t *testing.T) {
	x, _ := MetricNamed("exposed_pause")
	y, _ := MetricNamed("gc_busy")
	var rs []Result
	for _, p := range [][2]int{{5, 1}, {1, 9}, {3, 3}, {3, 4}, {4, 3}, {1, 9}, {9, 9}} {
		rs = append(rs, Result{ExposedPause: time.Duration(p[0]), GCBusy: time.Duration(p[1])})
	}
	if got := Pareto(rs, x, y); !reflect.DeepEqual(got, []int{1, 2, 0}) {
		t.Errorf("front %v", got)
	}
}

func TestMinLimit(t *testing.T) {
	w := sawtooth(t, 500)
	c, err := ParseContender("never")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Cost: Fixed(100), Ladder: Ladder{Factor: 2}}
	few := func(r *Result) bool { return r.RefusalCollections <= 3 }
	got, err := MinLimit(w, c, cfg, 1e-9, few)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{got, got - 1} {
		cfg.Limit = limit
		r, _ := c.Run(w, cfg)
		if few(&r) != (limit == got) {
			t.Errorf("limit %d, found %d: %d refusals", limit, got, r.RefusalCollections)
		}
	}
	if _, err := MinLimit(w, c, cfg, 0, func(*Result) bool { return false }); err == nil {
		t.Error("a condition that never holds gives no error")
	}
}
