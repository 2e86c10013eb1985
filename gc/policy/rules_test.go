package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

const (
	kB = 1000
	MB = 1000 * kB
	GB = 1000 * MB
)

// grow is an allocation of request bytes at now with live bytes, after gross
// bytes since the last cycle left after.
func grow(now time.Duration, live, request, gross, after, limit int64) Point {
	return Point{
		Now: now, At: Allocation, Request: request, Allocated: gross, LiveAfter: after,
		Sample: pressure.Sample{Live: live, Reserved: live, Limit: limit},
	}
}

// running marks a point at which a cycle is under way.
func running(p Point) Point {
	p.Running = true
	return p
}

// own is a cycle that the policy asked for.
func own(start, length time.Duration, freed, left int64) *Cycle {
	return &Cycle{Start: start, Duration: length, Exposed: length, Trigger: TriggerPolicy, Action: Block, Freed: freed, LiveAfter: left}
}

func TestEverySync(t *testing.T) {
	walk(t, "every-sync", []step{
		{"", nil, alloc(0, 999, 1000), Skip},
		{"", nil, wait(0, 0, 1000), Block},
		{"", nil, wait(0, 0, 1000), Block},
	})
	walk(t, "every-sync:n=3", []step{
		{"1", nil, wait(0, 0, 0), Skip},
		{"2", nil, wait(0, 0, 0), Skip},
		{"3", nil, wait(0, 0, 0), Block},
		{"4", nil, wait(0, 0, 0), Skip},
	})
}

// TestRandom holds the share of cycles to its binomial distribution and the
// numbers to the seed.
func TestRandom(t *testing.T) {
	const n, p = 100000, 0.3
	count := func(text string) (hits int, first uint64) {
		policy := MustParse(text).New()
		for i := range n {
			if policy.Decide(alloc(0, 0, 0)).Action == Block {
				hits++
				if i < 64 {
					first |= 1 << i
				}
			}
		}
		return hits, first
	}
	hits, first := count("random:0.3")
	if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(hits)-n*p) > 5*sd {
		t.Errorf("%d of %d, want %g +- %.0f", hits, n, n*p, 5*sd)
	}
	if _, again := count("random:0.3"); again != first {
		t.Error("the same seed gave other numbers")
	}
	if _, other := count("random:0.3,seed=2"); other == first {
		t.Error("another seed gave the same numbers")
	}
	if hits, _ := count("random:0"); hits != 0 {
		t.Errorf("%d cycles at p = 0", hits)
	}
	if hits, _ := count("random:1"); hits != n {
		t.Errorf("%d cycles of %d at p = 1", hits, n)
	}
}

func TestGrowth(t *testing.T) {
	walk(t, "growth:0.5", []step{
		{"minimum 4 MiB x 0.5", nil, grow(0, 2*miB-2, 1, 0, 0, 0), Skip},
		{"minimum reached", nil, grow(0, 2*miB-1, 1, 0, 0, 0), Overlap},
		{"under way", nil, running(grow(0, 3*miB, 1, 0, 0, 0)), Skip},
		{"1.5 x 100 MB", nil, grow(0, 149*MB, 999999, 0, 100*MB, 0), Skip},
		{"1.5 x 100 MB, sync", nil, wait(0, 200*MB, 0), Skip},
		{"1.5 x 100 MB reached", nil, grow(0, 149*MB, MB, 0, 100*MB, 0), Overlap},
	})
	walk(t, "growth:1,min=10%,overlap=false", []step{
		{"minimum 100", nil, grow(0, 98, 1, 0, 0, 1000), Skip},
		{"minimum 100", nil, running(grow(0, 99, 1, 0, 0, 1000)), Block},
	})
}

