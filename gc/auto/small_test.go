package auto

import (
	"bufio"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// TestRivalAgainstAllReviews: the ticker runs as often as the second takes in which memory grew most, over the most by which
// memory was ever above the least before.
func TestRivalAgainstAllReviews(t *testing.T) {
	for seed := range uint64(200) {
		draw := rand.New(rand.NewPCG(seed, 1))
		var r rival
		var rate, least, tooth float64
		var grown int64
		var last time.Duration
		now := time.Duration(1 + draw.Int64N(int64(time.Minute)))
		for i := range 1 + draw.IntN(20) {
			level := draw.Int64N(1000 * mib)
			more := draw.Int64N(500 * mib)
			grown += more
			if r.see(level, grown, now); i == 0 {
				least = float64(level)
			} else if now-last > time.Second/10 {
				rate = max(rate, math.Floor(float64(more)/(now-last).Seconds()))
			} else { // too short to tell
				more = 0
			}
			least = min(least, float64(level))
			tooth = max(tooth, float64(level)-least)
			last = now
			want := 0.0
			if tooth > 0 {
				want = math.Floor(now.Seconds() * rate / tooth)
			}
			if got := float64(r.cycles(now)); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("seed %d, review %d: %v cycles, want %v", seed, i, got, want)
			}
			if 2*now.Seconds()*rate > tooth && tooth > 0 && r.cycles(2*now) < r.cycles(now) {
				t.Fatalf("seed %d: fewer cycles after twice the time", seed)
			}
			now += time.Duration(1+draw.IntN(20)) * 50 * time.Millisecond
		}
	}
}

// TestUntouchedLooks: when the mappings are read, and what that says.
func TestUntouchedLooks(t *testing.T) {
	var u untouched
	reads, resident := 0, int64(0)
	var fails error
	var at uint64
	read := func(heap uint64) (int64, error) { reads, at = reads+1, heap; return resident, fails }
	now := time.Now()
	for i, c := range []struct {
		after           time.Duration
		ready, resident int64 // MiB
		fails           error
		reads           int
		bytes           int64 // MiB, after the look
	}{
		{0, 63, 1, nil, 0, 0}, // too little
		{0, 64, 60, nil, 1, 4},
		{time.Hour, 70, 1, nil, 1, 4}, // moved by less than an eighth
		{0, 72, 10, nil, 2, 62},
		{4900 * time.Millisecond, 200, 10, nil, 2, 62}, // too soon
		{100 * time.Millisecond, 200, 10, nil, 3, 190},
		{5 * time.Second, 200, 50, nil, 4, 150}, // not moved, but much was untouched
		{time.Hour, 150, 190, nil, 5, 0},        // more than there is
		{time.Hour, 150, 100, nil, 5, 0},
		{time.Hour, 131, 100, nil, 6, 31}, // down by an eighth
		{time.Hour, 131, 0, nil, 6, 31},
		{time.Hour, 160, 128, nil, 7, 32},
		{time.Hour, 160, 0, errors.New("no smaps"), 8, 0}, // not known: all is in use
		{time.Hour, 180, 0, nil, 9, 180},
		{time.Hour, 100, 0, errors.New("no smaps"), 10, 0},
		{time.Hour, 10, 0, nil, 10, 0},
		{0, 90, 30, nil, 10, 0}, // too soon after the failure an hour and none ago
		{5 * time.Second, 90, 30, nil, 11, 60},
	} {
		if now = now.Add(c.after); i == 16 {
			u.next = now.Add(5 * time.Second)
		}
		resident, fails = c.resident*mib, c.fails
		u.look(c.ready*mib, now, read)
		if late := u.next.Sub(now) - untouchedEvery; late > 0 && late < time.Minute {
			u.next = now.Add(untouchedEvery) // this machine was slow
		}
		if got := u.of(c.ready * mib); reads != c.reads || got != c.bytes*mib && u.ready.Load() == c.ready*mib {
			t.Fatalf("look %d: %d reads, %d MiB untouched; want %d and %d", i, reads, got/mib, c.reads, c.bytes)
		}
	}
	if at == 0 {
		t.Error("asked for the mapping of no address")
	}
	for _, c := range []struct{ ready, want int64 }{{90, 60}, {100, 60}, {80, 50}, {30, 0}, {0, 0}} { // what is given back was untouched
		if got := u.of(c.ready * mib); got != c.want*mib {
			t.Errorf("%d MiB ready: %d untouched, want %d", c.ready, got/mib, c.want)
		}
	}
	u = untouched{}
	u.look(100*mib, now, func(uint64) (int64, error) { time.Sleep(50 * time.Millisecond); return 0, nil })
	if wait := u.next.Sub(now); wait < 10*time.Second {
		t.Errorf("after a read of 50 ms the next one comes %v later", wait)
	}
}

