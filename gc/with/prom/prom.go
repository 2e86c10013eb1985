// Package prom exports a collector and its pools to Prometheus:
//
//	prometheus.MustRegister(prom.New(collector, pool))
//
// Sizes are in bytes and times in seconds. A scrape reads counters that exist anyway, so a program
// that is not scraped pays nothing. README.md lists the metrics, a dashboard for Grafana and four
// alerts.
package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// New returns a Prometheus collector for the memory and the cycles of c, and for the refusals of
// pools. It is safe for concurrent use. A scrape takes the lock of c for microseconds, and the
// locks of each pool for a moment.
//
// Live, reserved and limit are sums over the memories of a space. The pressure of a space is that
// of its fullest memory. Without a known limit, limit and pressure are absent. Register one
// Prometheus collector for each gc.Collector. If there are several, use
// prometheus.WrapRegistererWith to add a label.
func New(c *gc.Collector, pools ...*pool.Pool) prometheus.Collector {
	return &collector{c, pools}
}

type collector struct {
	c     *gc.Collector
	pools []*pool.Pool
}

// all are the descriptions of all metrics.
var all []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("eagergc_"+name, help, labels, nil)
	all = append(all, d)
	return d
}

var (
	info      = describe("policy_info", "1, with the policy in use.", "policy")
	finding   = describe("verdict_info", "1, with the verdict of the debug page and its level: good, watch or bad.", "verdict", "level")
	live      = describe("live_bytes", "Bytes handed out and not yet given back; garbage counts until it is freed.", "space")
	reserved  = describe("reserved_bytes", "Bytes taken from where the memory comes from.", "space")
	reachable = describe("reachable_bytes", "Live bytes when the last collection had settled: about what was reachable then.", "space")
	limit     = describe("limit_bytes", "Budget of the space.", "space")
	ratio     = describe("pressure_ratio", "Live bytes as a share of the limit.", "space")
	cycles    = describe("cycles_total", "Collections, by who asked for them.", "trigger")
	decisions = describe("decisions_total", "Answers of the policy, by reason.", "reason")
	share     = describe("share_ratio", "Share that was taken in the last minute: of the processor time by cycles, of the time by the pauses of all callers together.", "of")
	most      = describe("cap_ratio", "The most that the share may be: see gc.Caps. Callers of pools may be held for longer.", "of")
	pause     = describe("exposed_pause_seconds", "How long callers were held by a collection.")
	counted   = describe("library_live_bytes", "Bytes that a library counts through package pressure.", "library")
	countedN  = describe("library_objects", "Objects that a library counts.", "library")
	countedGC = describe("library_freed_bytes_total", "Bytes of a library that were given back after collections.", "library")
	allocated = describe("pool_allocated_bytes_total", "Bytes that pools handed out.", "space")
	allocs    = describe("pool_allocations_total", "Allocations of pools.", "space")
	refusals  = describe("pool_refusals_total", "Allocations that did not fit at first.", "space")
	failed    = describe("pool_failed_allocations_total", "Allocations that failed.", "space")
	upstream  = describe("pool_upstream_bytes", "What a memory that caches itself, such as the driver's pools, counts.", "space", "of")
)

// figures are the metrics without labels.
var figures = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*gc.Snapshot) float64
}{
	{describe("freed_bytes_total", "Bytes that collections gave back."), counter, func(s *gc.Snapshot) float64 { return float64(s.Stats.Freed) }},
	{describe("freed_objects_total", "Objects that collections gave back."), counter, func(s *gc.Snapshot) float64 { return float64(s.Stats.Objects) }},
	{describe("cycle_seconds_total", "Time that collections took."), counter, func(s *gc.Snapshot) float64 { return s.Stats.Busy.Seconds() }},
	{describe("cycle_processor_seconds_total", "Processor time that collections took, but for what only idle cores did."), counter, func(s *gc.Snapshot) float64 { return s.Stats.Processor.Seconds() }},
	{describe("expected_cycle_seconds", "How long a collection that began now would take."), gauge, func(s *gc.Snapshot) float64 { return s.Stats.Cost.Seconds() }},
	{describe("tracked_objects", "Objects that were tracked when the last collection had settled."), gauge, func(s *gc.Snapshot) float64 { return float64(s.Stats.Tracked) }},
	{describe("failures_total", "Failures of policies, releases, recorders and logs that were contained."), counter, func(s *gc.Snapshot) float64 { return float64(s.Stats.Failures) }},
	{describe("capped_cycles_total", "Collections that the policy wanted and a cap did not allow."), counter, func(s *gc.Snapshot) float64 { return float64(s.Reasons[governor.CappedReason]) }},
	{describe("pending_releases", "Dead objects whose release has not ended."), gauge, func(s *gc.Snapshot) float64 { return float64(s.Stats.Pending) }},
	{describe("over_limit", "1 while more is reachable than the limit of gc.Own allows."), gauge, func(s *gc.Snapshot) float64 { return oneIf(s.Stats.OverLimit) }},
	{describe("cycle_running", "1 while a collection is under way."), gauge, func(s *gc.Snapshot) float64 { return oneIf(s.Running) }},
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// A sender sends a metric with the values of its labels.
type sender func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string)