func TestErlang(t *testing.T) {
	walk(t, "erlang:min=1000B", []step{
		{"1000 is not above 1000", nil, grow(0, 900, 100, 0, 0, 0), Skip},
		{"above", nil, grow(0, 901, 100, 0, 0, 0), Block},
		// 753/3 = 251 > 1000/4: 1618; 251 > 404 is false.
		{"grown to 1618", own(0, 1, 0, 753), grow(0, 1618, 0, 0, 0, 0), Skip},
		{"above 1618", nil, grow(0, 1618, 1, 0, 0, 0), Block},
		// 752/3 = 250 > 404 is false; 752 < 404 is false.
		{"the same", own(0, 1, 0, 752), grow(0, 1618, 1, 0, 0, 0), Block},
		// 403 < 1618/4 = 404: 809, below the minimum of 1000.
		{"halved, but not below min", own(0, 1, 0, 403), grow(0, 1000, 0, 0, 0, 0), Skip},
		{"halved, but not below min", nil, grow(0, 1000, 1, 0, 0, 0), Block},
		// 3000/3 = 1000 > 250, 404, 654 (2617/4), 1058 (4234/4): 4234.
		{"grown in three steps", own(0, 1, 0, 3000), grow(0, 4234, 0, 0, 0, 0), Skip},
		{"grown in three steps", nil, grow(0, 4234, 1, 0, 0, 0), Block},
		{"1058 is a quarter", own(0, 1, 0, 1058), grow(0, 4234, 0, 0, 0, 0), Skip},
		{"less: halved", own(0, 1, 0, 1057), grow(0, 2117, 0, 0, 0, 0), Skip},
		{"less: halved", nil, grow(0, 2117, 1, 0, 0, 0), Block},
	})
	walk(t, "erlang:min=1000B", []step{
		{"", nil, grow(0, 1, 0, 0, 0, 0), Skip},
		{"750/3 = 1000/4: the same", own(0, 1, 0, 750), grow(0, 1001, 0, 0, 0, 0), Block},
	})
}

func TestSoftmax(t *testing.T) {
	walk(t, "softmax", []step{
		{"300 MB is not above", nil, grow(0, 200*MB, 100*MB, 0, 0, 0), Skip},
		{"above", nil, grow(0, 200*MB, 100*MB+1, 0, 0, 0), Block},
		{"240 MB left, request included: the same", own(0, 1, 0, 140*MB-1), grow(0, 300*MB, 1, 0, 0, 0), Block},
		{"more left: 420 MB", own(0, 1, 0, 240*MB), grow(0, 300*MB, 120*MB, 0, 0, 0), Skip},
		{"above 420 MB", nil, grow(0, 300*MB, 120*MB+1, 0, 0, 0), Block},
		{"a refusal's cycle changes nothing", &Cycle{Trigger: TriggerRefusal, LiveAfter: 400 * MB}, grow(0, 420*MB, 1, 0, 0, 0), Block},
		{"sync points are none of its business", nil, wait(0, 500*MB, 0), Skip},
	})
	walk(t, "softmax:max=25%", []step{
		{"250", nil, grow(0, 249, 1, 0, 0, 1000), Skip},
		{"251", nil, grow(0, 250, 1, 0, 0, 1000), Block},
	})
}

func TestV8Step(t *testing.T) {
	walk(t, "v8step", []step{
		{"64 MiB is not above", nil, grow(0, 64*miB-1, 1, 0, 0, 0), Skip},
		{"soft", nil, grow(0, 64*miB, 1, 0, 0, 0), Overlap},
		{"under way", nil, running(grow(0, 64*miB, 1, 0, 0, GB)), Skip},
		{"half of the limit", nil, running(grow(0, 500*MB, 0, 0, 0, GB)), Skip},
		{"more, even under way", nil, running(grow(0, 500*MB, 1, 0, 0, GB)), Block},
		{"from what the cycle left", own(0, 1, 0, 400*MB), grow(0, 464*MB, 1, 0, 0, GB), Skip},
		{"the mark falls", nil, grow(0, 300*MB, 1, 0, 0, GB), Skip},
		{"from the fallen mark", nil, grow(0, 300*MB, 64*miB+1, 0, 0, GB), Overlap},
		{"a wait sees it fall, too", nil, wait(0, 200*MB, GB), Skip},
		{"from what the wait saw", nil, grow(0, 250*MB, 50*MB, 0, 0, GB), Overlap},
		{"no limit, no hard step", own(0, 1, 0, 0), grow(0, 900*MB, 1, 0, 0, 0), Overlap},
	})
	walk(t, "v8step:soft=1%", []step{
		{"1 % of 1 GB", nil, grow(0, 10*MB, 0, 0, 0, GB), Skip},
		{"more", nil, grow(0, 10*MB, 1, 0, 0, GB), Overlap},
	})
}

