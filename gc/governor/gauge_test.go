package governor_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
)

// A library is memory of C whose objects finalizers free, as a gauge sees it: on virtual time, with cycles that the gauge asks for.
type library struct {
	g    *governor.Gauge
	now  time.Duration
	work time.Duration // of a cycle
	busy float64       // processors that the program uses
	heap int64

	live, garbage int64 // what the gauge reads; of it, what a cycle finds dead
	due           int64 // found dead, and not freed yet
	ran, marks    int64
	trimmed       int64
	keeps         bool // the allocator keeps what is freed, and gives it out again
	kept          int64
	stuck         bool // finalizers do not run
	slow          int  // looks that finalizers take
	cycles        []time.Duration
	trims         int
	asks          []governor.Look
}

func newLibrary(live int64) *library {
	return &library{g: governor.NewGauge(live, 0), live: live, work: ms, busy: 1, heap: 4 * mib}
}

func (l *library) reading() *governor.GaugeReading {
	return &governor.GaugeReading{Level: l.live + l.kept, Trimmed: l.trimmed, Ran: l.ran, Waiting: l.due > 0, Marked: l.marks, Swept: l.marks, Heap: l.heap, Processor: time.Duration(l.busy * float64(l.now))}
}

// allocate takes bytes, of which some become garbage at once.
func (l *library) allocate(bytes, dies int64) {
	reused := min(bytes, l.kept)
	l.kept -= reused
	l.live += bytes
	l.garbage += dies
}

func (l *library) finalize() {
	if l.due == 0 || l.stuck {
		return
	}
	l.ran += 1 + l.due>>16 // objects of 64 KiB
	l.live -= l.due
	if l.keeps {
		l.kept += l.due
	}
	l.due = 0
}

// cycle runs one, which some asked for.
func (l *library) cycle(asked bool) {
	l.g.Marking(l.now, l.reading())
	l.due, l.garbage = l.due+l.garbage, 0
	l.marks++
	l.g.Marked(l.reading(), asked)
	if l.slow == 0 {
		l.finalize()
	}
	if _, trim := l.g.Settled(l.now, l.reading()); trim {
		l.trims++
	}
}

// look takes a reading, and runs a cycle if the gauge asks. A policy would decide; here it is always one that agrees.
func (l *library) look() {
	l.now += 2 * ms
	if l.slow > 0 && int(l.now/(2*ms))%l.slow == 0 {
		l.finalize()
	}
	got := l.g.Look(l.now, l.reading(), 0, l.work)
	if got.Trim {
		l.trims++
	}
	if got.Ask {
		l.asks = append(l.asks, got)
		l.cycles = append(l.cycles, l.now)
		l.cycle(true)
	}
}

// run looks for a time at a program that takes bytes each 2 ms, of which a share dies at once.
func (l *library) run(d time.Duration, bytes int64, dies float64) (cycles int) {
	before := len(l.cycles)
	for end := l.now + d; l.now < end; {
		l.allocate(bytes, int64(dies*float64(bytes)))
		l.look()
	}
	return len(l.cycles) - before
}

// TestGarbageIsFound: memory of objects that die stays within a few times what is in use.
func TestGarbageIsFound(t *testing.T) {
	l := newLibrary(50 * mib)
	cycles := l.run(10*time.Second, mib, 1)
	between(t, "cycles in 10 s", cycles, 100, 1000)
	between(t, "bytes at the end", l.live, 50*mib, 80*mib)
	if l.g.Barren() {
		t.Error("cycles bring nothing back")
	}
	between(t, "bytes credited", l.g.Credit(l.now), 4000*mib, 5200*mib)
	if again := l.g.Credit(l.now); again != 0 {
		t.Errorf("%d bytes are credited twice", again)
	}
}

