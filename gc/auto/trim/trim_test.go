package trim

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/gc/policy"
)

const ms = time.Millisecond

// An arena is a process whose allocator keeps what is freed, with a clock of its own.
type arena struct {
	at     time.Duration
	timers []struct {
		at time.Duration
		do func()
	}
	inUse, kept float64
	rate, most  float64       // bytes that are kept, per ns, and of them; 0 = no bound
	fault       time.Duration // for a page that comes back
	work        time.Duration // of a trim
	use         usage
	spent       time.Duration // of it, for trims and pages that come back
	taken       time.Duration // of that, for trims and page faults alone
	busy, none  bool
	trims       []time.Duration
	said        []string // aloud
	last        string   // line
	share, part float64  // of the processors, and of what the program uses
}

func (a *arena) now() time.Duration  { return a.at }
func (a *arena) resident() int64     { return int64(a.inUse + a.kept) }
func (a *arena) used() usage         { return a.use }
func (a *arena) page() time.Duration { return a.fault / 2 } // to one thread, while no other runs

func (a *arena) later(d time.Duration, do func()) {
	a.timers = append(a.timers, struct {
		at time.Duration
		do func()
	}{a.at + max(0, d), do})
}

func (a *arena) trim() bool {
	a.trims = append(a.trims, a.at)
	if a.none {
		return false
	}
	a.kept = 0
	a.at += a.work
	a.use.thread, a.use.all, a.spent, a.taken = a.use.thread+a.work, a.use.all+a.work, a.spent+a.work, a.taken+a.work
	return true
}

// cycle is one that has freed something.
func (a *arena) cycle() freed.Cycle {
	return freed.Cycle{Share: cmp.Or(a.part, 1), Cap: a.share, Waiting: func() bool { return a.busy }, Say: func(level slog.Level, aloud bool, text string, attrs ...slog.Attr) {
		if a.last = fmt.Sprint(level, " ", text, " ", attrs); aloud {
			a.said = append(a.said, a.last)
		}
	}}
}

// run lets time go by, in which cycles free something each ms, if they do.
func (a *arena) run(t *trimmer, d time.Duration, frees bool) {
	page := float64(os.Getpagesize())
	for end := a.at + d; a.at < end; a.at += ms {
		more := a.rate * 1e6
		if a.most > 0 {
			more = min(more, a.most-a.kept)
		}
		a.kept += more
		faults := time.Duration(more/page) * a.fault
		a.spent += faults
		a.taken += faults / 2
		a.use.all += faults + ms/2
		if frees {
			t.cycled(a.cycle())
		}
		for i := 0; i < len(a.timers); i++ {
			if timer := a.timers[i]; timer.at <= a.at {
				a.timers = slices.Delete(a.timers, i, i+1)
				i--
				timer.do()
			}
		}
	}
}

// trimming is a process whose trims may take so large a share.
func trimming(a *arena, share float64) *trimmer {
	a.at, a.share = time.Second, share
	return &trimmer{libc: a}
}

// gaps are the times between the trims.
func (a *arena) gaps() (all []time.Duration) {
	for i := range len(a.trims) - 1 {
		all = append(all, a.trims[i+1]-a.trims[i]-a.work)
	}
	return all
}

// Where memory grows evenly, the kept memory has cost as much at each trim as the trim does.
func TestTrimsByThePrice(t *testing.T) {
	if got, want := policy.MustParse(fmt.Sprintf("host:price=%g", trimPrice)).New().String(), policy.MustParse(gc.HostPolicy).New().String(); got != want {
		t.Errorf("the price is that of %s, want %s", got, want)
	}
	for name, a := range map[string]*arena{
		"cheap faults":   {rate: 0.25, fault: 4 * time.Microsecond, work: 3 * ms},
		"dear faults":    {rate: 0.1, fault: 30 * time.Microsecond, work: 30 * ms},
		"slow growth":    {rate: 0.002, fault: 4 * time.Microsecond, work: 10 * ms},
		"a trim is free": {rate: 0.1, fault: 8 * time.Microsecond},
	} {
		trimmer, given := trimming(a, 1000), freed.Given()
		a.run(trimmer, 20*time.Second, true)
		gaps := a.gaps()
		gap := float64(gaps[len(gaps)-1])
		kept := a.rate * gap
		cost := float64(a.work) + kept*(float64(a.fault)/float64(os.Getpagesize()))
		if a.trims[0] < time.Second+50*ms || a.trims[0] > time.Second+52*ms {
			t.Errorf("%s: the first after %v", name, a.trims[0]-time.Second)
		}
		if rent := 2e-8 * kept * gap; math.Abs(rent/cost-1) > 0.15 { // a tick is 1 ms
			t.Errorf("%s: each %v: %.0f bytes cost %.2g ns, a trim %.2g", name, time.Duration(gap), kept, rent, cost)
		}
		if all := a.rate*20e9 - a.kept; math.Abs(float64(freed.Given()-given)/all-1) > 0.1 {
			t.Errorf("%s: %d bytes given back, want about %.0f", name, freed.Given()-given, all)
		}
	}
}

