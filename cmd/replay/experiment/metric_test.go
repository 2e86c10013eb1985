package experiment

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
)

func TestMetricNames(t *testing.T) {
	a, err := metricNamed("exposed_pause")
	if err != nil || a.Name != "exposed_pause_ns" {
		t.Errorf("%+v, %v", a, err)
	}
	if b, err := metricNamed("exposed_pause_ns"); err != nil || b.Name != a.Name {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := metricNamed("speed"); err == nil || !strings.Contains(err.Error(), "exposed_pause") {
		t.Errorf("unknown metric: %v", err)
	}
}

func TestRatioToNothingIsFinite(t *testing.T) {
	none, some := new(sim.Result), &sim.Result{ExposedPause: 3 * time.Millisecond, MeanLive: 1 << 20}
	if got := Exposed.Ratio(some, none); got != 4 {
		t.Errorf("3 ms against nothing is %v, want (3+1)/(0+1)", got)
	}
	if got := MeanLive.Ratio(none, some); got != 0.5 {
		t.Errorf("nothing against 1 MiB is %v, want (0+1)/(1+1)", got)
	}
}

func TestMeans(t *testing.T) {
	if got := GeometricMean([]float64{1, 4}); math.Abs(got-2) > 1e-12 {
		t.Errorf("the mean of 1 and 4 is %v", got)
	}
	if !math.IsNaN(GeometricMean(nil)) {
		t.Error("nothing has a mean")
	}
	fast, slow := &Outcome{}, &Outcome{Result: sim.Result{ExposedPause: 3 * time.Millisecond}}
	if got := MeanRatio([]*Outcome{slow, fast}, []*Outcome{fast, fast}, Exposed); math.Abs(got-2) > 1e-12 {
		t.Errorf("the mean of 4 and 1 is %v", got)
	}
	if got := MeanRatio([]*Outcome{fast}, []*Outcome{{Err: sim.ErrNoSchedule}}, Exposed); !math.IsNaN(got) {
		t.Errorf("a reference without a result gives %v", got)
	}
}

func TestPareto(t *testing.T) {
	var rs []sim.Result
	for _, p := range [][2]int{{5, 1}, {1, 9}, {3, 3}, {3, 4}, {4, 3}, {1, 9}, {9, 9}} {
		rs = append(rs, sim.Result{ExposedPause: time.Duration(p[0]), GCBusy: time.Duration(p[1])})
	}
	if got := Pareto(rs, Exposed, Busy); !reflect.DeepEqual(got, []int{1, 2, 0}) {
		t.Errorf("front %v", got)
	}
}