// TestAYoungProgram: in the first second 12 MiB of garbage are left alone, because many programs end soon. Later, or if there is more of
// it, a cycle finds it.
func TestAYoungProgram(t *testing.T) {
	for _, c := range []struct {
		age     time.Duration
		garbage int64
		most    int
	}{{0, 12 * mib, 0}, {0, 40 * mib, 20}, {2 * time.Second, 12 * mib, 20}} {
		l := newLibrary(mib)
		l.run(c.age, 0, 0)
		between(t, "cycles of a young program", l.run(200*ms, c.garbage/100, 1), min(1, c.most), c.most)
	}
}

// TestLittleGarbage: cycles that free less than a MiB do not count, so there are few where memory is small.
func TestLittleGarbage(t *testing.T) {
	l := newLibrary(3 * mib)
	between(t, "cycles in a minute, for 10 MB/s of garbage", l.run(time.Minute, 20000, 1), 100, 800)
	between(t, "bytes at the end", l.live, 3*mib, 5*mib)
}

// TestALeakIsLeftAlone: cycles that bring nothing are fewer and fewer, and take less than a hundredth of the time.
func TestALeakIsLeftAlone(t *testing.T) {
	l := newLibrary(50 * mib)
	first := l.run(10*time.Second, 64<<10, 0)
	later := l.run(time.Minute, 64<<10, 0)
	between(t, "cycles in the first 10 s", first, 2, 12)
	between(t, "in the minute after", later, 1, 10)
	if !l.g.Barren() {
		t.Error("cycles bring something back")
	}
}

// TestGarbageAfterALeak is found though it has rested for long.
func TestGarbageAfterALeak(t *testing.T) {
	l := newLibrary(50 * mib)
	l.run(time.Minute, 64<<10, 0)
	before := l.live
	l.run(5*time.Second, mib, 1)
	between(t, "more than before", l.live-before, 0, 3*before+64*mib)
	l.run(5*time.Second, mib, 1)
	if l.g.Barren() {
		t.Error("cycles still bring nothing back")
	}
	between(t, "and then", l.live-before, -before, 64*mib)
}

// TestMemoryThatStandsStill asks for no cycle.
func TestMemoryThatStandsStill(t *testing.T) {
	l := newLibrary(500 * mib)
	if n := l.run(time.Minute, 0, 0); n > 0 {
		t.Errorf("%d cycles", n)
	}
}

// TestWhatTheProgramFreesItself is not credited to cycles: it takes and frees 8 MiB every 20 ms.
func TestWhatTheProgramFreesItself(t *testing.T) {
	l := newLibrary(50 * mib)
	for range 3000 {
		l.allocate(8*mib, 0)
		l.look()
		l.live -= 8 * mib
		l.look()
	}
	credited := l.g.Credit(l.now)
	if freed := int64(3000 * 8 * mib); credited > freed/20 {
		t.Errorf("%d MiB of %d are credited", credited/mib, freed/mib)
	}
}

// TestWhatTrimsGiveBack is no yield.
func TestWhatTrimsGiveBack(t *testing.T) {
	l := newLibrary(500 * mib)
	l.cycle(true)
	for range 10 {
		l.live -= 40 * mib
		l.trimmed += 40 * mib
		l.look()
	}
	if got := l.g.Credit(l.now); got > 0 {
		t.Errorf("%d MiB are credited", got/mib)
	}
}

