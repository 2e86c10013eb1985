package auto

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/verdict"
)

// TestHeldMemoryIsNews once it has stayed for 10 s, and again each time that it has doubled. A small amount is news only once that has
// doubled. Memory that falls in between is work in progress.
func TestHeldMemoryIsNews(t *testing.T) {
	j := newJudge()
	for i, step := range []struct {
		seconds int
		level   int64
		futile  bool
		want    []int64 // MiB
	}{
		{9, 700, true, nil}, {1, 700, true, []int64{700}}, {30, 800, true, nil}, {1, 10, true, nil}, {30, 1500, true, []int64{1500}}, {30, 1500, false, nil},
		{30, 63, true, nil}, {10, 64, true, []int64{64}}, {1, 10, false, nil}, {30, 9, true, nil}, {30, 17, true, nil}, {30, 18, true, []int64{18}},
		{30, 35, true, nil}, {30, 36, true, []int64{36}}, {1, 10, false, nil}, {9, 70, true, nil}, {1, 700, true, []int64{70}}, {9, 700, true, []int64{700}},
	} {
		var got []int64
		for range step.seconds {
			if _, held, stayed := j.see(reading{Outside: step.level * mib, Total: step.level * mib, Futile: step.futile}); held > 0 {
				if got = append(got, held/mib); stayed < 10*time.Second {
					t.Errorf("step %d: stayed %v", i, stayed)
				}
			}
		}
		if len(got) != len(step.want) || len(got) > 0 && got[0] != step.want[0] {
			t.Errorf("step %d: news %v, want %v", i, got, step.want)
		}
	}
}

// TestGrowth is found at the scale at which it shows, and only if it goes on, is large enough, and cycles have had their chance.
func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		seconds int64
		base    int64 // MiB
		rate    int64 // KiB/s
		period  int64 // s, of the sawtooth of garbage
		height  int64 // MiB
		fall    int64 // s, after which the level is back at base
		until   int64 // s, after which the level stays; 0 = it does not
		peak    int64 // MiB, in the first 20 s; growth begins after 1500 s
		idle    bool  // no cycle runs
		early   bool  // cycles run in the first 8 s alone
		futile  int64 // 1: cycles are in vain, n: the last of n readings says so
		golang  bool
		garbage bool // what grows is garbage until the next cycle
		kept    bool // C's allocator keeps it free
		freed   bool // cycles free more than that
		want    string
		level   string
	}{
		"fast":                          {seconds: 24, rate: 20 << 10, want: verdict.OutsideGrowth, level: verdict.Bad},
		"too soon":                      {seconds: 23, rate: 20 << 10},
		"very fast":                     {seconds: 12, rate: 64 << 10, want: verdict.OutsideGrowth, level: verdict.Bad},
		"very fast, too soon":           {seconds: 11, rate: 64 << 10},
		"fast from the start":           {seconds: 12, rate: 63 << 10},
		"caches fill in the first 14 s": {seconds: 24, rate: 20 << 10, until: 14},
		"120 MiB in 8 s":                {seconds: 24, rate: 15 << 10, base: 10},
		"128 MiB in 8 s":                {seconds: 24, rate: 16 << 10, base: 10, want: verdict.OutsideGrowth, level: verdict.Bad},
		"to a level that it has had":    {seconds: 42, rate: 16 << 10, base: 10, fall: 28},
		"above the levels before":       {seconds: 66, rate: 16 << 10, base: 10, fall: 28, want: verdict.OutsideGrowth, level: verdict.Bad},
		"above a peak of long ago":      {seconds: 1520, rate: 16 << 10, base: 100, peak: 600, want: verdict.OutsideGrowth, level: verdict.Bad},
		"below a twentieth":             {seconds: 24, rate: 5 << 10, base: 1000},
		"64 MiB in 64 s":                {seconds: 192, rate: 1 << 10, base: 10, want: verdict.OutsideGrowth, level: verdict.Bad},
		"60 MiB in 64 s":                {seconds: 192, rate: 960, base: 10},
		"a tenth in 64 s":               {seconds: 192, rate: 2 << 10, base: 700, want: verdict.OutsideGrowth, level: verdict.Watch},
		"a fifth in 512 s":              {seconds: 896, rate: 600, base: 1000, want: verdict.OutsideGrowth, level: verdict.Watch},
		"a hundredth":                   {seconds: 2000, rate: 20, base: 1000},
		"nobody collects":               {seconds: 27, rate: 20 << 10, idle: true},
		"nobody collects any more":      {seconds: 27, rate: 20 << 10, early: true},
		"cycles are in vain":            {seconds: 192, rate: 2 << 10, base: 700, idle: true, futile: 1, want: verdict.OutsideGrowth, level: verdict.Watch},
		"in vain one second in eight":   {seconds: 192, rate: 2 << 10, base: 700, idle: true, futile: 8},
		"doubles in 250 s":              {seconds: 192, rate: 4 << 10, base: 232, want: verdict.OutsideGrowth, level: verdict.Bad},
		"beside garbage":                {seconds: 96, rate: 20 << 10, period: 3, height: 200, want: verdict.OutsideGrowth, level: verdict.Bad},
		"swings, each a little higher":  {seconds: 1000, rate: 50, base: 100, period: 200, height: 1},
		"garbage alone":                 {seconds: 500, period: 3, height: 200, base: 10},
		"the allocator keeps it":        {seconds: 24, rate: 20 << 10, kept: true, want: verdict.Retention, level: verdict.Watch},
		"cycles free more":              {seconds: 95, rate: 20 << 10, freed: true},
		"cycles free more, in 96 s":     {seconds: 96, rate: 20 << 10, freed: true, want: verdict.OutsideGrowth, level: verdict.Bad},
		"Go, very fast":                 {seconds: 12, rate: 32 << 10, golang: true, want: verdict.GoGrowth, level: verdict.Bad},
		"Go, for 64 s":                  {seconds: 96, rate: 1 << 10, golang: true, want: verdict.GoGrowth, level: verdict.Bad},
		"Go, while requests queue up":   {seconds: 14, rate: 24 << 10, base: 40, golang: true},
		"garbage of Go before a cycle ": {seconds: 12, rate: 32 << 10, golang: true, garbage: true},
	} {
		j := newJudge()
		var f gc.Finding
		for s := range c.seconds {
			level := c.base*mib + s*c.rate<<10
			if c.peak > 0 {
				level = max(c.base, c.peak*min(1, 20/(s+1)))*mib + max(0, s-1500)*c.rate<<10
			}
			if c.until > 0 {
				level = min(level, c.base*mib+c.until*c.rate<<10)
			}
			if c.fall > 0 && s >= c.fall {
				level -= c.fall * c.rate << 10
			}
			if c.period > 0 {
				level += s % c.period * c.height * mib
			}
			r := reading{Outside: level, Total: level, Cycles: uint64(s)}
			r.Futile = c.futile > 0 && s%c.futile == c.futile-1
			if c.kept {
				r.Kept = level
			}
			if c.freed {
				r.Freed = s * 30 * mib
			}
			if c.idle {
				r.Cycles = 0
			}
			if c.early {
				r.Cycles = uint64(min(s, 8))
			}
			if c.golang {
				r.Outside, r.Objects, r.Live = 0, level, level
				if c.garbage {
					r.Live = c.base * mib
				}
			}
			f, _, _ = j.see(r)
		}
		if f.Verdict != c.want && (c.want != "" || f.Level == verdict.Bad || f.Level == verdict.Watch) || c.level != "" && f.Level != c.level {
			t.Errorf("%s: %+v, want %s, %s", name, f, c.want, c.level)
		}
	}
}