func TestMapping(t *testing.T) {
	for line, want := range map[string][2]uint64{
		"c000000000-c000400000 rw-p 00000000 00:00 0 [anon: Go: heap]": {0xc000000000, 0xc000400000},
		"00400000-0049f000 r-xp 00000000 fe:00 11 /bin/a-b":            {0x400000, 0x49f000},
		"1-2": {1, 2},
		"ffffffffff600000-ffffffffff601000 --xp 0": {0xffffffffff600000, 0xffffffffff601000},
	} {
		if from, to, ok := mapping(line); !ok || from != want[0] || to != want[1] {
			t.Errorf("%q: %#x to %#x, %v", line, from, to, ok)
		}
	}
	for _, line := range []string{"", "Size:               4096 kB", "VmFlags: rd wr mr-mw me ac", "c000-x rw-p", "x-c000 rw-p", "c000 -d000", "-", "Name-a b"} {
		if from, to, ok := mapping(line); ok {
			t.Errorf("%q is the mapping %#x to %#x", line, from, to)
		}
	}
}

// TestParseSmapsOfHeapsThatLieApart: those of the heap's name count wherever they are; without names, those that border on the one that has
// the address, before and behind it, and no others.
func TestParseSmapsOfHeapsThatLieApart(t *testing.T) {
	text := func(heap string) string {
		return "1000-2000 rw-p 0 00:00 0 " + heap + "\nRss: 1 kB\n2000-3000 rw-p 0 00:00 0\nRss: 2 kB\nPss: 64 kB\n" +
			"4000-5000 rw-p 0 00:00 0\nRss: 4 kB\n5000-6000 rw-p 0 00:00 0 " + heap + "\nRss: 8 kB\n6000-7000 rw-p 0 00:00 0 \nRss: 16 kB\n7001-8000 rw-p 0 00:00 0 " + heap + "\nRss: 32 kB\n"
	}
	for heap, want := range map[uint64]int64{0x1000: 3, 0x1fff: 3, 0x2fff: 3, 0x4000: 28, 0x5000: 28, 0x6fff: 28, 0x7001: 32, 0xfff: 0, 0x3000: 0, 0x7000: 0, 0x8000: 0} {
		got, err := parseSmaps(bufio.NewScanner(strings.NewReader(text(""))), heap)
		if got != want<<10 || (err == nil) != (want > 0) {
			t.Errorf("around %#x: %d, %v; want %d KiB", heap, got, err, want)
		}
		if want == 0 && !strings.Contains(err.Error(), "auto: no mapping has the address 0x") {
			t.Error(err)
		}
		if got, err := parseSmaps(bufio.NewScanner(strings.NewReader(text("[anon: Go: heap]"))), heap); got != 41<<10 || err != nil {
			t.Errorf("by name: %d, %v; want 41 KiB", got, err)
		}
	}
	if _, err := parseSmaps(bufio.NewScanner(strings.NewReader(text("")+"Rss: -\n")), 0x1000); err == nil || !strings.Contains(err.Error(), `auto: smaps: "Rss: -": `) {
		t.Error(err)
	}
	long := text("[anon: Go: heap]") + strings.Repeat("x", bufio.MaxScanTokenSize+1)
	if got, err := parseSmaps(bufio.NewScanner(strings.NewReader(long)), 0x1000); !errors.Is(err, bufio.ErrTooLong) || got != 0 {
		t.Errorf("a line without an end: %d, %v", got, err)
	}
}

func TestGoLimitIsReached(t *testing.T) {
	s := newStage()
	l := takeGoLimit(s.setGoLimit)
	if s.present != math.MaxInt64-1 || l.ours.Load() != s.present {
		t.Errorf("%d, and ours is %d: want one less than none", s.present, l.ours.Load())
	}
	if l.reached(math.MaxInt64) || !l.isOurs() {
		t.Error("no limit is reached")
	}
	l.steer(1600, 40, time.Now())
	for golang, want := range map[int64]bool{1500: false, 1501: true, 1600: true, 9000: true, 0: false} {
		if l.reached(golang) != want {
			t.Errorf("%d of 1600: reached %v", golang, !want)
		}
	}
	if s.present = 1700; l.isOurs() { // the program's
		t.Error("what the program has set is ours")
	}
	s.present = 1600
	if l.giveBack(); s.present != math.MaxInt64 || l.ours.Load() != 0 || l.isOurs() || l.reached(math.MaxInt64) {
		t.Errorf("given back: %d, ours %d", s.present, l.ours.Load())
	}
	s.present = 1 << 40
	if l = takeGoLimit(s.setGoLimit); l.ours.Load() != 0 || s.present != 1<<40 || l.reached(1<<41) {
		t.Error("the program's limit was taken")
	}
}