// TestWhatAFinalizerFreesLater is credited to the cycle, whatever came just before its mark.
func TestWhatAFinalizerFreesLater(t *testing.T) {
	for name, before := range map[string]func(*library){
		"nothing":                func(*library) {},
		"a trim of other memory": func(l *library) { l.now += 4 * ms; l.trimmed += 100 * mib },
		"a free by hand":         func(l *library) { l.live -= 8 * mib },
	} {
		l := newLibrary(50 * mib)
		l.slow = 5
		l.cycle(true)
		l.allocate(40*mib, 40*mib)
		l.now += time.Microsecond
		before(l)
		l.cycle(true)
		for range 5 {
			l.look()
		}
		between(t, "after "+name+", of 40 MiB credited", l.g.Credit(l.now), 39*mib, 41*mib)
		if l.trims != 1 {
			t.Errorf("after %s: %d trims", name, l.trims)
		}
	}
	l := newLibrary(50 * mib)
	l.allocate(40*mib, 40*mib)
	l.stuck = true
	l.cycle(true)
	l.live, l.due, l.ran = l.live-10*mib, l.due-10*mib, 1 // the first ones run
	l.look()
	between(t, "while others are due, of 10 MiB credited", l.g.Credit(l.now), 9*mib, 11*mib)
	l = newLibrary(50 * mib)
	l.keeps = true
	l.allocate(40*mib, 40*mib)
	if l.cycle(true); l.trims != 1 {
		t.Errorf("%d trims where C keeps what was freed", l.trims)
	}
}

// TestCyclesThatCameTooEarly prove nothing: the gauge rests, and asks as soon as it has grown by much.
func TestCyclesThatCameTooEarly(t *testing.T) {
	l := newLibrary(50 * mib)
	l.run(2*time.Second, mib, 1)
	for range 5 {
		l.cycle(true)
	}
	if !l.g.Barren() {
		t.Error("cycles that found nothing brought something back")
	}
	before := len(l.cycles)
	l.now += 10 * ms
	l.allocate(65*mib, 0)
	if l.look(); len(l.cycles) == before {
		t.Errorf("it has grown from 50 to %d MiB, and does not ask", l.live/mib)
	}
}

// TestWorth has the last cycles in a row with one outcome.
func TestWorth(t *testing.T) {
	l := newLibrary(50 * mib)
	l.run(2*time.Second, mib, 1)
	for i, bytes := range []int64{40 * mib, 0, 0, 0, 40 * mib, 40 * mib, 0} {
		l.now += time.Second
		l.allocate(40*mib, bytes)
		l.cycle(true)
		w := l.g.Worth(l.now)
		if want := []int{0, 1, 2, 3, 1, 2, 1}[i]; i > 0 && (w.Cycles != want || w.Freed < int64(want)*bytes*9/10 || w.Freed > int64(want)*bytes) {
			t.Errorf("after cycle %d: %v", i, w)
		}
	}
}

// TestAnAllocatorThatKeeps: garbage does not show where new memory comes from what was freed
// before, and is found all the same.
func TestAnAllocatorThatKeeps(t *testing.T) {
	l := newLibrary(50 * mib)
	l.keeps = true
	l.run(2*time.Second, mib, 1)
	late := l.run(8*time.Second, mib, 1)
	between(t, "cycles in 8 s", late, 40, 800)
	between(t, "of 50 MiB in use and kept", l.live+l.kept, 50*mib, 200*mib)
	between(t, "garbage", l.live, 50*mib, 150*mib)
}

// TestMemoryThatOnlyTrimsBringBack: garbage makes the gauge grow by less than half, and the allocator keeps what cycles free. Trims, which
// are as rare as the share demands, bring it back. That holds less memory, so the share is earned again and again.
func TestMemoryThatOnlyTrimsBringBack(t *testing.T) {
	l := newLibrary(20 * mib)
	l.keeps, l.work = true, ms*7/10
	l.run(720*ms, mib, 0.5) // the program starts
	var last time.Duration
	var sum, n int64
	for l.now < time.Minute {
		trims := l.trims
		l.run(2*ms, mib, 1)
		if l.trims > trims && (l.g.Worth(l.now).Share >= 0.25 || l.now-last > 2*time.Second) {
			l.trimmed, l.kept, last = l.trimmed+l.kept, 0, l.now
		}
		if l.now > 20*time.Second {
			sum, n = sum+l.live+l.kept, n+1
		}
	}
	between(t, "mean bytes, of which 200 MiB are needed", sum/n, 200*mib, 230*mib)
}

