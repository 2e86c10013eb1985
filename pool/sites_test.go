package pool_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/trace"
)

// hither is a place that allocates.
//
//go:noinline
func hither(p *pool.Pool, bytes int64) pool.Block { b, _ := p.Alloc(bytes, 0); return b }

// heldBy returns what a function holds, with those it was called from added up.
func heldBy(p *pool.Pool, function string) (sum pool.Holder) {
	for _, h := range p.Holders(math.MaxInt) {
		if strings.Contains(h.Site, "."+function+" ") {
			sum.Bytes, sum.Blocks = sum.Bytes+h.Bytes, sum.Blocks+h.Blocks
		}
	}
	return sum
}

// TestSamplesAreRightOnAverage: within six standard deviations, for blocks far below the rate, near it and far above.
func TestSamplesAreRightOnAverage(t *testing.T) {
	const rate = 64 << 10
	for _, size := range []int64{512, 16 << 10, 64 << 10, 1 << 20} {
		p := open(t, pool.Config{Sites: rate})
		n := int(min(50_000, 1<<29/size)) / 2 * 2
		var odd []pool.Block
		for range n / 2 {
			x := hither(p, size)
			odd = append(odd, hither(p, size))
			p.Free(x)
		}
		chance := 1 - math.Exp(-float64(size)/rate)
		// A block is sampled or not: the variance of what it stands for is size^2 (1-chance)/chance.
		sigma := float64(size) * math.Sqrt(float64(n)*(1-chance)/chance)
		h := heldBy(p, "hither")
		check := func(what string, got, want int64, sigma float64) {
			t.Helper()
			if math.Abs(float64(got-want)) > 6*sigma+float64(n) { // each sample is rounded to a byte
				t.Errorf("size %d: %s %d, want %d with a standard deviation of %.0f", size, what, got, want, sigma)
			}
		}
		check("live", h.Bytes, int64(n/2)*size, sigma/math.Sqrt2)
		check("blocks", h.Blocks*size, int64(n/2)*size, sigma/math.Sqrt2)
		for _, x := range odd {
			p.Free(x)
		}
		if h := heldBy(p, "hither"); h.Bytes != 0 || h.Blocks != 0 {
			t.Errorf("size %d: all is free, and held: %+v", size, h)
		}
	}
}

// TestRecordedSites: recorded allocations say where they come from, if that was sampled, in each sink anew; the recording says how it was.
func TestRecordedSites(t *testing.T) {
	for _, rate := range []int64{0, 1, 32 << 10} {
		p := open(t, pool.Config{Sites: rate})
		for range 2 {
			out := sink{&trace.Trace{Labels: []string{""}}}
			p.SetTrace(out)
			for range 1000 {
				p.Free(hither(p, 1000))
			}
			sited, marks := 0, 0
			for _, e := range out.Events {
				text := out.Trace.Label(e)
				if e.Kind == trace.Mark && text == trace.SiteRateLabel && e.Bytes == rate {
					marks++
				}
				if e.Kind != trace.Alloc || text == "" {
					continue
				}
				if sited++; !strings.HasPrefix(text, "github.com/eagergc/eagergc/pool_test.hither\t") || !strings.Contains(text, "TestRecordedSites\t") {
					t.Fatalf("label %q", text)
				}
			}
			// About 31 of 1000 at 32 KiB, by chance.
			if rate == 0 && sited != 0 || rate == 1 && sited != 1000 || rate > 1 && (sited == 0 || sited > 200) || (marks == 1) != (rate > 1) || len(out.Labels) > 3 {
				t.Errorf("rate %d: %d allocations with a site, %d marks, labels %q", rate, sited, marks, out.Labels)
			}
		}
	}
}