// Trims and the faults that follow take no more of the processors than cycles may. One that is dear is said once.
func TestTrimsKeepToTheirShare(t *testing.T) {
	for want, c := range map[float64]struct {
		fault time.Duration
		part  float64
	}{0.1: {40 * time.Microsecond, 0}, 0.02: {10 * time.Microsecond, 0}, 0.04: {30 * time.Microsecond, 0.04}} {
		a := &arena{rate: 1, most: 100 << 20, fault: c.fault, work: 20 * ms, part: c.part}
		trimmer := trimming(a, want)
		if c.part > 0 {
			trimmer = trimming(a, 1000)
		}
		a.run(trimmer, 60*time.Second, true)
		before, spent, taken, began := a.use, a.spent, a.taken, a.at
		a.run(trimmer, 300*time.Second, true)
		share := float64(a.taken-taken) / float64(a.at-began) / float64(runtime.GOMAXPROCS(0))
		if c.part > 0 {
			share = float64(a.spent-spent) / float64(a.use.all-before.all)
		}
		if share > 1.1*want || share < want/2 {
			t.Errorf("%.3f of the processors in %d trims, want %v", share, len(a.trims), want)
		}
	}
	for fault, want := range map[time.Duration]string{time.Microsecond: "", 80 * time.Microsecond: "INFO " + logDear + " [share=0.1"} {
		a := &arena{rate: 0.005, fault: fault, work: ms / 10}
		trimmer := trimming(a, 1)
		a.run(trimmer, 12*time.Second, true) // of which it works half
		early := len(a.said)
		if a.run(trimmer, 90*time.Second, true); early != 0 || want == "" != (len(a.said) == 0) || len(a.said) > 1 || want != "" && !strings.HasPrefix(a.said[0], want) {
			t.Errorf("with faults of %v: said %d times before 10 s of work, %q after, want %q", fault, early, a.said, want)
		}
	}
}

// A trim that brings nothing is repeated twice as late each time, up to a second, a thousandth of the time, or two minutes.
func TestTrimsThatBringNothingGetRare(t *testing.T) {
	for work, longest := range map[time.Duration]time.Duration{ms / 10: time.Second, 5 * ms: 5 * time.Second, 300 * ms: 2 * time.Minute} {
		a := &arena{inUse: 100 << 20, work: work}
		a.run(trimming(a, 1), 10*time.Minute, true)
		gaps := a.gaps()
		if gaps[0] > 105*ms+4*work || gaps[1] < gaps[0]*3/2 {
			t.Errorf("%v each: after %v", work, gaps[:3])
		}
		if last := gaps[len(gaps)-1]; last < longest-ms || last > longest+2*ms || slices.Max(gaps) > longest+2*ms {
			t.Errorf("%v each: after %v at last, want %v", work, last, longest)
		}
	}
}

// A trim follows a cycle that has freed something, and the finalizers that are due after it, for 100 ms at most.
func TestTrimsFollowCycles(t *testing.T) {
	a := &arena{rate: 0.1, work: ms}
	trimmer := trimming(a, 1)
	step := func(what string, d time.Duration, want int) {
		t.Helper()
		if a.run(trimmer, d, false); len(a.trims) != want {
			t.Errorf("%s: %d trims, want %d", what, len(a.trims), want)
		}
	}
	step("no cycle has freed anything", time.Second, 0)
	a.busy = true
	trimmer.cycled(a.cycle())
	step("finalizers are due", 100*ms, 0)
	a.busy = false
	step("they have run", 10*ms, 1)
	if want := "DEBUG eagergc: trimmed C's allocator [bytes=110100000 work=1ms next=6.77"; !strings.HasPrefix(a.last, want) {
		t.Errorf("logs %q, want %q", a.last, want)
	}
	step("no cycle since", time.Minute, 1)
	a.busy = true // one of them blocks
	trimmer.cycled(a.cycle())
	step("finalizers are due again", 99*ms, 1)
	step("for 100 ms", 5*ms, 2)
	a.none = true
	a.run(trimmer, 10*time.Second, true)
	step("there is nothing to trim, which is asked once", 10*time.Second, 3)
}

// A trim that is far because its share was small is due at once after a cycle with a larger share.
func TestALargerShareBringsATrimForward(t *testing.T) {
	a := &arena{rate: 1, most: 200 << 20, fault: 4 * time.Microsecond, work: 5 * ms, part: 1e-4}
	trimmer := trimming(a, 1000)
	a.run(trimmer, 2*time.Second, true)
	if len(a.trims) != 1 {
		t.Fatalf("%d trims with a small share, want 1", len(a.trims))
	}
	a.part = 1
	if a.run(trimmer, 10*ms, true); len(a.trims) != 2 {
		t.Errorf("%d trims, 10 ms after the share has grown", len(a.trims))
	}
	a.part = 1e-4
	a.run(trimmer, time.Second, true) // in which one comes that a large share has armed
	n := len(a.trims)
	if a.run(trimmer, 118500*ms, true); len(a.trims) != n {
		t.Errorf("%d more when the one that was brought forward had been due", len(a.trims)-n)
	}
	a.part = 0.01
	if a.run(trimmer, 10*time.Second, false); len(a.trims) > n+1 {
		t.Errorf("%d trims after the last cycle", len(a.trims)-n)
	}
}