// TestATrimIsNotTheProgramsOwn: what a trim gave back does not hide what the next cycles bring back, and growth counts from there.
func TestATrimIsNotTheProgramsOwn(t *testing.T) {
	l := newLibrary(50 * mib)
	l.run(2*time.Second, mib, 1)
	l.now += time.Minute
	l.kept = 60 * mib
	l.look()
	l.trimmed, l.kept = l.trimmed+l.kept, 0
	for i := range 3 {
		l.allocate(30*mib, 30*mib)
		l.now += time.Second
		l.cycle(true)
		if w := l.g.Worth(l.now); i > 0 && (w.Cycles <= i || w.Freed < int64(i)*25*mib || w.Share < governor.LeastShare) {
			t.Errorf("after cycle %d, which freed 30 MiB: %+v", i, w)
		}
	}
}

// TestAShareIsEarnedForLonger each time, where cycles hold memory. Where it grows all the same, the
// time is short again.
func TestAShareIsEarnedForLonger(t *testing.T) {
	for dies, most := range map[float64]time.Duration{1: time.Minute, 0.9: 4 * time.Second} {
		l := newLibrary(50 * mib)
		l.work = 16 * ms
		began, longest := l.now, time.Duration(0)
		for l.now < 3*time.Minute {
			if l.run(2*ms, mib, dies); l.g.Rationed(l.now) {
				began = l.now
			}
			longest = max(longest, l.now-began)
		}
		between(t, "longest time", longest, most/2, most+most/2)
	}
}

// TestCyclesInVainWithoutBounds prove little, because they follow each other at once: garbage that comes later is found within
// 10 s, long before memory has grown by half.
func TestCyclesInVainWithoutBounds(t *testing.T) {
	l := newLibrary(200 * mib)
	l.allocate(200*mib, 200*mib)
	between(t, "cycles in 3 s after one that brought half of memory back", l.run(3*time.Second, 8<<10, 0), 5, 30)
	l.run(10*time.Second, 8<<10, 1)
	if l.garbage > 20*mib {
		t.Errorf("%d MiB of garbage after 10 s, in which 39 MiB died", l.garbage/mib)
	}

	l = newLibrary(200 * mib)
	l.allocate(200*mib, 200*mib)
	l.work = 100 * ms
	between(t, "cycles that take long", l.run(3*time.Second, 8<<10, 0), 4, 6)
	if w := l.g.Worth(l.now); !l.g.Barren() || w.Cycles != len(l.cycles)-1 || w.Freed > 0 {
		t.Errorf("all but the first of %d cycles were in vain, and they are worth %+v", len(l.cycles), w)
	}
}

// TestNoCycleOvertakesFinalizers: while some are due none is asked for, unless they are stuck for ten seconds.
func TestNoCycleOvertakesFinalizers(t *testing.T) {
	l := newLibrary(50 * mib)
	l.slow = 50 // 100 ms
	cycles := l.run(10*time.Second, mib, 1)
	between(t, "cycles where finalizers take 100 ms", cycles, 50, 102)

	l = newLibrary(50 * mib)
	l.run(time.Second, mib, 1)
	l.stuck = true
	l.run(9*time.Second, mib, 1)
	at := l.cycles[len(l.cycles)-1]
	if !l.g.Due() {
		t.Error("they count as stuck after 9 s")
	}
	if n := l.run(900*ms, mib, 1); n > 0 {
		t.Errorf("%d cycles beside them, the last before at %v", n, at)
	}
	l.run(3*time.Second, mib, 1)
	if l.cycles[len(l.cycles)-1] == at {
		t.Errorf("after 13 s the last cycle was at %v of %v", at, l.now)
	}

	l = newLibrary(50 * mib)
	l.run(15*time.Second, 0, 0)
	l.stuck = true
	l.allocate(mib, mib)
	l.cycle(false)
	if l.look(); !l.g.Due() {
		t.Error("what is due for the first time counts as stuck after a quiet time")
	}
}