func TestDotnet(t *testing.T) {
	// after is an allocation that makes gross bytes since the last cycle.
	after := func(now time.Duration, gross int64) Point { return grow(now, 0, 1, gross-1, 0, 0) }
	steps := []step{
		{"below 4 MiB", nil, after(0, 4*miB-1), Skip},
		{"sync points are none of its business", nil, wait(0, 1<<40, 0), Skip},
		{"4 MiB; no cycle yet, no duty cycle", nil, after(0, 4*miB), Overlap},
		{"five times 10 ms from its start", own(0, 10*ms, miB, 0), after(50*ms, 4*miB), Skip},
		{"later", nil, after(50*ms+1, 4*miB), Overlap},
		{"third interval", own(100*ms, 1, 2*miB, 0), after(200*ms, 8*miB), Overlap},
		{"fourth interval", own(200*ms, 1, miB, 0), after(300*ms, 4*miB), Overlap},
		// Intervals 1, 2 and 3 added 4+8+4 and removed, the interval after each cycle,
		// 1+2+1: 16/4 = 4 times 4 MiB.
		{"fifth: four times the budget", own(300*ms, 1, 0, 0), after(400*ms, 16*miB-1), Skip},
		{"fifth: four times the budget", nil, after(400*ms, 16*miB), Overlap},
		// Intervals 2, 3 and 4: 8+4+16 added, 2+1+0 removed: 28*1024/3 = 9557 of 1024.
		{"sixth: 9557/1024 of it", own(400*ms, 1, 0, 0), after(500*ms, 9557*4096-1), Skip},
		{"sixth: 9557/1024 of it", nil, after(500*ms, 9557*4096), Overlap},
		// Intervals 3, 4 and 5: at most 1 removed of 57: ten times, no more.
		{"seventh: ten times", own(500*ms, 1, 1<<40, 0), after(600*ms, 40*miB-1), Skip},
		{"seventh: ten times", nil, after(600*ms, 40*miB), Overlap},
		{"a terabyte was removed: once", own(600*ms, 1, 0, 0), after(700*ms, 4*miB), Overlap},
		{"under way", nil, running(after(700*ms, 4*miB)), Skip},
	}
	walk(t, "dotnet", steps)

	quiet := MustParse("dotnet").New()
	for range 4 { // each with 8 MiB added and 4 removed
		quiet.Decide(after(0, 8*miB))
		quiet.Observe(*own(0, 1, 4*miB, 0))
	}
	for range 3 { // and then three in which nothing was
		quiet.Observe(Cycle{})
	}
	walkOn(t, quiet, []step{{"nothing added: the least budget", nil, after(ms, 4*miB), Overlap}})

	explicit := after(0, 4*miB)
	explicit.Freed = 1 << 30
	walk(t, "dotnet:budget=1%", []step{
		{"a share without a limit is the default", nil, after(0, 4*miB-1), Skip},
		{"its own frees count", nil, explicit, Overlap},
		{"1 % of 1 GB", nil, grow(0, 0, 1, 10*MB-2, 0, GB), Skip},
		{"1 % of 1 GB", nil, grow(0, 0, 1, 10*MB-1, 0, GB), Overlap},
	})
}

