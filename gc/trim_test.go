package gc

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// An arena is a process whose allocator keeps what is freed: so many bytes per ns, while it works. A test moves its clock.
type arena struct {
	at     time.Duration
	timers []struct {
		at time.Duration
		do func()
	}
	inUse, kept float64
	rate        float64       // bytes that are kept, per ns
	most        float64       // of them; 0 = no bound
	fault       time.Duration // for a page that comes back
	work        time.Duration // of a trim
	use         usage
	busy, none  bool
	trims       []time.Duration
}

func (a *arena) now() time.Duration { return a.at }
func (a *arena) waiting() bool      { return a.busy }
func (a *arena) resident() int64    { return int64(a.inUse + a.kept) }
func (a *arena) used() usage        { return a.use }

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
	a.use.thread += a.work
	a.use.system += a.work
	a.use.all += a.work
	return true
}

// run lets time go by, in which cycles free something each ms, if they do.
func (a *arena) run(t *trimmer, c *Collector, d time.Duration, frees bool) {
	page := float64(os.Getpagesize())
	for end := a.at + d; a.at < end; a.at += time.Millisecond {
		more := a.rate * 1e6
		if a.most > 0 {
			more = min(more, a.most-a.kept)
		}
		a.kept += more
		n := int64(more / page)
		a.use.faults += n
		a.use.system += time.Duration(n) * a.fault
		a.use.all += time.Duration(n)*a.fault + time.Millisecond/2
		if frees {
			t.cycled(c)
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

// trimming returns a trimmer of a process, and a collector that may take so large a share.
func trimming(a *arena, share float64) (*trimmer, *Collector, *events) {
	log := &events{level: slog.LevelDebug}
	a.at = time.Second
	t := &trimmer{libc: a}
	return t, build(newPuppet(), t, Config{Caps: Caps{Cycles: share}, Idle: -1, Log: slog.New(log)}, policy.Spec{}.New()), log
}

// gaps are the times between the trims.
func (a *arena) gaps() (all []time.Duration) {
	for i := range len(a.trims) - 1 {
		all = append(all, a.trims[i+1]-a.trims[i]-a.work)
	}
	return all
}

// Where memory grows evenly, what was kept has cost as much at each trim as the trim does, with the page faults that follow.
func TestTrimsByThePrice(t *testing.T) {
	if got, want := policy.MustParse(fmt.Sprintf("host:price=%g", trimPrice)).New().String(), policy.MustParse(HostPolicy).New().String(); got != want {
		t.Errorf("the price is that of %s, want %s", got, want)
	}
	for name, a := range map[string]*arena{
		"cheap faults":   {rate: 0.25, fault: 4 * time.Microsecond, work: 3 * ms},
		"dear faults":    {rate: 0.1, fault: 30 * time.Microsecond, work: 30 * ms},
		"no faults":      {rate: 0.1, work: 3 * ms},
		"slow growth":    {rate: 0.002, fault: 4 * time.Microsecond, work: 10 * ms},
		"a trim is free": {rate: 0.1, fault: 8 * time.Microsecond},
	} {
		trimmer, c, _ := trimming(a, 1000)
		a.run(trimmer, c, 20*time.Second, true)
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
	}
}

// Trims and the faults that follow take no more of the processors than cycles may.
func TestTrimsKeepToTheirShare(t *testing.T) {
	for want, fault := range map[float64]time.Duration{0.1: 40 * time.Microsecond, 0.02: 10 * time.Microsecond} {
		a := &arena{rate: 1, most: 100 << 20, fault: fault, work: 20 * ms}
		trimmer, c, _ := trimming(a, want)
		a.run(trimmer, c, 60*time.Second, true)
		before, began := a.use.system, a.at
		a.run(trimmer, c, 300*time.Second, true)
		share := float64(a.use.system-before) / float64(a.at-began) / float64(runtime.GOMAXPROCS(0))
		if share > 1.1*want || share < want/2 {
			t.Errorf("%.3f of the processors in %d trims, want %v", share, len(a.trims), want)
		}
	}
}

// What brings nothing is tried twice as late each time, up to a second, or a thousandth of the time, or two minutes.
func TestTrimsInVain(t *testing.T) {
	for work, longest := range map[time.Duration]time.Duration{ms / 10: time.Second, 5 * ms: 5 * time.Second, 300 * ms: 2 * time.Minute} {
		a := &arena{inUse: 100 << 20, work: work}
		trimmer, c, _ := trimming(a, 1)
		a.run(trimmer, c, 10*time.Minute, true)
		gaps := a.gaps()
		if gaps[0] > 105*ms+4*work || gaps[1] < gaps[0]*3/2 {
			t.Errorf("%v each: after %v", work, gaps[:3])
		}
		if last := gaps[len(gaps)-1]; last < longest-ms || last > longest+2*ms || slices.Max(gaps) > longest+2*ms {
			t.Errorf("%v each: after %v at last, want %v", work, last, longest)
		}
	}
}

// A trim follows a cycle that has freed something, and what that has left to finalizers.
func TestTrimsAfterCycles(t *testing.T) {
	a := &arena{rate: 0.1, work: ms}
	trimmer, c, log := trimming(a, 1)
	a.run(trimmer, c, time.Second, false)
	if len(a.trims) > 0 {
		t.Error("trimmed, and no cycle has freed anything")
	}
	a.busy = true
	trimmer.cycled(c)
	a.run(trimmer, c, 100*ms, false)
	if len(a.trims) > 0 {
		t.Error("trimmed while finalizers were due")
	}
	a.busy = false
	kept := int64(a.kept)
	a.run(trimmer, c, 10*ms, false)
	if len(a.trims) != 1 || a.trims[0] > 2100*ms+3*ms || trimmer.gave.Load() < kept {
		t.Fatalf("trimmed at %v: %d bytes of %d", a.trims, trimmer.gave.Load(), kept)
	}
	if said := log.of(logTrimmed, ""); len(said) != 1 || !said[0].has(map[string]any{"bytes": trimmer.gave.Load(), "work": ms}) {
		t.Errorf("said %+v", said)
	}
	a.run(trimmer, c, time.Minute, false)
	if len(a.trims) != 1 {
		t.Error("trimmed again, and no cycle has freed anything")
	}
	a.busy = true // one of them blocks
	trimmer.cycled(c)
	a.run(trimmer, c, 99*ms, false)
	if len(a.trims) != 1 {
		t.Error("trimmed at once while finalizers were due")
	}
	if a.run(trimmer, c, 5*ms, false); len(a.trims) != 2 {
		t.Error("not trimmed 100 ms later")
	}
}

// A process whose libc has no malloc_trim is asked once.
func TestNothingToTrim(t *testing.T) {
	a := &arena{rate: 0.1, none: true}
	one, c, log := trimming(a, 1)
	a.run(one, c, 10*time.Second, true)
	if len(a.trims) != 1 || one.gave.Load() != 0 || log.count() > 0 {
		t.Errorf("asked %d times, %d bytes, said %d", len(a.trims), one.gave.Load(), log.count())
	}
	if new(trimmer).cycled(c); log.count() > 0 {
		t.Error("nothing gives something")
	}
}

// An allocator that keeps so much that giving it back takes a twentieth of the processor time is worth one line.
func TestADearAllocatorIsSaid(t *testing.T) {
	for fault, want := range map[time.Duration]int{time.Microsecond: 0, 80 * time.Microsecond: 1} {
		a := &arena{rate: 0.005, fault: fault, work: ms / 10}
		trimmer, c, log := trimming(a, 1)
		a.run(trimmer, c, 12*time.Second, true) // of which it works half
		if n := len(log.of(logDear, "")); n > 0 {
			t.Errorf("said after %v of processor time", a.use.all)
		}
		for a.use.all < dearLeast+2*time.Second {
			a.run(trimmer, c, time.Second, true)
		}
		said := log.of(logDear, "")
		a.run(trimmer, c, time.Minute, true)
		if n := len(log.of(logDear, "")); len(said) != want || n != want {
			t.Errorf("with faults of %v said %d times, and %d a minute later, want %d", fault, len(said), n, want)
		}
		if share, ok := append(said, event{})[0].attrs["share"].(float64); want > 0 && (!ok || share < 0.05 || share > 0.5 || said[0].level != slog.LevelInfo) {
			t.Errorf("said %+v", said[0])
		}
	}
}

// What a trim brings back is no yield of a cycle, and nothing that the program frees by itself.
func TestATrimIsNoYield(t *testing.T) {
	a := &arena{}
	_, c, _ := trimming(a, 1)
	level := int64(100 << 20)
	g := Watch(c, func() int64 { return level })
	defer c.Close()
	defer g.Close()
	see := func() int64 {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.see()
		return g.fallen
	}
	level -= 10 << 20
	before := see()
	level -= 30 << 20
	c.trimmer.gave.Add(30 << 20)
	if after := see(); before != 10<<20 || after != before {
		t.Errorf("fell by %d, and by %d after a trim", before, after)
	}
	level -= 5 << 20 // seen before the trim has counted it
	see()
	c.trimmer.gave.Add(5 << 20)
	if after := see(); after != before {
		t.Errorf("fell by %d after another", after)
	}
}

// Cycles of Own for the host's memory tell the trimmer; those for a device's do not.
func TestOwnersOfTheHostTrim(t *testing.T) {
	for space, want := range map[pressure.Space]bool{pressure.Host: true, pressure.Device(0): false} {
		a := &arena{}
		c := build(newGoRuntime(), &trimmer{libc: a}, Config{Space: space, Caps: usualCaps(), Idle: -1}, nil)
		func() { Own(c, new(handle), 8, func(int) {}, 0) }()
		for end := time.Now().Add(20 * time.Second); c.Collect(policy.TriggerExplicit).Freed == 0 && time.Now().Before(end); {
		}
		atRest(t, c)
		c.Close()
		if c.trimmer.armed.Load() != want {
			t.Errorf("%v: trims: %v", space, !want)
		}
	}
}