// TestGarbageIsNoGrowth, though it comes fast and cycles are seconds apart.
func TestGarbageIsNoGrowth(t *testing.T) {
	for seed := range uint64(100) {
		r, j := rand.New(rand.NewPCG(seed, 4)), newJudge()
		outside, cycles, next := 300.0, uint64(0), 0.0
		for s := range 300 {
			for range 10 { // tenths of a second
				outside += 50
				if next--; next <= 0 {
					outside, next = 100+300*r.Float64(), 10+50*r.Float64()
					cycles++
				}
			}
			level := int64(outside) * mib
			if f, _, _ := j.see(reading{Outside: level, Total: level, Cycles: cycles}); f.Level == verdict.Bad || f.Level == verdict.Watch {
				t.Errorf("seed %d, after %d s: %+v", seed, s, f)
				break
			}
		}
	}
}

// TestTheWorstIsFound: finalizers that block come before all else, growth before a limit; being over it for one reading is nothing.
func TestTheWorstIsFound(t *testing.T) {
	j := newJudge()
	for i, c := range []struct {
		outside, limit int64
		want           string
	}{{400, 300, ""}, {400, 300, verdict.OverLimit}, {300, 300, verdict.NearLimit}, {280, 300, ""}, {286, 300, verdict.NearLimit}} {
		if f, _, _ := j.see(reading{Outside: c.outside * mib, Total: c.outside * mib, Limit: c.limit * mib}); f.Verdict != c.want {
			t.Errorf("step %d: %+v, want %s", i, f, c.want)
		}
	}
	for which := range 2 { // finalizers block, or cleanups, while the others run
		j := newJudge()
		r := reading{Outside: 400 * mib, Total: 400 * mib, Limit: 300 * mib}
		for s := range uint64(40) {
			r.Due[1-which] = queue{Queued: s + 5, Run: s}
			r.Due[which] = queue{Queued: 9, Run: min(9, 4+s/15*5)}
			f, _, _ := j.see(r)
			if want := s >= 10 && s < 15; (f.Verdict == verdict.Blocked) != want || want && f.Level != verdict.Bad {
				t.Errorf("queue %d after %d s: %+v", which, s, f)
			}
		}
	}
	for i, c := range []struct{ total, kept, free, live, want int64 }{{400, 80, 0, 0, 1}, {400, 79, 0, 0, 0}, {100, 64, 0, 0, 1}, {100, 63, 0, 0, 0}, {400, 0, 180, 100, 1}, {400, 0, 179, 100, 0}} {
		j := newJudge()
		var f gc.Finding
		for range 12 {
			f, _, _ = j.see(reading{Total: c.total * mib, Kept: c.kept * mib, GoFree: c.free * mib, Live: c.live * mib})
		}
		if (f.Verdict == verdict.Retention) != (c.want == 1) {
			t.Errorf("case %d: %+v", i, f)
		}
		if f, _, _ = j.see(reading{Total: c.total * mib}); f.Verdict != verdict.Healthy {
			t.Errorf("case %d: once it is used: %+v", i, f)
		}
	}
}