// TestARecordingHasWhatIsLive: whenever a sink is set, it has the blocks that are handed out, whatever has happened while it was not.
func TestARecordingHasWhatIsLive(t *testing.T) {
	schedules(t, 100, func(s *schedule) {
		p := open(t, pool.Config{Upstream: newDevice(1 << 40)})
		tape, on, held := sink{new(trace.Trace)}, false, []pool.Block(nil)
		for range 60 {
			events := len(tape.Events)
			switch choice := s.IntN(8); {
			case choice == 0:
				if on = true; s.coin() {
					tape, events = sink{new(trace.Trace)}, 0
				}
				p.SetTrace(tape)
				if slices.ContainsFunc(tape.Events[events:], func(e trace.Event) bool { return e.Kind == trace.Alloc && tape.Trace.Label(e) != trace.BeforeLabel }) {
					s.Fatalf("what was there before is recorded as %+v, %q", tape.Events[events:], tape.Labels)
				}
			case choice == 1:
				on = false
				p.SetTrace(nil)
			case choice < 4 && len(held) > 0:
				p.Free(held[0])
				held = held[1:]
			default:
				b, _ := p.Alloc(int64(s.IntN(5000)), uint32(s.IntN(2)))
				held = append(held, b)
			}
			live := int64(0)
			for _, e := range tape.Events {
				live += e.Bytes * map[trace.Kind]int64{trace.Alloc: 1, trace.Free: -1}[e.Kind]
			}
			if err := tape.Validate(); err != nil || on && live != p.Stats().Live {
				s.Fatalf("%v; %d bytes are recorded, %d are live", err, live, p.Stats().Live)
			}
		}
		for _, b := range held {
			p.Free(b)
		}
	})
}

// labelled is a sink that calls a function at the first label.
type labelled struct {
	sink
	first func()
}

func (l labelled) Label(text string) uint32 { l.first(); return l.sink.Label(text) }

// TestARecordingBeginsWhole: of more than 16384 blocks one object stands for the rest. A block that is freed while they are recorded is freed in the recording.
func TestARecordingBeginsWhole(t *testing.T) {
	p, all := open(t, pool.Config{Upstream: newDevice(1 << 40)}), []pool.Block(nil)
	for range 1<<14 + 100 {
		all = append(all, alloc(t, p, 1))
	}
	tape, freed, before := sink{new(trace.Trace)}, make(chan bool), all[0]
	p.SetTrace(labelled{tape, sync.OnceFunc(func() {
		go func() { p.Free(before); close(freed) }()
		waitFor(t, "the free has begun", func() bool {
			select {
			case <-freed:
				return true
			default:
				return strings.Contains(stacks(), ".begun(")
			}
		})
	})})
	<-freed
	var sums [trace.Decision]int64
	for _, e := range tape.Events {
		sums[e.Kind] += e.Bytes
	}
	if n := len(tape.Events); n != 1<<14+2 || tape.Events[n-2].Bytes != 100*512 || sums[trace.Alloc]-sums[trace.Free] != p.Stats().Live {
		t.Errorf("%d events, the last %+v, %d bytes live", n, tape.Events[n-2:], p.Stats().Live)
	}
	for _, b := range all[1:] {
		p.Free(b)
	}
}

// TestSitesFollowTheLimit: a 512th of the limit that a pool begins with, between bounds, or what was asked for.
func TestSitesFollowTheLimit(t *testing.T) {
	for _, c := range []struct{ sites, hard, want int64 }{
		{777, mib, 777}, {pool.SitesByLimit, 0, 128 * mib}, {pool.SitesByLimit, mib, 64 * kib}, {pool.SitesByLimit, 64 * mib, 128 * kib}, {pool.SitesByLimit, 1 << 37, 128 * mib},
	} {
		out := sink{new(trace.Trace)}
		open(t, pool.Config{Upstream: newDevice(1 << 40), Sites: c.sites, Limits: hard(c.hard), Trace: out})
		if mark := out.Events[0]; mark.Kind != trace.Mark || mark.Bytes != c.want {
			t.Errorf("Sites %d under %d: %+v, want a rate of %d", c.sites, c.hard, mark, c.want)
		}
	}
}

// TestTheFastPathAllocatesNothing on the Go heap, nor does noting a site once it is known.
func TestTheFastPathAllocatesNothing(t *testing.T) {
	for _, rate := range []int64{0, 1, pool.DefaultSites} {
		p := open(t, pool.Config{Sites: rate})
		for _, size := range []int64{1, 512, 1 << 20, 3 << 20} {
			if n := testing.AllocsPerRun(100, func() { p.Free(hither(p, size)) }); n != 0 {
				t.Errorf("%d bytes at a rate of %d: %v allocations", size, rate, n)
			}
		}
	}
}