// TestCyclesOfAGaugeHaveARate, though each is worth it.
func TestCyclesOfAGaugeHaveARate(t *testing.T) {
	l := newLibrary(10 * mib)
	between(t, "cycles in 10 s", l.run(10*time.Second, 16*mib, 1), 700, 1000)
	for i := 1; i < len(l.cycles); i++ {
		if d := l.cycles[i] - l.cycles[i-1]; d < 10*ms {
			t.Fatalf("two within %v", d)
		}
	}
	l = newLibrary(500 * mib)
	l.busy, l.work = 0, 10*ms
	l.run(20*time.Second, 64<<10, 1)
	between(t, "cycles of an idle program, which may take 0.02/64 of 100 s", l.run(100*time.Second, 1<<10, 1), 1, 5)
}

// TestAboveItsLimit: a gauge asks at once, until cycles have been in vain.
func TestAboveItsLimit(t *testing.T) {
	l := newLibrary(50 * mib)
	l.allocate(mib, 0)
	l.now += 2 * ms
	if got := l.g.Look(l.now, l.reading(), 40*mib, l.work); !got.Ask || got.Live != 50*mib || got.Request != mib {
		t.Errorf("it grew by 1 MiB above its limit: %+v", got)
	}
	l.cycle(true)
	l.allocate(mib, 0)
	l.now += 100 * ms
	if got := l.g.Look(l.now, l.reading(), 40*mib, l.work); got.Ask {
		t.Error("it asks again for what cycles do not bring back")
	}
}

// TestCyclesOfTheRuntime prove a gauge worth cycles, and never make it rest.
func TestCyclesOfTheRuntime(t *testing.T) {
	l := newLibrary(50 * mib)
	for range 10 {
		l.run(50*ms, 64<<10, 0)
		l.cycle(false)
	}
	if l.g.Barren() {
		t.Error("they prove that cycles bring nothing back")
	}
	l = newLibrary(50 * mib)
	l.run(time.Minute, 64<<10, 0)
	if !l.g.Barren() {
		t.Fatal("a leak is brought back")
	}
	l.allocate(400*mib, 400*mib)
	l.cycle(false)
	if l.g.Barren() {
		t.Error("one brought 400 MiB back, and that is nothing")
	}
}

// TestCyclesJudgedTogether: those that were asked for in vain count, though one of the runtime began before each was judged.
func TestCyclesJudgedTogether(t *testing.T) {
	g := governor.NewGauge(1000*mib, 0)
	r := &governor.GaugeReading{Level: 1000 * mib}
	for at := time.Second; at < 10*time.Second; at += time.Second {
		g.Marking(at, r)
		r.Marked++
		g.Marked(r, true)
		g.Marking(at+ms, r)
		r.Marked++
		g.Marked(r, false)
		r.Swept += 2
		if judged, _ := g.Settled(at+2*ms, r); !judged {
			t.Fatal("not judged")
		}
	}
	if !g.Barren() {
		t.Error("they count for nothing")
	}
}

// TestALittleAboveALargeLevel: 3 MiB of the 4 that came since the last cycle are worth it, whatever the gauge has risen before.
func TestALittleAboveALargeLevel(t *testing.T) {
	g, marks := governor.NewGauge(0, 0), int64(0)
	cycle := func(level, freed int64) (share float64) {
		marks++
		at, r := time.Duration(marks)*time.Second, &governor.GaugeReading{Level: level, Marked: marks, Swept: marks}
		g.Marking(at, r)
		g.Marked(r, true)
		r.Level -= freed
		g.Settled(at+ms, r)
		w := g.Worth(at)
		return w.Share
	}
	vain := cycle(1000*mib, 0)
	if share := cycle(1004*mib, 3*mib); share < 10*vain {
		t.Errorf("after a cycle in vain cycles may take %v of the processor time, after one that was not %v", vain, share)
	}
}