func TestSqrt(t *testing.T) {
	// 1 GB in the first second, a cycle of 1 ms: H = sqrt(1e6 ns x 1 B/ns / 3e-10) = 57.735 MB.
	const h = 57735026
	first := own(time.Second, ms, 0, 100*MB) // ends at 1.001 s, by when 1 GB was allocated
	steps := []step{
		{"no time has passed: least headroom, 2 MiB", nil, grow(0, 0, 2*miB, 0, 0, 0), Skip},
		{"cost unknown: least headroom", nil, grow(1, 0, 2*miB+1, 0, 0, 0), Block},
		{"1 GB in a second", nil, grow(time.Second, 0, 1, GB-1, 0, 0), Skip},
		{"H above 100 MB", first, grow(time.Second+ms, 100*MB, h, 0, 100*MB, 0), Skip},
		{"more", nil, grow(time.Second+ms, 100*MB, h+1, 0, 100*MB, 0), Block},
		{"capped by the limit", nil, grow(time.Second+ms, 110*MB, 1, 0, 100*MB, 110*MB), Block},
		{"below the cap", nil, grow(time.Second+ms, 109*MB, MB, 0, 100*MB, 110*MB), Skip},
		{"sync points are none of its business", nil, wait(time.Second+ms, GB, 0), Skip},
		// The next heartbeat: 10 MB in the second: 0.95 GB + 0.5 MB in 1 s: 0.9505 B/ns: 56.288 MB.
		{"heartbeat", nil, grow(2*time.Second, 156*MB+287*kB, 1, 10*MB-1, 100*MB, 0), Skip},
		{"heartbeat", nil, grow(2*time.Second, 156*MB+288*kB, 1, 10*MB-1, 100*MB, 0), Block},
	}
	// The cycle settles at the end of its first second, so that the rate is round.
	steps[3].cycle.Start = time.Second - ms
	steps[3].cycle.Duration = ms
	walk(t, "sqrt:overlap=false", steps)

	// The cost keeps half: 1 ms then 3 ms is 2 ms, and H grows by sqrt(2).
	walk(t, "sqrt", []step{
		{"1 GB in a second", nil, grow(time.Second, GB-1, 1, GB-1, 0, 0), Overlap},
		{"1 ms", own(0, ms, 0, 0), grow(time.Second, 0, h, 0, 0, 0), Skip},
		{"2 ms", own(0, 3*ms, 0, 0), grow(time.Second, 0, 81649658, 0, 0, 0), Skip},
		{"2 ms", nil, grow(time.Second, 0, 81649659, 0, 0, 0), Overlap},
		{"under way", nil, running(grow(time.Second, 0, 81649659, 0, 0, 0)), Skip},
	})

	freed := func(request int64) Point { // of 1 GB in the first second all, and hardly anything more in the next
		at := grow(2*time.Second, 0, request, GB, 0, 0)
		at.Freed, at.Cost = GB, ms
		return at
	}
	walk(t, "sqrt", []step{
		{"1 GB in a second", nil, grow(time.Second, 0, 0, GB, 0, 0), Skip},
		{"frees take nothing off the rate: 0.95 GB in a second", nil, freed(56273143), Skip},
		{"more", nil, freed(56273144), Overlap},
	})

	costly := grow(time.Second, h, 0, GB, 0, 0)
	costly.Cost = ms
	walk(t, "sqrt", []step{
		{"before the first cycle the expected cost counts", nil, costly, Skip},
		{"which is nothing here", nil, grow(time.Second, h, 0, GB, 0, 0), Overlap},
	})

	hidden := wait(time.Second, 3*miB, 0)
	hidden.Wait = 2 * ms
	short := wait(time.Second, 3*miB, 0)
	walk(t, "sqrt:waits=true,overlap=false", []step{
		{"1 GB in a second", nil, grow(time.Second, GB-1, 1, GB-1, 0, 0), Block},
		{"1 ms, no wait", own(0, ms, 0, 0), short, Skip},
		{"hidden behind 2 ms: least headroom", nil, hidden, Block},
	})
}

// TestBlockingRulesOverlap: every rule that blocks can run its cycles beside
// the program instead, and starts none while one is under way.
func TestBlockingRulesOverlap(t *testing.T) {
	for _, text := range []string{"always", "every-sync", "periodic:1ns", "random:1", "threshold:0.1", "cudajl", "autopacer", "rtorch:reserved=0", "opencl", "softmax:max=1B", "erlang:min=1B"} {
		at := grow(time.Second, 970*miB, miB, 0, 0, 1000*miB)
		at.At = map[bool]PointKind{true: Sync, false: Allocation}[text == "always" || text == "every-sync" || text == "autopacer"]
		if d := MustParse(text).New().Decide(at); d.Action != Block {
			t.Errorf("%s: %+v", text, d)
		}
		text += map[bool]string{true: ",", false: ":"}[strings.Contains(text, ":")] + "overlap=true"
		if d := MustParse(text).New().Decide(at); d.Action != Overlap {
			t.Errorf("%s: %+v", text, d)
		}
		if d := MustParse(text).New().Decide(running(at)); d.Action != Skip {
			t.Errorf("%s, a cycle under way: %+v", text, d)
		}
	}
}

