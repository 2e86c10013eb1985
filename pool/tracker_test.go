package pool

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTrackerAgainstModel: what any callers take and give back, through shards or not, is counted as a plain sum would.
func TestTrackerAgainstModel(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		if !trackerAgainstModel(t, rand.New(rand.NewPCG(seed, 0))) {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func trackerAgainstModel(t *testing.T, rng *rand.Rand) bool {
	var tr tracker
	shards := []*shard{{tracker: &tr, Slack: 4096}, {tracker: &tr, Slack: 100}, {tracker: &tr}}[:1+rng.IntN(3)]
	var live, peak, allocated, allocs, frees int64
	var held []int64
	for range rng.IntN(100) {
		way := shards[rng.IntN(len(shards))]
		switch k := rng.IntN(10); {
		case k < 5:
			n := rng.Int64N(10001)
			way.Take(n)
			held = append(held, n)
			live, allocated, allocs = live+n, allocated+n, allocs+1
			peak = max(peak, live)
		case k < 9 && len(held) > 0:
			i := rng.IntN(len(held))
			way.Give(held[i])
			live, frees = live-held[i], frees+1
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		case k == 9:
			for _, s := range shards {
				s.Settle()
			}
			tr.ResetPeaks()
			peak = live
		}
		got := tr.Live()
		for _, s := range shards {
			got -= s.ready
		}
		if got != live {
			t.Errorf("live %d, want %d", got, live)
		}
	}
	for _, s := range shards {
		s.Settle()
	}
	c := countsOf(&tr)
	if c.Live != live || c.Allocated != allocated || c.Allocs != allocs || c.Frees != frees || c.Freed != allocated-live {
		t.Errorf("counts %+v, want live %d allocated %d allocs %d frees %d", c, live, allocated, allocs, frees)
	}
	slack := int64(0) // of one shard the peak is exact
	if len(shards) > 1 {
		slack = 2 * (4096 + 100)
	}
	if max(c.LivePeak-peak, peak-c.LivePeak) > slack {
		t.Errorf("peak %d, want %d within %d", c.LivePeak, peak, slack)
	}
	return !t.Failed()
}

func TestTrackerNeverPassesItsLimit(t *testing.T) {
	const limit = 1000
	var tr tracker
	var over atomic.Int64
	stop := make(chan struct{})
	var watch, work sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		for {
			select {
			case <-stop:
				return
			default:
				if tr.Reserved() > limit {
					over.Add(1)
				}
			}
		}
	}()
	for seed := range uint64(4) {
		work.Add(1)
		go func() {
			defer work.Done()
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 20000 {
				n := rng.Int64N(600)
				if tr.Reserve(n, limit) {
					tr.Release(n)
				}
			}
		}()
	}
	work.Wait()
	close(stop)
	watch.Wait()
	if c := countsOf(&tr); over.Load() != 0 || c.ReservedPeak > limit || c.Reserved != 0 {
		t.Errorf("seen above the limit %d times, counts %+v", over.Load(), c)
	}
	if tr.Reserve(limit+1, limit) || !tr.Reserve(limit, limit) || tr.Reserve(1, limit) {
		t.Error("the limit is not where it should be")
	}
}

func TestTrackerPanicsWithNumbers(t *testing.T) {
	for name, broken := range map[string]func(*tracker){
		"-8 bytes":       func(tr *tracker) { (&shard{tracker: tr}).Give(8); tr.live.sub("live", 8) },
		"reserved":       func(tr *tracker) { tr.Release(8) },
		"-3 bytes taken": func(tr *tracker) { tr.Reserve(-3, 0) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) {
					t.Errorf("panic %q does not say %q", text, name)
				}
			}()
			broken(new(tracker))
		}()
	}
}

func TestTrackerDoesNotAllocate(t *testing.T) {
	var tr tracker
	s := shard{tracker: &tr, Slack: 512}
	if n := testing.AllocsPerRun(100, func() {
		s.Take(1024)
		s.Give(1024)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTracker(b *testing.B) {
	b.Run("shard", func(b *testing.B) {
		var tr tracker
		s := shard{tracker: &tr, Slack: 1 << 20}
		for b.Loop() {
			s.Take(512)
			s.Give(512)
		}
	})
	b.Run("shard-parallel", func(b *testing.B) {
		var tr tracker
		b.RunParallel(func(pb *testing.PB) {
			s := shard{tracker: &tr, Slack: 1 << 20}
			for pb.Next() {
				s.Take(512)
				s.Give(512)
			}
		})
	})
}

// A limit bounds what two trackers reserve together.
func TestTrackerWithin(t *testing.T) {
	var all tracker
	a, b := tracker{Within: &all}, tracker{Within: &all}
	if !a.Reserve(60, 100) || b.Reserve(50, 100) || !b.Reserve(40, 100) || a.Reserve(1, 100) {
		t.Errorf("reserved %d and %d under a limit of 100", a.Reserved(), b.Reserved())
	}
	a.Release(60)
	if all.Reserved() != 40 || b.Reserved() != 40 || a.Reserved() != 0 {
		t.Errorf("reserved %d, %d, together %d", a.Reserved(), b.Reserved(), all.Reserved())
	}
}

// TestTheLimitIsThatOfAllWithin: a tracker within another has no limit of its own.
func TestTheLimitIsThatOfAllWithin(t *testing.T) {
	var all tracker
	a, b := tracker{Within: &all}, tracker{Within: &all}
	if !a.Reserve(60, 100) || !b.Reserve(40, 100) || b.Reserve(1, 100) {
		t.Error("100 bytes take 60 and 40, and not one more")
	}
	a.Release(60)
	if !b.Reserve(60, 100) || b.Reserved() != 100 || a.Reserved() != 0 || all.Reserved() != 100 {
		t.Errorf("%d and %d of %d", a.Reserved(), b.Reserved(), all.Reserved())
	}
	if countsOf(&all).ReservedPeak != 100 || b.Headroom(150) != 50 {
		t.Errorf("peak %d, headroom %d", countsOf(&all).ReservedPeak, b.Headroom(150))
	}
}

// TestAShardTakesAndGivesInAdvance: with 100 bytes of slack, by hand.
func TestAShardTakesAndGivesInAdvance(t *testing.T) {
	var tr tracker
	s := shard{tracker: &tr, Slack: 100}
	for i, step := range []struct {
		do    func(int64)
		bytes int64
		live  int64 // of the tracker, then
		ready int64
		peak  int64 // of the tracker, once it is told
	}{
		{s.Take, 50, 150, 100, 50},
		{s.Take, 100, 150, 0, 150}, // what was ready is handed out
		{s.Take, 10, 260, 100, 160},
		{s.Give, 100, 260, 200, 160}, // twice the slack may be ready
		{s.Give, 1, 159, 100, 160},   // and no more
	} {
		step.do(step.bytes)
		if tr.Live() != step.live || s.ready != step.ready {
			t.Errorf("step %d: %d live with %d ready, want %d with %d", i, tr.Live(), s.ready, step.live, step.ready)
		}
	}
	s.Settle()
	if c := countsOf(&tr); c.Live != 59 || c.LivePeak != 160 || c.Allocs != 3 || c.Frees != 2 || c.Allocated != 160 || s.ready != 0 || s.bytes != 0 {
		t.Errorf("%+v", c)
	}
}

func countsOf(t *tracker) (s Stats) {
	t.Counts(&s)
	return s
}