// TestAskedAndToldAddUp: what a gauge tells the policy that it grew by is what it grew by, whatever moves it.
func TestAskedAndToldAddUp(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		l := newLibrary(r.Int64N(100 * mib))
		l.keeps, l.slow = r.IntN(2) == 0, r.IntN(4)
		rises := l.live
		for range 400 {
			was := l.live + l.kept
			switch r.IntN(6) {
			case 0, 1, 2:
				n := r.Int64N(4 * mib)
				l.allocate(n, r.Int64N(n+1))
			case 3:
				n := min(l.live-l.garbage-l.due, r.Int64N(mib))
				l.live -= max(0, n)
			case 4:
				l.cycle(r.IntN(2) == 0)
				was = l.g.Level // the cycle has taken readings
			}
			rises += max(0, l.live+l.kept-was)
			l.look()
			if l.g.Level != l.live+l.kept && len(l.cycles) == 0 {
				t.Fatalf("seed %d: the level is %d, want %d", seed, l.g.Level, l.live+l.kept)
			}
			lost := l.g.Allocated - l.g.Level
			if lost < 0 {
				t.Fatalf("seed %d: it stands %d above all that it rose by", seed, -lost)
			}
			if credit := l.g.Credit(l.now); credit < 0 {
				t.Fatalf("seed %d: cycles brought %d", seed, credit)
			}
		}
		for _, a := range l.asks {
			if a.Live < 0 || a.Request < 0 {
				t.Fatalf("seed %d: it asks about %+v", seed, a)
			}
		}
	}
}

// A server takes memory for each request and frees it by hand when the request is over. Each request also leaves garbage behind.
type server struct {
	*library
	rate    float64 // requests a second
	bytes   int64   // that a request takes at most
	leaves  int64   // garbage of a request
	waiting []struct {
		until time.Duration
		bytes int64
	}
	random *rand.Rand
}

// serve lets a time pass, and returns the mean level.
func (s *server) serve(d time.Duration) (mean int64) {
	looks := int64(0)
	for end := s.now + d; s.now < end; looks++ {
		if s.random.Float64() < s.rate*(2*ms).Seconds() {
			n := s.bytes/4 + s.random.Int64N(s.bytes)
			s.allocate(n+s.leaves, s.leaves)
			s.waiting = append(s.waiting, struct {
				until time.Duration
				bytes int64
			}{s.now + time.Duration(5+s.random.IntN(60))*ms, n})
		}
		for len(s.waiting) > 0 && s.waiting[0].until <= s.now {
			s.live -= s.waiting[0].bytes
			s.waiting = s.waiting[1:]
		}
		if s.random.IntN(20) == 0 {
			s.ran++ // a finalizer that frees nothing
		}
		s.look()
		mean += s.live
	}
	return mean / looks
}

// TestAServerThatFreesByHand pays next to nothing for cycles, whatever its load. Where handlers begin to forget, memory
// grows by half at most.
func TestAServerThatFreesByHand(t *testing.T) {
	for _, rate := range []float64{1, 8, 30, 200} {
		for _, bytes := range []int64{mib / 2, 4 * mib, 32 * mib} {
			s := &server{library: newLibrary(28 * mib), rate: rate, bytes: bytes, random: rand.New(rand.NewPCG(1, 2))}
			s.heap, s.work, s.busy = 40*mib, 5*ms, 0.25
			s.serve(10 * time.Second)
			before := len(s.cycles)
			mean := s.serve(time.Minute)
			if share := float64(len(s.cycles)-before) * s.work.Seconds() / (s.busy * 60); share > 0.01 {
				t.Errorf("%v requests a second of %d KiB: cycles take %.1f %% of the processor time", rate, bytes>>10, 100*share)
			}
			s.leaves = bytes / 4
			s.serve(10 * time.Second)
			if got := s.serve(time.Minute); got > mean+(mean+2*s.heap)/2 {
				t.Errorf("%v requests a second of %d KiB that leave a quarter: %d MiB in the mean, without that %d", rate, bytes>>10, got/mib, mean/mib)
			}
		}
	}
}