// TestCUDAjlPolls: a wait that polling outlasts is none.
func TestCUDAjlPolls(t *testing.T) {
	at := wait(time.Second, 600, 1000)
	at.Wait = 40 * time.Microsecond
	if d := MustParse("cudajl").New().Decide(at); d.Action != Block {
		t.Errorf("plain: %+v", d)
	}
	if d := MustParse("cudajl:poll=50us").New().Decide(at); d.Action != Skip {
		t.Errorf("a wait of 40 us, polled for 50: %+v", d)
	}
	at.Wait = 60 * time.Microsecond
	if d := MustParse("cudajl:poll=50us").New().Decide(at); d.Action != Block {
		t.Errorf("a wait of 60 us, polled for 50: %+v", d)
	}
}

func TestRTorch(t *testing.T) {
	const M = miB
	walk(t, "rtorch", []step{
		{"less than a fifth reserved", nil, grow(0, 0, 199*M, 0, 0, 1000*M), Skip},
		{"the cache took 200: room", nil, grow(0, 100*M, 100*M, 0, 0, 1000*M), Skip},
		{"a fifth, and no room: light or full", nil, grow(0, 199*M, 2*M, 0, 0, 1000*M), Block},
		{"the cycle freed enough: room again", own(0, 1, 100*M, 99*M), grow(0, 99*M, 101*M, 0, 0, 1000*M), Skip},
		{"no room", nil, grow(0, 99*M, 102*M, 0, 0, 1000*M), Block},
		{"the cycle was in vain: the cache grew by 102", own(0, 1, 0, 199*M), grow(0, 199*M, 103*M, 0, 0, 1000*M), Skip},
		{"no room", nil, grow(0, 199*M, 104*M, 0, 0, 1000*M), Block},
		{"a refusal empties the cache", &Cycle{Trigger: TriggerRefusal, LiveAfter: 250 * M}, grow(0, 250*M, M, 0, 0, 1000*M), Block},
		{"in vain: a segment of 2 for 1", own(0, 1, 0, 250*M), grow(0, 251*M, M, 0, 0, 1000*M), Skip},
		{"of 10 for 10 MiB: no room for one more", nil, grow(0, 252*M, 10*M, 0, 0, 1000*M), Block},
		{"in vain", own(0, 1, 0, 252*M), grow(0, 262*M, 1, 0, 0, 1000*M), Block},
		{"no limit", nil, grow(0, 250*M, 1000*M, 0, 0, 0), Skip},
		{"sync points are none of its business", nil, wait(0, 900*M, 1000*M), Skip},
	})
	for request, want := range map[int64]int64{1: 2 * M, M: 2 * M, M + 1: 20 * M, 10*M - 1: 20 * M, 10 * M: 10 * M, 11 * M: 12 * M} {
		p := &rtorch{}
		if p.grow(request, request); p.reserved != want {
			t.Errorf("for %d bytes the cache takes %d, want %d", request, p.reserved, want)
		}
	}
	for _, c := range []struct {
		live, reserved int64
		want           string
	}{
		{500, 900, "light"},
		{721, 900, "full: cache in use"},
		{720, 900, "light"}, // 0.8 of the cache
		{801, 1000, "full: device in use"},
		{800, 1000, "light"}, // 0.8 of either
	} {
		at := grow(0, c.live, 1000, 0, 0, 1000)
		at.Sample.Reserved = c.reserved
		if got := MustParse("rtorch").New().Decide(at).Reason; got != c.want {
			t.Errorf("live %d of %d: %s, want %s", c.live, c.reserved, got, c.want)
		}
	}
}

