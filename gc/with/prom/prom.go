// Package prom exports a collector and its pools to Prometheus:
//
//	prometheus.MustRegister(prom.New(collector, pool))
//
// Sizes are in bytes and times in seconds. A scrape reads counters that are
// kept anyway: an app that is not scraped pays nothing. README.md, beside this
// file, lists them with a dashboard for Grafana and four alerts.
package prom

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// New returns a Prometheus collector of what c watches and does, and of the
// refusals of pools. It is safe for concurrent use. A scrape takes c's lock for
// microseconds, and each lock of a pool for a moment.
//
// Memories of one space are added up in live, reserved and limit; the pressure
// of a space is that of its memory under most pressure. Limit and pressure are
// absent where no limit is known. Register one for each gc.Collector, with
// prometheus.WrapRegistererWith a label of your own if there are several.
func New(c *gc.Collector, pools ...*pool.Pool) prometheus.Collector {
	return &collector{c, pools}
}

type collector struct {
	c     *gc.Collector
	pools []*pool.Pool
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("eagergc_"+name, help, labels, nil)
}

var (
	info      = describe("policy_info", "1, with the policy in use.", "policy")
	live      = describe("live_bytes", "Bytes handed out and not yet given back; garbage counts until it is freed.", "space")
	reserved  = describe("reserved_bytes", "Bytes taken from where the memory comes from.", "space")
	reachable = describe("reachable_bytes", "Live bytes when the last collection had settled: about what was reachable then.", "space")
	limit     = describe("limit_bytes", "Budget of the space.", "space")
	ratio     = describe("pressure_ratio", "Live bytes as a share of the limit.", "space")
	cycles    = describe("cycles_total", "Collections, by who asked for them.", "trigger")
	decisions = describe("decisions_total", "Answers of the policy, by reason.", "reason")
	freed     = describe("freed_bytes_total", "Bytes that collections gave back.")
	objects   = describe("freed_objects_total", "Objects that collections gave back.")
	busy      = describe("cycle_seconds_total", "Time that collections took.")
	processor = describe("cycle_processor_seconds_total", "Processor time that collections took, but for what only idle cores did.")
	expected  = describe("expected_cycle_seconds", "How long a collection that began now would take.")
	tracked   = describe("tracked_objects", "Objects that were tracked when the last collection had settled.")
	share     = describe("share_ratio", "Share that was taken in the last minute: of the processor time by cycles, of the time by the pauses of all callers together.", "of")
	most      = describe("cap_ratio", "The most that the share may be: see gc.Caps. Callers of pools may be held for longer.", "of")
	pause     = describe("exposed_pause_seconds", "How long callers were held by a collection.")
	failures  = describe("failures_total", "Failures of policies, releases, recorders and logs that were contained.")
	capped    = describe("capped_cycles_total", "Collections that the policy wanted and a cap did not allow.")
	pending   = describe("pending_releases", "Dead objects whose release has not ended.")
	over      = describe("over_limit", "1 while more is reachable than the limit of gc.Own allows.")
	running   = describe("cycle_running", "1 while a collection is under way.")
	counted   = describe("library_live_bytes", "Bytes that a library counts through package pressure.", "library")
	countedN  = describe("library_objects", "Objects that a library counts.", "library")
	countedGC = describe("library_freed_bytes_total", "Bytes of a library that were given back after collections.", "library")
	allocated = describe("pool_allocated_bytes_total", "Bytes that pools handed out.", "space")
	allocs    = describe("pool_allocations_total", "Allocations of pools.", "space")
	refusals  = describe("pool_refusals_total", "Allocations that did not fit at first.", "space")
	failed    = describe("pool_failed_allocations_total", "Allocations that failed.", "space")
	upstream  = describe("pool_upstream_bytes", "What a memory that caches itself, such as the driver's pools, counts.", "space", "of")
	all       = []*prometheus.Desc{
		info, live, reserved, reachable, limit, ratio, cycles, decisions, freed, objects, busy, processor, expected, tracked, share, most, pause, failures, capped, pending, over, running,
		counted, countedN, countedGC, allocated, allocs, refusals, failed, upstream,
	}
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
	for _, s := range spacesOf(&now) {
		name := s.sum.Space.String()
		send(live, prometheus.GaugeValue, float64(s.sum.Live), name)
		send(reserved, prometheus.GaugeValue, float64(s.sum.Reserved), name)
		if s.sum.Limit > 0 {
			send(limit, prometheus.GaugeValue, float64(s.sum.Limit), name)
			send(ratio, prometheus.GaugeValue, s.pressure, name)
		}
	}
	for space, bytes := range reachableOf(&now) {
		send(reachable, prometheus.GaugeValue, float64(bytes), space.String())
	}
	send(info, prometheus.GaugeValue, 1, now.Policy)
	s := &now.Stats
	for t, n := range s.Cycles {
		send(cycles, prometheus.CounterValue, float64(n), policy.Trigger(t).String())
	}
	for reason, n := range now.Reasons {
		send(decisions, prometheus.CounterValue, float64(n), reason)
	}
	send(freed, prometheus.CounterValue, float64(s.Freed))
	send(objects, prometheus.CounterValue, float64(s.Objects))
	send(busy, prometheus.CounterValue, s.Busy.Seconds())
	send(processor, prometheus.CounterValue, s.Processor.Seconds())
	send(expected, prometheus.GaugeValue, s.Cost.Seconds())
	send(tracked, prometheus.GaugeValue, float64(s.Tracked))
	sendShares(send, &now)
	send(failures, prometheus.CounterValue, float64(s.Failures))
	send(capped, prometheus.CounterValue, float64(s.Capped))
	send(pending, prometheus.GaugeValue, float64(s.Pending))
	send(over, prometheus.GaugeValue, oneIf(s.OverLimit))
	send(running, prometheus.GaugeValue, oneIf(now.Running))
	for _, n := range now.Libraries {
		send(counted, prometheus.GaugeValue, float64(n.Live), n.Name)
		send(countedN, prometheus.GaugeValue, float64(n.Objects), n.Name)
		send(countedGC, prometheus.CounterValue, float64(n.Freed), n.Name)
	}
	out <- pauses(s)
	p.collectPools(send)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A total is what one space's memories add up to.
type total struct {
	sum      pressure.Sample
	pressure float64
}

// reachable is what was reachable of each space after the last cycle.
func reachableOf(now *gc.Snapshot) map[pressure.Space]int64 {
	sums := make(map[pressure.Space]int64)
	for _, s := range now.Sources {
		if s.Settled >= 0 {
			sums[s.Space] += s.Settled
		}
	}
	return sums
}

// sendShares sends what cycles and pauses took of the last minute, and may take.
func sendShares(send sender, now *gc.Snapshot) {
	done, span := now.Last(time.Minute)
	processors := float64(runtime.GOMAXPROCS(0))
	send(share, prometheus.GaugeValue, float64(done.Processor)/float64(span)/processors, "cycles")
	send(share, prometheus.GaugeValue, float64(done.Held)/float64(span), "held")
	send(most, prometheus.GaugeValue, now.Caps.Cycles, "cycles")
	send(most, prometheus.GaugeValue, now.Caps.Held, "held")
}

func spacesOf(now *gc.Snapshot) map[pressure.Space]*total {
	spaces := make(map[pressure.Space]*total)
	for _, s := range now.Sources {
		t := spaces[s.Space]
		if t == nil {
			t = &total{sum: pressure.Sample{Space: s.Space}}
			spaces[s.Space] = t
		}
		t.sum.Live += s.Live
		t.sum.Reserved += s.Reserved
		t.sum.Limit += s.Limit
		t.pressure = max(t.pressure, s.Pressure())
	}
	return spaces
}

// pauses makes a histogram of the pauses: Prometheus' buckets are cumulative,
// and the one without a bound is the count.
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
		send(allocated, prometheus.CounterValue, float64(s.Allocated), name)
		send(allocs, prometheus.CounterValue, float64(s.Allocs), name)
		send(refusals, prometheus.CounterValue, float64(s.Refusals), name)
		send(failed, prometheus.CounterValue, float64(s.Failures), name)
		if u := s.Upstream; u != (pool.Usage{}) {
			for of, bytes := range map[string]int64{"reserved": u.Reserved, "reserved_peak": u.ReservedPeak, "used": u.Used, "used_peak": u.UsedPeak} {
				send(upstream, prometheus.GaugeValue, float64(bytes), name, of)
			}
		}
	}
}
