package pool_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/trace"
)

func sampled(tb testing.TB, rate int64, to trace.Sink) *pool.Pool {
	tb.Helper()
	p, err := pool.New(pool.Config{Sites: rate, Trace: to})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Two places that allocate.

//go:noinline
func hither(p *pool.Pool, bytes int64) pool.Block { b, _ := p.Alloc(bytes, 0); return b }

//go:noinline
func thither(p *pool.Pool, bytes int64) pool.Block { b, _ := p.Alloc(bytes, 0); return b }

// heldBy returns what a function holds, with those it was called from added up.
func heldBy(p *pool.Pool, function string) (sum pool.Holder) {
	for _, h := range p.Holders(-1) {
		if strings.Contains(h.Site, "."+function+" ") {
			sum.Bytes += h.Bytes
			sum.Blocks += h.Blocks
			sum.AllocBytes += h.AllocBytes
			sum.AllocBlocks += h.AllocBlocks
		}
	}
	return sum
}

// At a rate of 1 sites are exact, whatever is allocated and freed.
func TestEverySite(t *testing.T) {
	schedules(t, 50, func(t *schedule) {
		p, err := pool.New(pool.Config{Sites: 1, Direct: t.coin()})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		want := map[string]pool.Holder{}
		places := map[string]func(*pool.Pool, int64) pool.Block{"hither": hither, "thither": thither}
		type held struct {
			pool.Block
			place string
			size  int64
		}
		var live []held
		for range t.between(1, 100) {
			if len(live) > 0 && t.coin() {
				i := t.between(0, len(live)-1)
				x := live[i]
				live = append(live[:i], live[i+1:]...)
				p.Free(x.Block)
				h := want[x.place]
				h.Bytes -= x.size
				h.Blocks--
				want[x.place] = h
				continue
			}
			place := oneOf(t, "hither", "thither")
			bytes := int64(t.between(0, 4<<20))
			x := held{places[place](p, bytes), place, max(512, (bytes+511)/512*512)}
			live = append(live, x)
			h := want[place]
			h.Bytes += x.size
			h.Blocks++
			h.AllocBytes += x.size
			h.AllocBlocks++
			want[place] = h
		}
		for place, h := range want {
			if got := heldBy(p, place); got != h {
				t.Fatalf("%s: got %+v, want %+v", place, got, h)
			}
		}
		for _, x := range live {
			p.Free(x.Block)
		}
		if h := p.Holders(10); len(h) != 0 {
			t.Fatalf("all is free, and held: %+v", h)
		}
	})
}

// What a sample stands for makes the sums right on average: they are within six
// standard deviations, for blocks far below the rate, near it and far above.
func TestSampledSites(t *testing.T) {
	const rate = 64 << 10
	for _, size := range []int64{512, 16 << 10, 64 << 10, 1 << 20} {
		p := sampled(t, rate, nil)
		n := int(min(100_000, 1<<30/size)) / 2 * 2
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
		check("allocated", h.AllocBytes, int64(n)*size, sigma)
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

// Readers beside those who allocate see no site that holds less than nothing.
func TestSitesWhileBusy(t *testing.T) {
	p := sampled(t, 4<<10, nil)
	var work sync.WaitGroup
	for range 4 {
		work.Add(1)
		go func() {
			defer work.Done()
			for range 2000 {
				x := hither(p, 1000)
				y := thither(p, 100<<10)
				p.Free(x)
				p.Free(y)
			}
		}()
	}
	for range 50 {
		for _, h := range p.Holders(-1) {
			if h.Bytes < 0 || h.Blocks < 0 || h.Bytes > h.AllocBytes {
				t.Errorf("%+v", h)
			}
		}
	}
	work.Wait()
	if h := p.Holders(10); len(h) != 0 {
		t.Errorf("all is free, and held: %+v", h)
	}
}

// Recorded allocations say where they come from, if that was sampled; the
// recording says how it was.
func TestRecordedSites(t *testing.T) {
	for _, rate := range []int64{0, 1, 32 << 10} {
		out := newTape()
		p := sampled(t, rate, out)
		first, second := newTape(), out
		var blocks []pool.Block
		for range 1000 {
			blocks = append(blocks, hither(p, 1000))
		}
		p.SetTrace(first)
		blocks = append(blocks, hither(p, 1<<20))
		p.SetTrace(second)
		for _, x := range blocks {
			p.Free(x)
		}
		allocs, sited, marks := 0, 0, 0
		for _, e := range out.Events {
			text := out.Trace.Label(e)
			switch {
			case e.Kind == trace.Alloc:
				allocs++
				if text != "" {
					sited++
				}
				if text != "" && (!strings.HasPrefix(text, "github.com/eagergc/eagergc/pool_test.hither\t") || !strings.Contains(text, "TestRecordedSites\t")) {
					t.Fatalf("label %q", text)
				}
			case e.Kind == trace.Mark && text == trace.SiteRateLabel:
				marks++
				if e.Bytes != rate {
					t.Errorf("rate %d, recorded as %d", rate, e.Bytes)
				}
			}
		}
		// About 31 of 1000 at 32 KiB, by chance.
		if allocs != 1000 || rate == 0 && sited != 0 || rate == 1 && sited != 1000 || rate > 1 && (sited == 0 || sited > 200) || (marks > 0) != (rate > 1) {
			t.Errorf("rate %d: %d allocations, %d with a site, %d marks", rate, allocs, sited, marks)
		}
		if e := first.Events[len(first.Events)-1]; rate > 0 && e.Kind == trace.Alloc && !strings.Contains(first.Trace.Label(e), "hither") {
			t.Errorf("the second sink got the label %q", first.Trace.Label(e))
		}
	}
}

func TestBadSites(t *testing.T) {
	for _, rate := range []int64{-2, pool.MaxBytes + 1} {
		if _, err := pool.New(pool.Config{Sites: rate}); err == nil {
			t.Errorf("a rate of %d is accepted", rate)
		}
	}
}

// Noting a site allocates nothing once the site is known.
func TestSitesAllocateNothing(t *testing.T) {
	for _, rate := range []int64{0, 1, pool.DefaultSites} {
		p := sampled(t, rate, nil)
		if n := testing.AllocsPerRun(1000, func() { p.Free(hither(p, 1000)) }); n != 0 {
			t.Errorf("rate %d: %v allocations", rate, n)
		}
	}
}
