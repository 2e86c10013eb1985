package main

import (
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A page is the rule of pacer, written from gc/policy/POLICIES.md alone, with maps and lists that forget
// nothing, and with the page's names.
type page struct {
	asleep, freed, granted, grain    int64
	held, time, waited, wait, told   time.Duration
	took, meant, paid, got, early, n float64
	unharmed, keep, learned, since   int
	entries                          []place
	tokens                           []uint64
	slots                            [3]map[uint64]known
	keys                             [3]uint64
	last, most, slow                 float64
	rings                            [5]map[int64]place
	next                             [5]int64
	reset                            place // of the rings
	hidden, given                    [5][7]float64
	sum, cost                        float64
	k, m                             int
	startTotal, startRoom, startEnd  int64
	startKeys                        [3]uint64
	guess                            [5]float64
}

type place struct {
	time, waited time.Duration
	total, top   int64
	keys         [3]uint64
}

type known struct {
	key              uint64
	last, most, kept int64
}

const (
	share = 0.05
	a, b  = 0x9e3779b97f4a7c15, 0xff51afd7ed558ccd // A and M
)

func (p *page) note(keys [3]uint64, say func(*known)) {
	for c, key := range keys {
		if p.slots[c] == nil {
			p.slots[c] = make(map[uint64]known)
		}
		x, ok := p.slots[c][key>>54]
		if !ok || x.key != key {
			x = known{key, -1, -1, -1}
		}
		say(&x)
		p.slots[c][key>>54] = x
	}
}

func (p *page) recall(what func(known) int64) int64 {
	for c := 2; c >= 0; c-- {
		if x, ok := p.slots[c][p.keys[c]>>54]; ok && x.key == p.keys[c] && what(x) >= 0 {
			return what(x)
		}
	}
	return -1
}

func ran(now, x place, slowdown float64) float64 {
	d := now.time - x.time
	return float64(d) + slowdown*float64(d-(now.waited-x.waited))
}

func (p *page) reached(k int, grain int64) (place, bool) {
	if x, ok := p.rings[k][grain]; ok {
		return x, true
	}
	return p.reset, grain < p.next[k]
}

func (p *page) Decide(at policy.Point) policy.Decision {
	live, limit, sync := at.Sample.Live, at.Sample.Limit, at.At == policy.Sync
	if !sync && live+at.Request < p.asleep {
		return policy.Decision{Wake: p.asleep}
	}
	g := float64(at.Cost)
	if p.meant > 0 {
		g = float64(time.Duration(g * min(max(0.25, p.took/p.meant), 4)))
	}
	p.told, p.granted = at.Cost, max(p.granted, live)
	if p.unharmed < p.keep {
		limit = min(limit, p.granted)
	}
	passed := max(0, at.Now-p.held-p.time)
	p.time, p.waited, p.wait = p.time+passed, p.waited+min(p.wait, passed), 0
	if sync {
		p.wait = at.Wait
	}
	total := live + p.freed
	top, room := total+at.Request, limit-live-at.Request
	now := place{p.time, p.waited, total, top, p.keys}
	fine := int64(1) << bits.Len64(uint64(limit/1024))
	p.asleep = min(live+fine, limit+1)
	price := (share*g + p.cost) / float64(limit)
	if p.got > 0 {
		price = math.Sqrt(p.paid / p.got * (share*g + p.cost) * p.n / (p.got + p.early))
	}
	if newest := len(p.entries) - 1; sync || at.Request >= fine || newest < 0 || total-p.entries[newest].total >= fine {
		for p.learned = max(p.learned, newest+1-1024); p.learned < newest && ran(now, p.entries[p.learned+1], at.Slowdown) > g; p.learned++ {
			x := max(0, p.entries[newest].top-p.entries[p.learned].top)
			p.note(p.entries[p.learned].keys, func(s *known) { s.last, s.most = x, max(x, s.most-(s.most-x)/16) })
		}
		p.since++
		if sync {
			p.tokens, p.since = append(p.tokens, 1), 0
		} else if at.Request >= fine {
			p.tokens, p.since = append(p.tokens, uint64(bits.Len64(uint64(at.Request)))*b|2), 0
		}
		for c, length := range []int{2, 8, 24} {
			h := uint64(0)
			for i := range length {
				token := uint64(0)
				if i < len(p.tokens) {
					token = p.tokens[len(p.tokens)-1-i]
				}
				h = h*a + token
			}
			h = (h + uint64(p.since)) * a
			p.keys[c] = (h ^ h>>29) * b
		}
		now.keys = p.keys
		p.entries = append(p.entries, now)
		p.last = float64(max(0, p.recall(func(x known) int64 { return x.last })))
		p.most = float64(max(0, p.recall(func(x known) int64 { return x.most })))
		p.slow = 0
		if then, _ := p.reached(0, p.next[0]-1-4); float64(now.time-then.time)/float64(max(1, total-then.total)) < 2*price {
			p.slow = -float64(limit)
		}
	}
	hides := 0.
	if sync && at.Wait > 0 {
		hides = math.Floor(min(max(0, (p.cost-max(0, g-float64(at.Wait)))/price), float64(limit/2)))
	}
	p.guess = [5]float64{0, p.most, p.slow, hides, max(hides, p.last)}
	p.drill(&at, now, limit, g, price)
	start := func(action policy.Action) policy.Decision {
		p.startTotal, p.startRoom, p.startEnd, p.startKeys = total, max(0, room), p.freed+limit, p.keys
		return policy.Decision{Action: action, Wake: p.asleep}
	}
	switch {
	case at.Running:
	case live+at.Request > at.Sample.Limit:
		return start(policy.Block)
	case room < 0:
		return start(policy.Overlap)
	case float64(room) >= p.guess[p.k]+float64(int64(1)<<p.m>>1*p.grain):
	case float64(top-p.startTotal) < float64(room)/2:
	default:
		if kept := p.recall(func(x known) int64 { return x.kept }); kept < 0 || float64(live-kept) >= 0.2*float64(room) {
			return start(policy.Overlap)
		}
	}
	return policy.Decision{Wake: p.asleep}
}

func (p *page) drill(at *policy.Point, now place, limit int64, g, price float64) {
	if fresh := max(1, limit/64); 4*fresh <= 3*p.grain || 2*fresh >= 3*p.grain {
		p.grain, p.reset = fresh, now
		for k := range p.rings {
			p.rings[k], p.next[k] = make(map[int64]place), now.total/fresh+1
		}
	}
	from, end := p.next[0], now.top/p.grain
	for k := range p.rings {
		for to := min((now.top+int64(p.guess[k]))/p.grain, end+64); p.next[k] <= to; p.next[k]++ {
			p.rings[k][p.next[k]] = now
		}
	}
	for w := max(from, end-64); w <= end; w++ {
		weight := 1.
		for _, real := range []int64{p.freed + limit, p.startEnd} {
			if (real+p.grain-1)/p.grain == w {
				weight = 32
			}
		}
		keep := 1 - weight/2048
		p.sum = keep*p.sum + weight
		first, _ := p.reached(0, w-min(max(1, (limit-at.LiveAfter)/p.grain), 64))
		least := math.Inf(1)
		for k := 4; k >= 0; k-- {
			for m := 6; m >= 0; m-- {
				h, early := 0., 0.
				if x, ok := p.reached(k, w-int64(1)<<m>>1); ok {
					if x.total < first.total {
						x = first
					}
					h, early = float64(now.time-x.time)/max(1, g, ran(now, x, at.Slowdown)), float64(w*p.grain-x.total)
				}
				p.hidden[k][m] = keep*p.hidden[k][m] + weight*h
				p.given[k][m] = keep*p.given[k][m] + weight*early
				if score := price*p.given[k][m] - g*p.hidden[k][m]; score <= least {
					least, p.k, p.m = score, k, m
				}
			}
		}
		p.cost = g + least/max(1, p.sum)
	}
}

func (p *page) Observe(c policy.Cycle) {
	p.freed, p.held, p.asleep = p.freed+c.Freed, p.held+c.Exposed, 0
	if before := c.LiveAfter + c.Freed; c.Wanted > 0 && c.Wanted <= c.Limit {
		if before > p.granted || c.Wanted <= p.granted {
			p.granted = before
		}
		if p.keep == 0 {
			p.keep = 256
		} else if p.unharmed >= p.keep {
			p.keep *= 4
		}
		p.unharmed = 0
	} else {
		p.unharmed++
	}
	if c.Trigger == policy.TriggerNatural {
		return
	}
	p.paid = 0.85*p.paid + float64(c.Exposed) + share*float64(c.Duration)
	p.got, p.early, p.n = 0.85*p.got+float64(c.Freed), 0.85*p.early+float64(p.startRoom), 0.85*p.n+1
	if c.Trigger != policy.TriggerRefusal {
		p.took, p.meant = 0.9*p.took+float64(c.Duration), 0.9*p.meant+float64(p.told)
	}
	if p.startRoom > 0 {
		p.note(p.startKeys, func(x *known) { x.kept = max(0, p.startTotal-p.freed) })
	}
	p.startRoom = 0
}

// A reader follows the pacer, and holds the page to each of its decisions.
type reader struct {
	policy.Policy
	page           page
	points, starts int
	t              *testing.T
}

func (r *reader) Decide(at policy.Point) policy.Decision {
	got, want := r.page.Decide(at), r.Policy.Decide(at)
	r.points++
	if want.Action != policy.Skip {
		r.starts++
	}
	if (got.Action != want.Action || got.Wake != want.Wake) && !r.t.Failed() {
		r.t.Errorf("point %d, %+v: the page says %v, wake %d; the pacer %v, wake %d (%s)", r.points, at, got.Action, got.Wake, want.Action, want.Wake, want.Reason)
	}
	return want
}

func (r *reader) Observe(c policy.Cycle) {
	r.page.Observe(c)
	r.Policy.Observe(c)
}

// TestPage: who knows nothing of pacer but its page makes the same decisions at the same moments, on the eleven
// recordings. Limits are told too high for one of them, so that something is refused that should fit.
func TestPage(t *testing.T) {
	names := samples.Names()
	if testing.Short() {
		names = []string{"mlp", "burst"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			program, err := samples.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			loads, err := compile([]*trace.Trace{program})
			if err != nil {
				t.Fatal(err)
			}
			for _, cfg := range []sim.Config{
				{Limit: loads[0].PeakReachable * 3 / 2, Cost: sim.Fixed(time.Millisecond)},
				{Limit: loads[0].PeakReachable * 5 / 4, Cost: sim.Cost{Base: 10 * time.Millisecond, Slowdown: 0.25}, Told: sim.Told{Limit: 1.05, Cost: 0.5}},
			} {
				cfg.Ladder.Factor = 2
				r := &reader{Policy: policy.MustParse("pacer").New(), t: t}
				sim.Run(loads[0], r, cfg)
				if r.starts < 3 {
					t.Errorf("%d cycles started at %d points", r.starts, r.points)
				}
			}
		})
	}
}