// Describe sends the descriptions of all metrics.
func (p *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range all {
		out <- d
	}
}

// Collect sends all metrics.
func (p *collector) Collect(out chan<- prometheus.Metric) {
	var send sender = func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	now := p.c.Snapshot()
	for _, f := range figures {
		send(f.desc, f.kind, f.of(&now))
	}
	for space, t := range spacesOf(&now) {
		name := space.String()
		send(live, gauge, float64(t.Live), name)
		send(reserved, gauge, float64(t.Reserved), name)
		if t.Limit > 0 {
			send(limit, gauge, float64(t.Limit), name)
			send(ratio, gauge, t.pressure, name)
		}
		if t.known {
			send(reachable, gauge, float64(t.reachable), name)
		}
	}
	send(info, gauge, 1, now.Policy)
	f := debug.Verdict(&now)
	send(finding, gauge, 1, f.Verdict, f.Level)
	for t, n := range now.Stats.Cycles {
		send(cycles, counter, float64(n), policy.Trigger(t).String())
	}
	for reason, n := range now.Reasons {
		send(decisions, counter, float64(n), reason)
	}
	done, span := now.Last(time.Minute)
	taken, held := done.Shares(span)
	send(share, gauge, taken, "cycles")
	send(share, gauge, held, "held")
	send(most, gauge, now.Caps.Cycles, "cycles")
	send(most, gauge, now.Caps.Held, "held")
	for _, n := range now.Libraries {
		send(counted, gauge, float64(n.Live), n.Name)
		send(countedN, gauge, float64(n.Objects), n.Name)
		send(countedGC, counter, float64(n.Freed), n.Name)
	}
	out <- pauses(&now.Stats)
	p.collectPools(send)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A total is the sum of the memories of one space.
type total struct {
	pressure.Sample
	pressure  float64 // of the fullest
	reachable int64   // after the last cycle
	known     bool    // reachable is
}

func spacesOf(now *gc.Snapshot) map[pressure.Space]*total {
	spaces := make(map[pressure.Space]*total)
	for _, s := range now.Sources {
		t := spaces[s.Space]
		if t == nil {
			t = new(total)
			spaces[s.Space] = t
		}
		t.Live, t.Reserved, t.Limit = t.Live+s.Live, t.Reserved+s.Reserved, t.Limit+s.Limit
		t.pressure = max(t.pressure, s.Pressure())
		if s.Settled >= 0 {
			t.reachable, t.known = t.reachable+s.Settled, true
		}
	}
	return spaces
}

// pauses returns a histogram of the pauses. Prometheus's buckets are cumulative, and the bucket
// without a bound is the count.
func pauses(s *gc.Stats) prometheus.Metric {
	buckets := make(map[float64]uint64)
	count := uint64(0)
	last := len(s.Pauses) - 1
	for i, n := range s.Pauses {
		count += n
		if i < last {
			buckets[gc.PauseBound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(pause, count, s.Exposed.Seconds(), buckets)
}

func (p *collector) collectPools(send sender) {
	sums := make(map[pressure.Space]*pool.Stats)
	for _, q := range p.pools {
		s := q.Stats()
		if t := sums[q.Space()]; t != nil {
			t.Allocated += s.Allocated
			t.Allocs += s.Allocs
			t.Refusals += s.Refusals
			t.Failures += s.Failures
			u, v := &t.Upstream, s.Upstream
			*u = pool.Usage{Reserved: u.Reserved + v.Reserved, ReservedPeak: u.ReservedPeak + v.ReservedPeak, Used: u.Used + v.Used, UsedPeak: u.UsedPeak + v.UsedPeak}
			continue
		}
		sums[q.Space()] = &s
	}
	for space, s := range sums {
		name := space.String()
		send(allocated, counter, float64(s.Allocated), name)
		send(allocs, counter, float64(s.Allocs), name)
		send(refusals, counter, float64(s.Refusals), name)
		send(failed, counter, float64(s.Failures), name)
		if u := s.Upstream; u != (pool.Usage{}) {
			for of, bytes := range map[string]int64{"reserved": u.Reserved, "reserved_peak": u.ReservedPeak, "used": u.Used, "used_peak": u.UsedPeak} {
				send(upstream, gauge, float64(bytes), name, of)
			}
		}
	}
}