func TestOpenCL(t *testing.T) {
	walk(t, "opencl:trigger=500B,high=900B", []step{
		{"500 is not above, whatever the request", nil, grow(0, 500, 1000, 0, 0, 0), Skip},
		{"above", nil, grow(0, 501, 1, 0, 0, 0), Block},
		{"not in vain", own(0, 1, 1, 500), grow(0, 501, 1, 0, 0, 0), Block},
		{"in vain", own(0, 1, 0, 501), grow(0, 900, 1, 0, 0, 0), Skip},
		{"above high", nil, grow(0, 901, 1, 0, 0, 0), Block},
		{"never out of the zone again", own(0, 1, 900, 1), grow(0, 1, 1, 0, 0, 0), Skip},
		{"never out of the zone again", nil, grow(0, 600, 1, 0, 0, 0), Skip},
	})
	walk(t, "opencl:trigger=500B,high=900B,reset=true", []step{
		{"above", nil, grow(0, 501, 1, 0, 0, 0), Block},
		{"in vain", own(0, 1, 0, 501), grow(0, 600, 1, 0, 0, 0), Skip},
		{"out of the zone", nil, grow(0, 500, 1, 0, 0, 0), Skip},
		{"tries again", nil, grow(0, 600, 1, 0, 0, 0), Block},
		{"others' cycles do not tell whether its own are in vain", &Cycle{Trigger: TriggerNatural, LiveAfter: 600}, grow(0, 600, 1, 0, 0, 0), Block},
		{"nor do those of refusals", &Cycle{Trigger: TriggerRefusal, LiveAfter: 600}, grow(0, 600, 1, 0, 0, 0), Block},
	})
	walkOn(t, &openCL{Trigger: size{Bytes: 500}}, []step{
		{"above", nil, grow(0, 501, 1, 0, 0, 0), Block},
		{"in vain, and no high mark", own(0, 1, 0, 501), grow(0, 1<<60, 1, 0, 0, 0), Skip},
	})
	walk(t, "opencl", []step{
		{"shares need a limit", nil, grow(0, 1<<40, 1, 0, 0, 0), Skip},
		{"75 %", nil, grow(0, 750, 1, 0, 0, 1000), Skip},
		{"75 %", nil, grow(0, 751, 1, 0, 0, 1000), Block},
	})
}

func TestAutoPacer(t *testing.T) {
	walk(t, "autopacer", []step{
		{"allocations are none of its business", nil, alloc(0, 1000, 1000), Skip},
		{"first step, cost unknown", nil, wait(ms, 0, 0), Block},
		// Held for 1 ms: steps of 1 ms, T_gc 1 ms: every 1/(0.02 x 1) = 50 steps, approached by one.
		{"interval 2", own(ms, ms, 0, 0), wait(3*ms, 0, 0), Skip},
		{"interval 3, second step", nil, wait(4*ms, 0, 0), Skip},
		{"interval 4, third", nil, wait(5*ms, 0, 0), Skip},
		// 4 ms is more than three times 1 ms: 4/2 = 2, fourth step. T_step = 1.3 ms.
		{"spike", nil, wait(9*ms, 0, 0), Block},
		{"interval 3", own(9*ms, ms, 0, 0), wait(11*ms, 0, 0), Skip},
		// Steps of 100 ms: T_step = 0.9 x 1.27 + 10 > 5 ms after one, but that one is a spike: 3/2 = 1.
		{"spike", nil, wait(111*ms, 0, 0), Block},
		{"long step, spike", own(111*ms, ms, 0, 0), wait(212*ms, 0, 0), Block},
		{"long step", own(212*ms, ms, 0, 0), wait(313*ms, 0, 0), Block},
	})
}

