package auto

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// Whatever host, libraries, neighbours and program do, each memory has the room that the others leave of the limit; Go's limit
// is ours only while the program sets none, and never so low that Go would collect without end; the price follows what is
// short; and the end puts everything back.
func TestLimitsAreSharedOut(t *testing.T) {
	lib := pressure.NewCounter(t.Name())
	lib.Add(0)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		upTo := func(n int64) int64 { return r.Int64N(n) * mib }
		p := newProcess(t, &stage{touched: 1 << 40}, Options{})
		ours, changed, urgency, counted, most, dear := int64(math.MaxInt64-1), time.Time{}, 0, int64(0), int64(0), p.collector.Policy()
		for step := range 60 {
			p.set(func() {
				p.heap = goMemory{mapped: upTo(400) + 100*mib, objects: upTo(40), free: upTo(30), unused: upTo(30)}
				p.heap.live = min(p.heap.objects, upTo(40))
				p.anonymous = p.heap.mapped + upTo(400)
				if r.IntN(4) == 0 {
					p.container = upTo(3) * 700
					p.others = upTo(2) * r.Int64N(300)
				}
				p.waiting = []float64{0, 0.004, 0.01, 0.03, 0.1, 0.3}[r.IntN(6)]
			})
			if r.IntN(12) == 0 {
				lib.Sub(counted)
				counted = upTo(50)
				lib.Add(counted)
			}
			was, needs := p.goLimit, p.heap.mapped-p.heap.objects-p.heap.free-p.heap.unused+p.heap.live
			p.second()
			outside := p.anonymous - p.heap.mapped
			usable := int64(0.95*float64(p.container)) - p.others
			most = max(outside, most-most/16)
			if got := p.gauge.Look(); got != max(0, outside-counted) {
				t.Fatalf("seed %d, step %d: the gauge has %d MiB, and there are %d without what is counted", seed, step, got/mib, (outside-counted)/mib)
			}
			for _, s := range p.collector.Snapshot().Sources {
				want := int64(0)
				gauge := s.Limit == p.gauge.Sample().Limit
				switch rest := max(0, outside-counted); {
				case p.container == 0:
				case gauge:
					want = max(1, usable-p.heap.mapped-counted)
				default:
					want = max(1, usable-p.heap.mapped-rest)
				}
				slack := 0.0
				if !gauge && want > 0 {
					slack = 0.06 * float64(max(want, s.Limit)) // small changes wait
				}
				if counted > 0 || gauge || p.container == 0 {
					if math.Abs(float64(s.Limit-want)) > slack+1 {
						t.Fatalf("seed %d, step %d: a limit of %d MiB, want %d", seed, step, s.Limit/mib, want/mib)
					}
				}
			}
			switch is := p.goLimit; {
			case was != ours: // the program's
				if is != was {
					t.Fatalf("seed %d, step %d: the program's limit of %d was made %d", seed, step, was, is)
				}
			case p.container > 0 && is == math.MaxInt64-1 && float64(usable-most) > 1.26*float64(needs):
				t.Fatalf("seed %d, step %d: no limit, where Go needs %d MiB of %d", seed, step, needs/mib, (usable-most)/mib)
			case p.container == 0 && is != math.MaxInt64-1:
				t.Fatalf("seed %d, step %d: a limit of %d MiB where there is none", seed, step, is/mib)
			case is != was && is < math.MaxInt64-1:
				if float64(is) < 1.1*float64(needs) || is > usable-outside+mib {
					t.Fatalf("seed %d, step %d: Go gets %d MiB, needs %d and there are %d", seed, step, is/mib, needs/mib, (usable-outside)/mib)
				}
				if change := float64(is)/float64(was) - 1; math.Abs(change) < 1.0/8 || change > -0.25 && p.now.Sub(changed) < 10*time.Second {
					t.Fatalf("seed %d, step %d: changed by %.2f after %v", seed, step, change, p.now.Sub(changed))
				}
			case is == was && is < math.MaxInt64-1 && float64(usable-outside) < 0.7*float64(is) && float64(usable-outside) > 0:
				t.Fatalf("seed %d, step %d: Go keeps %d MiB, and there are %d", seed, step, is/mib, (usable-outside)/mib)
			}
			if p.goLimit != was {
				ours, changed = p.goLimit, p.now
			}
			full := float64(p.others+p.anonymous) / float64(p.container)
			if float64(p.others) < 0.05*float64(p.container) || p.container == 0 {
				full = 0
			}
			least, most := 0, 2
			for i, at := range [][2]float64{{0.02, 0.75}, {0.2, 0.9}} {
				if p.waiting >= at[0] || full >= at[1] {
					least = i + 1
				} else if most > i && (urgency <= i || p.waiting < at[0]/4 && full < at[1]-0.1) {
					most = i
				}
			}
			if want := fmt.Sprintf(`level=DEBUG msg="eagergc: price of memory" stalls=%v policy=`, p.waiting); p.collector.Policy() != dear && !strings.Contains(fmt.Sprint(p.log.list()), want) {
				t.Fatalf("seed %d, step %d: no %s in the log", seed, step, want)
			}
			dear = p.collector.Policy()
			policies := []string{gc.HostPolicy, "host:price=8e-08,overhead=2%", "host:price=3.2e-07,overhead=4%"}
			urgency = -1
			for i := least; i <= max(least, most); i++ {
				if p.collector.Policy() == policies[i] {
					urgency = i
				}
			}
			if urgency < 0 {
				t.Fatalf("seed %d, step %d: %s with stalls of %v and %.2f full; want %v", seed, step, p.collector.Policy(), p.waiting, full, policies[least:max(least, most)+1])
			}
			if r.IntN(40) == 0 {
				p.goLimit = upTo(900) + 1 // by the program
			}
		}
		lib.Sub(counted)
	}
}