// A program that sets its limit at the same moment keeps it.
func TestGoLimitThatTheProgramSetsMeanwhile(t *testing.T) {
	s := newStage()
	mine := false
	l := takeGoLimit(func(bytes int64) int64 {
		if bytes >= 0 && bytes != unlimited && !mine {
			mine = true
			s.setGoLimit(77)
		}
		return s.setGoLimit(bytes)
	})
	now := time.Now()
	if l.steer(1000, 10, now); s.present != 77 || l.ours.Load() != unlimited || !l.at.IsZero() {
		t.Errorf("%d, ours %d", s.present, l.ours.Load())
	}
	if l.steer(2000, 10, now); s.present != 77 {
		t.Errorf("%d", s.present)
	}
}

// TestALookBeforeItIsDue: once Go has reached its limit a review is asked for, once in 100 ms, and one at a time.
func TestALookBeforeItIsDue(t *testing.T) {
	s := newStage()
	s.anonymous.Store(100 * mib)
	s.container.Store(1000 * mib)
	w := begun(t, s)
	w.gauge.Close()
	for len(w.early) > 0 { // by a look of the gauge's
		<-w.early
	}
	w.notBefore.Store(0)
	if w.read(); len(w.early) != 0 || w.notBefore.Load() != 0 {
		t.Error("asked for where Go has room")
	}
	s.golang.Store(w.goLimit.ours.Load())
	before := time.Now()
	w.read()
	next := time.Unix(0, w.notBefore.Load())
	if len(w.early) != 1 || next.Before(before.Add(earlyEvery)) || next.After(time.Now().Add(earlyEvery)) {
		t.Errorf("%d asked for, and the next one %v later; want 1 and %v", len(w.early), next.Sub(before), earlyEvery)
	}
	w.notBefore.Store(time.Now().Add(time.Hour).UnixNano())
	<-w.early
	if w.read(); len(w.early) != 0 {
		t.Error("asked for again at once")
	}
	w.notBefore.Store(time.Now().UnixNano() - 1)
	w.read()
	w.notBefore.Store(0)
	if w.read(); len(w.early) != 1 { // and does not wait until there is room
		t.Errorf("%d asked for", len(w.early))
	}
}

// TestLooksRunWhenAskedFor: more often than the ticker would.
func TestLooksRunWhenAskedFor(t *testing.T) {
	s := newStage()
	s.anonymous.Store(mib)
	w := begun(t, s)
	go w.run()
	defer w.stop()
	begin, looks := time.Now(), int64(0)
	for ; looks < 5+int64(time.Since(begin)/reviewEvery); looks++ {
		s.container.Store((1000 + looks) * mib)
		want := int64((1-reserve)*float64((1000+looks)*mib)) - s.golang.Load()
		w.early <- struct{}{}
		for w.gauge.Sample().Limit != want {
			if time.Since(begin) > 30*time.Second {
				t.Fatalf("%d looks in %v", looks, time.Since(begin))
			}
			runtime.Gosched()
		}
	}
}