// TestAutoPacerIntervals holds the interval, step by step, to train.jl's sums.
func TestAutoPacerIntervals(t *testing.T) {
	now := time.Duration(0)
	tick := func(p *autoPacer, step time.Duration) float64 {
		now += step
		if d := p.Decide(wait(now, 0, 0)); d.Action == Block {
			p.Observe(*own(now, ms, 0, 0))
			now += ms
		}
		return p.interval
	}
	p := MustParse("autopacer").New().(*autoPacer)
	for i, want := range []float64{1, 2, 3, 4} {
		if got := tick(p, ms); got != want {
			t.Errorf("step %d: interval %g, want %g", i, got, want)
		}
	}
	for range 100 {
		tick(p, ms)
	}
	if p.interval != 50 {
		t.Errorf("steps of 1 ms and cycles of 1 ms: interval %g, want 1/0.02 = 50", p.interval)
	}
	if got := tick(p, 3*ms); got != 42 { // T_step = 1.2 ms
		t.Errorf("three times is no spike: interval %g, want 1/(0.02 x 1.2) = 41.7", got)
	}
	if got := tick(p, 3600*time.Microsecond+1); got != 21 {
		t.Errorf("a spike: interval %g, want half of 42", got)
	}
	p.interval = 7
	if got := tick(p, 100*ms); got != 3 {
		t.Errorf("a spike: interval %g, want half of 7", got)
	}
	p.interval = 1
	if got := tick(p, 1000*ms); got != 1 {
		t.Errorf("a spike: interval %g, want 1", got)
	}

	p, now = MustParse("autopacer").New().(*autoPacer), 0
	tick(p, 0) // no step yet, and a cycle of 1 ms
	if got := tick(p, ms); got != 2 {
		t.Errorf("the first step is no spike: interval %g, want 2", got)
	}

	for _, c := range []struct {
		step, cost time.Duration
		want       float64
	}{
		{0, ms, 1},      // not measured yet
		{ms, 0, 1},      // not measured yet
		{5 * ms, ms, 1}, // long enough to hide a cycle
		{5*ms - 1, ms, 10},
		{ms, 50 * time.Microsecond, 2}, // 2.5 to even
		{ms, 70 * time.Microsecond, 4}, // 3.5 to even
		{ms, time.Microsecond, 1},
		{ms, time.Second, 4096},
	} {
		q := &autoPacer{Hide: 5 * ms, Share: 0.02, step: float64(c.step), cost: float64(c.cost)}
		if got := q.base(); got != c.want {
			t.Errorf("steps of %v and cycles of %v: interval %g, want %g", c.step, c.cost, got, c.want)
		}
	}
}

func TestART(t *testing.T) {
	const big = artImmediate + 1 // checked whatever its number
	to := func(live int64) Point { return grow(0, live-big, big, 0, 0, 0) }
	walk(t, "art:free=1000000B,stop=5000000B", []step{
		{"half of 1999999 is 999999", nil, to(1999999), Skip},
		{"urgency 1", nil, to(2000000), Overlap},
		{"under way", nil, running(to(2000000)), Skip},
		{"urgency 4 is not above 4", nil, to(8000001), Overlap},
		{"above", nil, running(to(8000002)), Block},
		{"falling below old", own(0, 1, 0, 3000000), to(2999999), Skip},
		{"fallen by one; old counts 45, and half of the new 999954", nil, to(4999908), Skip},
		{"old counts 45, and half of the new 999955", nil, to(4999909), Overlap},
		{"a cycle of the runtime's own begins a new count, too", &Cycle{Trigger: TriggerNatural, LiveAfter: 4000000}, to(4999909), Skip},
		{"below stop it does not wait", own(0, 1, 0, 0), grow(0, 9000000, artImmediate, 0, 0, 0), Skip},
	})
	walk(t, "art:free=1000B,stop=1000000B", []step{
		{"urgency 500, at stop", nil, to(1000000), Overlap},
		{"above stop", nil, to(1000001), Block},
	})
	walk(t, "art:free=100B", []step{
		{"", nil, alloc(0, 0, 0), Skip},
		{"old bytes count 1/65536: 99", own(0, 1, 0, 100*65536-1), to(100*65536 - 1), Skip},
		{"100", own(0, 1, 0, 100*65536), to(100 * 65536), Overlap},
	})

	p := MustParse("art:free=1%,stop=25%").New()
	for i := 1; i <= 130; i++ {
		want := Skip
		if i%64 == 0 {
			want = Block
		}
		if got := p.Decide(grow(0, 500, 1, 0, 0, 1000)).Action; got != want {
			t.Errorf("allocation %d: %v, want %v", i, got, want)
		}
	}
}

