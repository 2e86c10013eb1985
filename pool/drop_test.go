package pool_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

var (
	dropTotal = flag.String("drop", "1GiB", "bytes that TestDropThroughLimit drops in all")
	dropLimit = flag.String("droplimit", "64MiB", "hard limit of TestDropThroughLimit")
)

// A program drops far more than fits through a hard limit, with 1/32 of the
// limit reachable, and writes to every byte of it: the resident memory stays under the
// limit. Under never everything goes through the ladder. Whether the default
// policy avoids that is a matter of time: results/ has the figures of a run with
// -drop 1TiB -droplimit 1GiB.
func TestDropThroughLimit(t *testing.T) {
	total, err := pressure.ParseLimit(*dropTotal)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := pressure.ParseLimit(*dropLimit)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{gc.DefaultPolicy, "never"} {
		t.Run(policy, func(t *testing.T) {
			if os.Getenv(gc.PolicyVariable) != "" {
				t.Skip("the policy is set by " + gc.PolicyVariable)
			}
			d := dropRun{policy: policy, total: total.Bytes, limit: limit.Bytes}
			d.run(t)
			t.Log(d.result)
			if d.stats.ReservedPeak > limit.Bytes || d.stats.Failures != 0 {
				t.Errorf("%+v", d.stats)
			}
			if grown := d.peak.Load() - d.before; d.before > 0 && !raced() && grown > limit.Bytes+limit.Bytes/20+goOwn {
				t.Errorf("resident memory outside the Go heap grew by %v, limit %v", pressure.Bytes(grown), limit)
			}
			if policy == "never" && d.stats.Refusals == 0 {
				t.Error("nothing was refused under never")
			}
		})
	}
}

// goOwn is what the process may take for itself meanwhile, beside the limit's
// twentieth and what the Go runtime counts: threads, pages of the program.
const goOwn = 4 << 20

type dropRun struct {
	policy       string
	total, limit int64
	before       int64 // resident bytes that are not the Go runtime's
	peak         atomic.Int64
	stats        pool.Stats
	result       string
}

func (d *dropRun) run(t *testing.T) {
	c, err := gc.New(gc.Config{Policy: policy.MustParse(d.policy).New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: d.limit}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	runtime.GC()
	for range 20 {
		d.before = max(d.before, resident())
	}
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			d.peak.Store(max(d.peak.Load(), resident()))
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	begin := time.Now()
	d.drop(t, p)
	took := time.Since(begin)
	close(stop)
	<-watched
	d.stats = p.Stats()
	s := c.Stats()
	d.result = fmt.Sprintf("policy=%s: %v dropped through %v in %v: %d waits for a cycle under way, %d refusals, %d failures; cycles %v, exposed %v, longest pause %v; peak live %v, reserved %v; resident %v before, %v at most",
		d.policy, pressure.Bytes(d.stats.Allocated), pressure.Bytes(d.limit), took.Round(time.Millisecond), d.stats.Awaited, d.stats.Refusals, d.stats.Failures,
		s.Cycles, s.Exposed, s.MaxPause, pressure.Bytes(d.stats.LivePeak), pressure.Bytes(d.stats.ReservedPeak),
		pressure.Bytes(d.before), pressure.Bytes(d.peak.Load()))
}

// drop allocates in turns, each array an eighth MiB to 1 MiB, and keeps the
// last few, 1/32 of the limit.
func (d *dropRun) drop(t *testing.T, p *pool.Pool) {
	const most = 1 << 20
	kept := make([]array.Array[byte], max(1, d.limit/32/(most/2)))
	for n := 0; p.Allocated() < d.total; n++ {
		a, err := array.New[byte](p, most>>(n%3))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Fill(byte(n)); err != nil {
			t.Fatal(err)
		}
		kept[n%len(kept)] = a
	}
	runtime.KeepAlive(kept)
}

// resident returns the bytes of this process that are in memory and not the Go
// runtime's, of which more processors need more; 0 if the system does not say, or if the
// runtime's have changed meanwhile.
func resident() int64 {
	before := pressure.GoMemory()
	r, err := pressure.ReadResident()
	if err != nil || pressure.GoMemory() != before {
		return 0
	}
	return max(0, r.Anonymous+r.Mapped-before)
}

// raced reports whether the race detector watches, which keeps books of its own, in memory that nobody counts.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