// A policy that the program has chosen stays, however dear memory is.
func TestThePriceLeavesAChosenPolicy(t *testing.T) {
	t.Setenv(gc.PolicyVariable, "growth:1,min=64MiB")
	p := newProcess(t, &stage{waiting: 0.5}, Options{})
	if p.second(); p.collector.Policy() != "growth:1,min=64MiB" {
		t.Errorf("policy %s", p.collector.Policy())
	}
}

// Where the container or the process does not say what it holds, nobody else holds anything.
func TestUnknownNeighboursHoldNothing(t *testing.T) {
	p := newProcess(t, &stage{container: 1000 * mib, anonymous: 100 * mib, others: 300 * mib}, Options{})
	limit := func() int64 { p.second(); return p.gauge.Sample().Limit / mib }
	said := limit()
	p.unknown = errors.New("no meminfo")
	container := limit()
	p.unknown = nil
	p.set(func() { p.broken = errors.New("no statm") })
	if process := limit(); said != 650 || container != 950 || process != 950 {
		t.Errorf("with neighbours of 300 MiB the limit is %d MiB, %d where the container does not say, %d where the process does not", said, container, process)
	}
	if _, err := newWatcher(p.stage, Options{}, p.collector, takeGoLimit(p.setGoLimit)); !errors.Is(err, p.broken) {
		t.Error("another one has started:", err)
	}
}

// While Go has a limit of ours, a step comes each 100 ms, and reviews once Go comes near that; otherwise each second.
func TestGoAtItsLimitIsReviewedSooner(t *testing.T) {
	p := newProcess(t, &stage{anonymous: 100 * mib, touched: 1 << 40, heap: goMemory{mapped: 50 * mib}}, Options{})
	if next := p.step(); next != time.Second {
		t.Errorf("without a limit the next step is after %v", next)
	}
	p.container = 1000 * mib
	if p.second(); p.goLimit != 900*mib {
		t.Fatalf("Go's limit is %d MiB", p.goLimit/mib)
	}
	if p.set(func() { p.container, p.meanwhile = 500*mib, 321*mib }); p.step() != 100*time.Millisecond || p.goLimit != 900*mib {
		t.Errorf("Go's limit is %d MiB before the next review", p.goLimit/mib)
	}
	if p.second(); p.goLimit != 321*mib {
		t.Errorf("Go's limit is %d MiB, where the program has set one meanwhile", p.goLimit/mib)
	}
	p.goLimit = 900 * mib
	for used, want := range map[int64]int64{843: 900, 845: 615} { // of which 1/16 is near
		p.set(func() { p.container, p.heap, p.anonymous = 1000*mib, goMemory{mapped: 50 * mib}, 100*mib })
		p.goLimit = 900 * mib
		p.now = p.now.Add(time.Minute)
		p.step()
		p.set(func() {
			p.container, p.heap, p.anonymous = 700*mib, goMemory{mapped: used * mib, objects: (used - 50) * mib}, (used+50)*mib
		})
		p.now = p.now.Add(100 * time.Millisecond)
		if next := p.step(); next != 100*time.Millisecond || p.goLimit != want*mib {
			t.Errorf("at %d MiB: Go's limit is %d, want %d; the next step after %v", used, p.goLimit/mib, want, next)
		}
		p.now = p.now.Add(time.Minute)
	}
}
