package pool

import (
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A listening policy keeps what it is asked at allocations.
type listening struct{ asked [][2]int64 }

func (p *listening) Decide(at policy.Point) policy.Decision {
	if at.At == policy.Allocation {
		p.asked = append(p.asked, [2]int64{at.Sample.Live, at.Request})
	}
	return policy.Decision{}
}
func (*listening) Observe(policy.Cycle) {}
func (*listening) String() string       { return "listening" }

// TestThePolicyIsAskedAtAllocations: with what is live, and the size that is handed out.
func TestThePolicyIsAskedAtAllocations(t *testing.T) {
	heard := new(listening)
	c, err := gc.New(gc.Config{Policy: heard, Idle: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := newPool(t, Config{Collector: c, ExactPeaks: true})
	var all []Block
	for range 2 { // from the upstream, and from the cache
		for _, bytes := range []int64{1, 1000} {
			b, err := p.Alloc(bytes, 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		for _, b := range all {
			p.Free(b)
		}
		all = all[:0]
	}
	if want := [][2]int64{{0, 512}, {512, 1024}, {0, 512}, {512, 1024}}; !slices.Equal(heard.asked, want) {
		t.Errorf("asked with live and request %v, want %v", heard.asked, want)
	}
}

// A tape of events in memory.
type events struct {
	trace.Trace
	*trace.Recorder // nil: its clock stands
}

func (e *events) Record(x trace.Event) { e.Trace.Record(x) }
func (e *events) Label(string) uint32  { return 0 }

// TestAnOwnedBlockIsGivenBackByHandOnce: and that is what the recording says.
func TestAnOwnedBlockIsGivenBackByHandOnce(t *testing.T) {
	to := new(events)
	p := newPool(t, Config{Trace: to})
	b, err := p.Alloc(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	owner := new([4]*int)
	o, err := Own(p, owner, b)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Free() || o.Free() || (Owned{}).Free() {
		t.Error("not given back exactly once")
	}
	if live := p.Stats().Live; live != 0 {
		t.Errorf("%d bytes are live", live)
	}
	last := to.Events[len(to.Events)-1]
	if last.Kind != trace.Free || last.Bytes != 1<<20 || last.Aux != trace.FreeExplicit {
		t.Errorf("recorded %+v", last)
	}
	_ = *owner
}

// TestWhatFrontsCountInAdvanceFollowsTheLimit: all of them hold at most a 32nd of it ready.
func TestWhatFrontsCountInAdvanceFollowsTheLimit(t *testing.T) {
	const hard = 64 << 20
	p := newPool(t, Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: hard}}})
	var keep, ready int64
	for k := range p.caches {
		keep += p.caches[k].keep
		ready += 2 * p.caches[k].count.Slack
	}
	if keep != hard || ready == 0 || ready > hard/32 {
		t.Errorf("caches keep %d and hold %d ready, of %d", keep, ready, hard)
	}
	p = newPool(t, Config{})
	if f := &p.caches[0]; f.keep != keepMax || f.count.Slack != slackMax {
		t.Errorf("without a limit a cache keeps %d, with a slack of %d", f.keep, f.count.Slack)
	}
}

// TestPoisonBlamesOnlyTheBlockThatWasThere.
func TestPoisonBlamesOnlyTheBlockThatWasThere(t *testing.T) {
	q := new(poison)
	q.last[0] = freedBlock{addr: 1000, size: 100}
	q.last[1] = freedBlock{addr: 2000, size: 50}
	q.freed = 2
	for addr, there := range map[uintptr]bool{999: false, 1000: true, 1099: true, 1100: false, 1999: false, 2049: true, 2050: false, 0: false} {
		if text := q.blame(addr); strings.Contains(text, "allocated at") != there {
			t.Errorf("%d: %s", addr, text)
		}
	}
	p := newPool(t, Config{Poison: true})
	var freed []Block
	for range 20 { // each of the last 4096 is known
		b, err := p.Alloc(1000, 0)
		if err != nil {
			t.Fatal(err)
		}
		freed = append(freed, b)
	}
	for _, b := range freed {
		p.Free(b)
	}
	for i, b := range freed {
		if text := p.poison.blame(b.Addr); !strings.Contains(text, "allocated at") {
			t.Errorf("block %d: %s", i, text)
		}
	}
}