func TestCrowd(t *testing.T) {
	for _, c := range []struct {
		limit, others, own int64
		want               float64
	}{{0, 5, 5, 0}, {-1, 5, 5, 0}, {1000, 49, 500, 0}, {1000, 50, 500, 0.55}, {1000, 500, 0, 0.5}, {1000, 900, 300, 1.2}} {
		if got := crowd(c.limit, c.others, c.own); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// What is not known of a container is no neighbour.
func TestNeighboursThatAreNotKnown(t *testing.T) {
	s := newStage()
	s.container.Store(1000 * mib)
	s.anonymous.Store(100 * mib)
	s.others = 300 * mib
	w := begun(t, s)
	if n := w.others(1000 * mib); n != 300*mib {
		t.Errorf("others hold %d", n)
	}
	if s.unknown = errors.New("no meminfo"); w.others(1000*mib) != 0 {
		t.Error("others hold something, and the container does not say")
	}
	if s.unknown, s.others = nil, -50*mib; w.others(1000*mib) != 0 {
		t.Error("others hold less than nothing")
	}
	s.others = 300 * mib
	if w.gauge.Close(); w.outside() != 100*mib {
		t.Errorf("%d outside", w.outside())
	}
	if s.fails(errors.New("no statm")); w.others(1000*mib) != 0 || w.outside() != 0 {
		t.Error("the process does not say what it holds")
	}
}

// TestPriceGoesUpWithEither: stalls or a full container; and down where neither asks for it.
func TestPriceGoesUpWithEither(t *testing.T) {
	w := begun(t, newStage())
	for i, c := range []struct {
		stalls, full float64
		want         int
	}{
		{0, 0.74, 0}, {0, 0.75, 1}, {0, 0.65, 1}, {0.006, 0.6, 1}, {0.004, 0.66, 1}, {0.004, 0.64, 0},
		{0, 0.9, 2}, {0.01, 0.81, 2}, {0.06, 0.7, 2}, {0.04, 0.7, 1}, {0.2, 0, 2}, {0, 0.66, 1}, {0.3, 0.95, 2}, {0, 0, 0},
	} {
		if w.price(c.stalls, c.full); w.urgency != c.want {
			t.Errorf("step %d, stalls %v, full %v: urgency %d, want %d", i, c.stalls, c.full, w.urgency, c.want)
		}
	}
	for i, want := range []string{"host", "host:price=8e-08,overhead=2%", "host:price=3.2e-07,overhead=4%"} { // four times, and four times again
		if got := policy.MustParse(urgencies[i].policy).String(); got != want {
			t.Errorf("urgency %d: %s, want %s", i, got, want)
		}
	}
}

// TestDue: a fifth of what there is, 32 MiB at least, each two minutes.
func TestDue(t *testing.T) {
	for _, c := range []struct {
		after     time.Duration
		all, kept int64
		want      bool
	}{
		{2 * time.Minute, 160 * mib, 32 * mib, true}, {2*time.Minute - 1, 160 * mib, 32 * mib, false}, {time.Hour, 160 * mib, 32*mib - 1, false},
		{time.Hour, 161 * mib, 32 * mib, false}, {time.Hour, 1000 * mib, 200 * mib, true}, {time.Hour, 1000 * mib, 199 * mib, false}, {time.Hour, 0, 40 * mib, true},
	} {
		if got := dueForTrim(c.after, c.all, c.kept); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// logged is a log that keeps its text, debug level included.
func logged() (*slog.Logger, *safely) {
	var text safely
	return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})), &text
}

// TestTrimOfGo: with the option memory that Go's heap keeps free is given back, and said; without it never.
func TestTrimOfGo(t *testing.T) {
	block := make([]byte, 64*mib)
	for _, trim := range []bool{false, true} {
		log, text := logged()
		s := newStage()
		s.golang.Store(400 * mib)
		w := begunWith(t, s, Options{Trim: trim, Log: log})
		s.unused = 79 * mib
		now := time.Now()
		runtime.KeepAlive(block)
		block = nil
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if w.trim(now); !w.freed.IsZero() {
			t.Error("less than a fifth was given back")
		}
		s.unused = 80 * mib
		w.trim(now)
		w.trim(now.Add(time.Minute))
		said := strings.Count(text.String(), `msg="eagergc: gave free memory of the Go heap back" free_bytes=83886080`)
		if want := map[bool]int{true: 1}[trim]; said != want || (w.freed == now) != trim {
			t.Errorf("trim %v: said %d times, at %v: %s", trim, said, w.freed, text)
		}
		if runtime.ReadMemStats(&after); trim && after.NumForcedGC == before.NumForcedGC {
			t.Error("nothing was given back")
		}
	}
}

// TestWhatIsSaid: finalizers that are stuck, once each time; and memory that stays, with the call for it.
func TestWhatIsSaid(t *testing.T) {
	log, text := logged()
	held := make(chan int64, 9)
	w := begunWith(t, newStage(), Options{Log: log, Held: func(bytes int64, stayed time.Duration) {
		if stayed != 10*time.Second {
			t.Errorf("stayed %v", stayed)
		}
		held <- bytes
	}})
	for _, stuck := range []bool{false, true, true, false, true, false} {
		w.say(stuck, 0, 0)
	}
	if n := strings.Count(text.String(), `level=WARN msg="eagergc: finalizers or cleanups that are due have not run for 10 s`); n != 2 {
		t.Errorf("said %d times that finalizers are stuck: %s", n, text)
	}
	for range 30 {
		w.say(false, 100*mib, time.Minute)
	}
	if n := strings.Count(text.String(), `level=INFO msg="eagergc: nothing to free: memory outside the Go heap is held, or leaks" held="100.00 MiB" stayed=10s next_cycle_in=1m0s`); n != 1 {
		t.Errorf("said %d times that memory is held: %s", n, text)
	}
	if bytes := <-held; bytes != 100*mib || len(held) > 0 {
		t.Errorf("told of %d bytes, and %d times more", bytes, len(held))
	}
}

// TestTheEndOfAWatcher: nothing of it is left, however often it is ended.
func TestTheEndOfAWatcher(t *testing.T) {
	s := newStage()
	s.anonymous.Store(100 * mib)
	s.container.Store(1000 * mib)
	log, text := logged()
	w := begunWith(t, s, Options{Log: log})
	go w.run()
	for !strings.Contains(text.String(), `msg="eagergc: on" policy=host limit="1000.00 MiB"`) {
		runtime.Gosched()
	}
	known := len(*w.libraries.Load())
	lib := pressure.NewCounter(t.Name())
	if lib.Add(mib); len(*w.libraries.Load()) != known+1 || w.counted() < mib || !slices.ContainsFunc(w.collector.Counters(), func(n gc.Counted) bool { return n.Name == t.Name() }) {
		t.Error("a library that comes later is not counted")
	}
	w.stop()
	w.stop()
	if s.present != math.MaxInt64 || w.goLimit.isOurs() {
		t.Errorf("Go's limit is %d", s.present)
	}
	pressure.NewCounter(t.Name())
	if len(*w.libraries.Load()) != known+1 || w.collector.Counters() != nil {
		t.Error("it still listens")
	}
	select {
	case <-w.ended:
	default:
		t.Error("it still runs")
	}
	lib.Sub(mib)
}

// TestCyclesOfBoth: those that the policy and the program asked for, and the ticker's.
func TestCyclesOfBoth(t *testing.T) {
	if run, ticker := Cycles(); run != 0 || ticker != 0 || Collector() != nil {
		t.Errorf("%d and %d where it is off", run, ticker)
	}
	w := begun(t, newStage())
	running.Lock()
	running.keeper = w
	running.Unlock()
	defer func() { running.Lock(); running.keeper = nil; running.Unlock() }()
	w.collector.Collect(policy.TriggerExplicit)
	w.collector.Collect(policy.TriggerExplicit)
	w.collector.Collect(policy.TriggerPolicy)
	w.collector.Collect(policy.TriggerRefusal)
	w.ticker.rate.Store(1 << 40)
	w.ticker.tooth.Store(1)
	before := w.ticker.cycles(w.collector.Now())
	run, ticker := Cycles()
	if after := w.ticker.cycles(w.collector.Now()); run != 3 || ticker < before || ticker > after || before == 0 || Collector() != w.collector {
		t.Errorf("%d cycles, and %d of the ticker; want 3, and %d to %d", run, ticker, before, after)
	}
}

// TestWhatThisProcessSays of Go's memory, beside what MemStats has.
func TestWhatThisProcessSays(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a cycle would find the garbage reachable, and count it as needed
	block := make([]byte, 40*mib)
	for i := range block {
		block[i] = 1
	}
	runtime.GC()
	garbage := make([]byte, 30*mib)
	for i := range garbage {
		garbage[i] = 1
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var h system
	all, free := h.goFree()
	for name, c := range map[string]struct{ got, want uint64 }{
		"goMemory":  {uint64(h.goMemory()), m.Sys - m.HeapReleased},
		"goFree":    {uint64(all), m.Sys - m.HeapReleased},
		"free":      {uint64(free), m.HeapIdle - m.HeapReleased},
		"heapReady": {uint64(h.heapReady()), m.HeapSys - m.HeapReleased + m.StackInuse},
		"goNeeds":   {uint64(h.goNeeds()), m.Sys - m.HeapReleased - m.HeapInuse - (m.HeapIdle - m.HeapReleased) + m.HeapAlloc - 30*mib},
	} {
		if diff := int64(c.got) - int64(c.want); diff > 8*mib || diff < -8*mib {
			t.Errorf("%s: %d MiB, and %d of MemStats", name, c.got/mib, c.want/mib)
		}
	}
	runtime.KeepAlive(block)
	runtime.KeepAlive(garbage)
	if runtime.GOOS == "linux" {
		info, err := pressure.HostMemory()
		if free, same := h.free(); (err == nil) != (same == nil) || math.Abs(float64(free-info.Free)) > 512*mib {
			t.Errorf("%d free, %v; HostMemory %+v, %v", free, same, info, err)
		}
	}
}