func TestGoMemLimit(t *testing.T) {
	// No limit: 61/64 of the way to 4 MiB is 3997696 bytes, of 1 kB each.
	p := MustParse("gomemlimit:handle=1000B").New()
	n := 1
	for ; p.Decide(alloc(time.Second, 0, 0)).Action == Skip; n++ {
	}
	if n != 3998 {
		t.Errorf("GOGC: first cycle at allocation %d, want 3998", n)
	}
	// Half is left: the goal is twice 1999000, below 4 MiB, so that the next
	// trigger is 1999000 + 61/64 x 2195304 = 4091399.
	p.Observe(*own(time.Second, 10*ms, 50, 50))
	for n = 1; p.Decide(alloc(time.Minute, 0, 0)).Action == Skip; n++ {
	}
	if n != 2093 {
		t.Errorf("GOGC: next cycle after %d allocations, want 2093", n)
	}

	// 1 % of 200 MB of headroom is 2 MB; less 1 MiB (3 % of the goal is less) that is
	// below 1 MiB, which is then the goal: 61/64 of it are 999424 bytes.
	p = MustParse("gomemlimit:handle=1000B").New()
	for n = 1; p.Decide(alloc(0, 800*MB, GB)).Action == Skip; n++ {
	}
	if n != 1000 {
		t.Errorf("limit: first cycle at allocation %d, want 1000", n)
	}
	p.Observe(*own(time.Second, 10*ms, 0, 1))
	// All of it survived, and there is no headroom: the goal is the least, 1 MiB, and
	// the trigger 1000000 + 61/64 x 48576 = 1046300.
	for n = 1; p.Decide(alloc(time.Second+15*ms, GB, GB)).Reason == "below Go's trigger"; n++ {
	}
	if n != 47 {
		t.Errorf("limit: next cycle after %d allocations, want 47", n)
	}
	walkOn(t, p, []step{
		{"no limiter holds it", nil, alloc(time.Second+20*ms, GB, GB), Overlap},
		{"under way", nil, running(alloc(time.Second+20*ms, GB, GB)), Skip},
		{"no Go allocation", nil, wait(time.Hour, GB, GB), Skip},
	})
	// 976 kB are 61/64 of 1 MiB.
	p = MustParse("gomemlimit").New()
	for n = 1; p.Decide(alloc(0, GB, GB)).Action == Skip; n++ {
	}
	if n != 976 {
		t.Errorf("limit: first cycle at allocation %d, want 976", n)
	}
	walk(t, "gomemlimit", []step{
		{"", nil, alloc(2*time.Minute-1, 0, 0), Skip},
		{"Go's own two minutes", nil, alloc(2*time.Minute, 0, 0), Overlap},
		{"from the end of the last cycle", own(2*time.Minute, time.Second, 1, 1), alloc(4*time.Minute+time.Second-1, 0, 0), Skip},
		{"whoever ran it", &Cycle{Trigger: TriggerNatural, Start: 3 * time.Minute, Duration: time.Second}, alloc(5*time.Minute+time.Second-1, 0, 0), Skip},
		{"two minutes later", nil, alloc(5*time.Minute+time.Second, 0, 0), Overlap},
	})
}

// TestGoMemLimitGoal holds the goal to memoryLimitHeapGoal, with as much room as
// there is headroom.
func TestGoMemLimitGoal(t *testing.T) {
	p := MustParse("gomemlimit:handle=3MiB,share=1").New().(*goMemLimit)
	for _, c := range []struct {
		now      time.Duration
		headroom int64
		want     float64
	}{
		{ms, -5, 2 * miB},              // 3 MiB less 1 MiB
		{101*ms - 1, 900, 2 * miB},     // not set again yet
		{101 * ms, 900, 8*miB + 900},   // 9 MiB and the room, less 1 MiB
		{201 * ms, 88 * miB, 97 * miB}, // 12 MiB and the room, less 3 %
	} {
		p.Decide(alloc(c.now, GB-c.headroom, GB))
		if math.Abs(p.goal-c.want) > 1e-6 {
			t.Errorf("%v: goal %f, want %f", c.now, p.goal, c.want)
		}
	}
}
