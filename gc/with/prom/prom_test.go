package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/with/prom"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

func newCollector(t *testing.T, cfg gc.Config) *gc.Collector {
	t.Helper()
	c, err := gc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Names follow the conventions, values are the collector's, bounds print as people write them.
func TestMetricsAgreeWithTheCollector(t *testing.T) {
	c := newCollector(t, gc.Config{Policy: policy.MustParse("threshold:0.5").New()})
	var pools []*pool.Pool
	for range 2 {
		p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		pools = append(pools, p)
	}
	for _, p := range pools {
		reachable, err := array.New[byte](p, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer runtime.KeepAlive(reachable)
	}
	for i := range 80 { // garbage at once
		if i == 40 {
			c.SetPolicy(nil) // from here on refusals ask for cycles
		}
		if _, err := array.New[byte](pools[i/40], 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*pool.Pool{pools[0], pools[1], pools[1]} {
		if big, err := p.Alloc(17<<20, 0); err == nil {
			t.Fatal("17 MiB of 16 are to be had:", big)
		}
	}
	// From here on nothing changes but by the runtime's own cycles.
	c.Listen()
	for _, lib := range []*pressure.Counter{pressure.NewCounter("libfoo"), pressure.NewCounter("libfoo")} { // of two versions, say
		lib.Add(10)
		defer lib.Sub(10)
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(prom.New(c, pools...))
	stats, before := c.Stats(), c.Snapshot()
	got, err := reg.Gather()
	for err == nil && c.Stats() != stats { // such a cycle came in between
		stats, before = c.Stats(), c.Snapshot()
		got, err = reg.Gather()
	}
	after := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if stats.Cycles[policy.TriggerPolicy] == 0 || stats.Freed == 0 || stats.Exposed == 0 {
		t.Fatalf("nothing happened: %+v", stats)
	}
	values := make(map[string]float64)
	var pauses uint64
	for _, f := range got {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				pauses = h.GetSampleCount()
				values[name] = h.GetSampleSum()
				for i, b := range h.Bucket[1:] {
					if b.GetCumulativeCount() < h.Bucket[i].GetCumulativeCount() {
						t.Error("buckets are not cumulative:", h)
					}
				}
			}
		}
	}
	sum := uint64(0)
	for _, n := range stats.Pauses {
		sum += n
	}
	var sums gc.Watched
	for _, m := range after.Sources {
		sums.Live, sums.Reserved, sums.Settled = sums.Live+m.Live, sums.Reserved+m.Reserved, sums.Settled+m.Settled
	}
	if sums.Live == sums.Reserved || sums.Live == sums.Settled || sums.Settled < 2<<20 {
		t.Errorf("what is reachable is %+v", sums)
	}
	for of, share := range map[string]func(w gc.Work) float64{"held": func(w gc.Work) float64 { return w.Exposed.Seconds() }, "cycles": func(w gc.Work) float64 { return w.Processor.Seconds() / float64(runtime.GOMAXPROCS(0)) }} {
		done, most := before.Last(time.Minute) // the time since the start grows meanwhile
		_, least := after.Last(time.Minute)
		if got := values[`eagergc_share_ratio{of="`+of+`"}`]; got == 0 || got > share(done)/most.Seconds()*1.001 || got < share(done)/least.Seconds()*0.999 {
			t.Errorf("share of %s: %v of %+v", of, got, done)
		}
	}
	for name, want := range map[string]float64{
		`eagergc_policy_info{policy="never"}`:                 1,
		`eagergc_library_live_bytes{library="libfoo"}`:        20,
		`eagergc_library_objects{library="libfoo"}`:           2,
		`eagergc_live_bytes{space="host"}`:                    float64(sums.Live),
		`eagergc_reserved_bytes{space="host"}`:                float64(sums.Reserved),
		`eagergc_reachable_bytes{space="host"}`:               float64(sums.Settled),
		`eagergc_library_freed_bytes_total{library="libfoo"}`: 0,
		`eagergc_tracked_objects`:                             float64(stats.Tracked),
		`eagergc_freed_bytes_total`:                           float64(stats.Freed),
		`eagergc_freed_objects_total`:                         float64(stats.Objects),
		`eagergc_cycle_seconds_total`:                         stats.Busy.Seconds(),
		`eagergc_cycle_processor_seconds_total`:               stats.Processor.Seconds(),
		`eagergc_failures_total`:                              float64(stats.Failures),
		`eagergc_capped_cycles_total`:                         float64(c.Snapshot().Reasons["capped"]),
		`eagergc_pending_releases`:                            0,
		`eagergc_over_limit`:                                  0,
		`eagergc_cycle_running`:                               0,
		`eagergc_pool_allocated_bytes_total{space="host"}`:    float64(pools[0].Stats().Allocated + pools[1].Stats().Allocated),
		`eagergc_expected_cycle_seconds`:                      stats.Cost.Seconds(),
		`eagergc_cap_ratio{of="cycles"}`:                      0.25,
		`eagergc_cap_ratio{of="held"}`:                        0.05,
		`eagergc_limit_bytes{space="host"}`:                   32 << 20,
		`eagergc_cycles_total{trigger="policy"}`:              float64(stats.Cycles[policy.TriggerPolicy]),
		`eagergc_cycles_total{trigger="refusal"}`:             float64(stats.Cycles[policy.TriggerRefusal]),
		`eagergc_decisions_total{reason="threshold"}`:         float64(c.Snapshot().Reasons["threshold"]),
		`eagergc_exposed_pause_seconds`:                       stats.Exposed.Seconds(),
		`eagergc_pool_refusals_total{space="host"}`:           float64(pools[0].Stats().Refusals + pools[1].Stats().Refusals),
		`eagergc_pool_failed_allocations_total{space="host"}`: 3,
		`eagergc_pool_allocations_total{space="host"}`:        82,
	} {
		if v, ok := values[name]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if pauses != sum || sum == 0 {
		t.Errorf("%d pauses, want %d", pauses, sum)
	}
	problems, err := testutil.CollectAndLint(prom.New(c, pools...))
	if err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, &http.Request{Header: http.Header{"Accept": {"application/openmetrics-text;version=1.0.0"}}})
	var bounds []string
	for _, m := range regexp.MustCompile(`pause_seconds_bucket{le="([^"]+)"}`).FindAllStringSubmatch(w.Body.String(), -1) {
		bounds = append(bounds, m[1])
	}
	if got, want := strings.Join(bounds, " "), "0.0001 0.0002 0.0005 0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1.0 2.0 5.0 10.0 +Inf"; got != want || !strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Errorf("bounds %s, want %s", got, want)
	}
}

// The pressure of a space is that of its fullest memory, in whatever order they are; libraries are
// named as far as Prometheus takes names; and the verdict is the page's.
func TestTheFullestAndOddNames(t *testing.T) {
	c := newCollector(t, gc.Config{Policy: policy.Spec{}.New()})
	for _, level := range []int64{1, 90, 2} {
		g := gc.Watch(c, func() int64 { return level })
		g.SetLimit(100)
		defer g.Close()
	}
	for _, name := range []string{"lib\xff", "lib\xfe", "lib\uFFFD"} { // in Latin-1
		lib := pressure.NewCounter(name)
		lib.Add(10)
		defer lib.Sub(10)
	}
	c.Listen()
	want := `# HELP eagergc_pressure_ratio Live bytes as a share of the limit.
# TYPE eagergc_pressure_ratio gauge
eagergc_pressure_ratio{space="host"} 0.9
# HELP eagergc_verdict_info 1, with the verdict of the debug page and its level: good, watch or bad.
# TYPE eagergc_verdict_info gauge
eagergc_verdict_info{level="good",verdict="nothing wrong"} 1
`
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(prom.New(c))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "eagergc_pressure_ratio", "eagergc_verdict_info"); err != nil {
		t.Error(err)
	}
	all, err := reg.Gather()
	if text := fmt.Sprint(all); err != nil || !strings.Contains(strings.Join(strings.Fields(text), ""), `label:{name:"library"value:"lib`+"\uFFFD"+`"}gauge:{value:30}`) {
		t.Errorf("%v: %s", err, text)
	}
}

// caching is a memory that caches itself.
type caching struct{ pool.Host }

func (caching) Keep(int64) error { return nil }
func (caching) Trim(int64) error { return nil }
func (caching) Usage() (pool.Usage, error) {
	return pool.Usage{Reserved: 3, ReservedPeak: 4, Used: 1, UsedPeak: 2}, nil
}

// What the memories of two pools cache is added up, with their peaks. Without a limit there is no pressure.
func TestUpstreamsAreCounted(t *testing.T) {
	c := newCollector(t, gc.Config{})
	owner := new([4]int)
	defer runtime.KeepAlive(owner)
	gc.Own(c, owner, 100, func(int) {}, 0)
	var pools []*pool.Pool
	for range 2 {
		p, err := pool.New(pool.Config{Upstream: caching{}, Direct: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		pools = append(pools, p)
	}
	want := `
# HELP eagergc_live_bytes Bytes handed out and not yet given back; garbage counts until it is freed.
# TYPE eagergc_live_bytes gauge
eagergc_live_bytes{space="host"} 100
# HELP eagergc_pool_upstream_bytes What a memory that caches itself, such as the driver's pools, counts.
# TYPE eagergc_pool_upstream_bytes gauge
eagergc_pool_upstream_bytes{of="reserved",space="host"} 6
eagergc_pool_upstream_bytes{of="reserved_peak",space="host"} 8
eagergc_pool_upstream_bytes{of="used",space="host"} 2
eagergc_pool_upstream_bytes{of="used_peak",space="host"} 4
`
	if err := testutil.CollectAndCompare(prom.New(c, pools...), strings.NewReader(want), "eagergc_pool_upstream_bytes", "eagergc_live_bytes", "eagergc_limit_bytes", "eagergc_pressure_ratio"); err != nil {
		t.Error(err)
	}
	c.SetLimit(50)
	c.Collect(policy.TriggerExplicit)
	want = `
# HELP eagergc_over_limit 1 while more is reachable than the limit of gc.Own allows.
# TYPE eagergc_over_limit gauge
eagergc_over_limit 1
`
	if err := testutil.CollectAndCompare(prom.New(c), strings.NewReader(want), "eagergc_over_limit"); err != nil {
		t.Error(err)
	}
}
