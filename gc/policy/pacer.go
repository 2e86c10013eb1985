package policy

import (
	"math"
	"math/bits"
	"time"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// pacer starts cycles beside the program, just early enough that each ends before headroom does.
// It is this project's own rule, and the default for a device. POLICIES.md derives it: a cycle
// starts once the room is less than a guess plus a margin. The room is the headroom less the
// request. The guess is the number of bytes that the program is about to allocate. It covers the
// time until a cycle could end that starts at the next opportunity: see [forecast]. [starts] finds
// the guess and the margin that cost least. The zero value takes collector time to be free. State
// is bounded, about 200 KiB.
type pacer struct {
	Share float64 // price of collector time, in seconds of pause per second

	asleep int64         // Decide skips allocations until this many bytes are live
	freed  int64         // bytes that all cycles have freed
	held   time.Duration // sum of the exposed pauses
	lost   float64       // that, and the time lost beside cycles, in ns
	now    moment        // position of the program at the last point
	slow   float64       // slowdown beside a cycle, as told there
	last   lastStart     // start of the policy's last cycle

	rate          allocRate
	length        correction
	observedLimit observedLimit
	worth         byteWorth
	forecast      forecast
	starts        starts
	guess         [guesses]float64 // bytes
	followed      float64          // bytes that followed the last time
}

// A lastStart is the position at which the policy's last cycle started.
type lastStart struct {
	total, room, end int64 // total; room, 0 once the cycle has ended; total at which headroom ended
	keys             keys
	lost             float64 // pacer.lost
	guess            int     // that it followed
	hides            float64 // part of the cycle that this was to hide; 0 if it followed none
}

const (
	// The kinds of guesses.
	noGuess    = iota
	mostLately // the most bytes that followed lately; no start while a byte of headroom lasts for less than its worth
	whileSlow  // 0; the same holds
	orWait     // 0; at a wait, the room below which hiding a cycle in the wait pays
	lastOrWait // the bytes that followed the last time, or orWait if that is more
	guesses
)

const (
	halfway  = 0.5  // of the room: no start before so many bytes have come since the last one
	fruitful = 0.25 // of the bytes that cycles free on average: no start at a place where a cycle has freed fewer
)

func (p *pacer) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Share, "share", 0.05, param.Number(0, 1), "price of a second of collector time, in seconds of pause"),
	}
}

func (p *pacer) Decide(at Point) Decision {
	if at.At == Allocation && granted(&at) < p.asleep {
		return Decision{Wake: p.asleep, Reason: "asleep"}
	}
	told, budget := at.Sample.Limit, p.observedLimit.of(at.Sample.Live, at.Sample.Limit)
	p.length.told, at.Cost = at.Cost, p.length.of(at.Cost)
	p.move(&at)
	p.rate.see(p.now, at.Request, at.Cost)
	if budget <= 0 {
		h := p.rate.headroom(at.work(), v8Price)
		budget = min(at.LiveAfter, math.MaxInt64-1-h) + h
	}
	grain := int64(1) << bits.Len64(uint64(budget>>10))
	p.asleep = min(min(at.Sample.Live, math.MaxInt64-grain)+grain, min(budget, math.MaxInt64-1)+1)
	p.learn(&at, budget, grain)
	d, hides := Decision{Wake: p.asleep}, 0.
	switch {
	case at.Running:
		d.Reason = "cycle under way"
	case told > 0 && granted(&at) > told:
		d.Action, d.Reason = Block, "no headroom left"
	case granted(&at) > budget:
		d.Action, d.Reason = Overlap, "headroom used up"
	default:
		d.Action, d.Reason = p.choose(&at, budget)
		hides = p.starts.hides()
	}
	if d.Action != Skip {
		p.starts.settle(p.last.guess, p.last.hides, 1-(p.lost-p.last.lost)/float64(max(1, at.Cost)))
		p.last = lastStart{p.now.total, max(0, budget-granted(&at)), p.freed + budget, p.forecast.here, p.lost, p.starts.guess, hides}
	}
	return d
}

// move notes the position of the program, and the slowdown there. Time includes waits, but not pauses.
func (p *pacer) move(at *Point) {
	p.now = moment{max(p.now.time, at.Now-p.held), at.Sample.Live + p.freed}
	p.slow = at.Slowdown
}

// learn updates the guesses and the score of starts at a point.
func (p *pacer) learn(at *Point, budget, grain int64) {
	worth := p.worth.of(p.Share*float64(at.Cost)+p.starts.cost, budget)
	if p.forecast.see(p.now, at, grain) {
		x := p.forecast.recall()
		p.followed, p.guess[mostLately], p.guess[whileSlow] = float64(x.last), float64(x.most), 0
		if p.starts.pace(p.now) < worth {
			p.guess[mostLately] -= float64(budget)
			p.guess[whileSlow] -= float64(budget)
		}
	}
	wait := 0.
	if at.At == Sync && at.Wait > 0 { // the hidden part of a cycle, in bytes
		saved := p.starts.cost - float64(max(0, at.Cost-at.Wait))
		wait = float64(min(toBytes(saved/worth), budget))
	}
	p.guess[orWait], p.guess[lastOrWait] = wait, max(wait, p.followed)
	p.starts.see(&view{
		now: p.now, top: p.now.total + at.Request, guess: p.guess[:], g: float64(at.Cost), slow: at.Slowdown,
		worth: worth, budget: budget, headroom: max(1, budget-at.LiveAfter), ends: [2]int64{p.freed + budget, p.last.end},
	})
}

// choose decides when no cycle is under way and the request fits.
func (p *pacer) choose(at *Point, budget int64) (Action, string) {
	room := float64(budget - granted(at))
	if room >= p.starts.room(p.guess[:]) {
		return Skip, "headroom lasts"
	}
	if float64(p.now.total+at.Request-p.last.total) < halfway*room {
		return Skip, "a cycle would free too little"
	}
	if x := p.forecast.recall(); x.kept >= 0 && float64(at.Sample.Live-x.kept) < fruitful*(p.worth.got/p.worth.cycles) {
		return Skip, "a cycle freed too little here"
	}
	switch {
	case p.starts.guess >= orWait && at.At == Sync && at.Wait > 0:
		return Overlap, "the wait hides what the headroom is worth"
	case p.guess[p.starts.guess] == 0:
		return Overlap, "headroom may not outlast a cycle"
	}
	return Overlap, "foreseen: headroom does not outlast a cycle"
}

// Observe learns the cost and the yield of a cycle.
func (p *pacer) Observe(c Cycle) {
	p.freed += c.Freed
	p.held += c.Exposed
	p.asleep = 0
	p.observedLimit.learn(c)
	if c.Trigger == TriggerNatural {
		return
	}
	lost := float64(c.Exposed) + float64(c.Duration-c.Exposed)*p.slow/(1+p.slow)
	p.lost += lost
	p.worth.learn(lost+p.Share*float64(c.Duration), float64(c.Freed), float64(p.last.room))
	if c.Trigger != TriggerRefusal {
		p.length.learn(c.Duration)
	}
	if p.last.room > 0 {
		p.forecast.visit(&p.last.keys, func(x *situation) { x.kept = max(0, p.last.total-p.freed) })
	}
	p.last.room = 0
}

func (p *pacer) String() string { return param.Text("pacer", p.Params()) }

// A correction learns by which factor cycles take longer than the policy is told.
type correction struct {
	told        time.Duration // expected length at the last decision
	took, meant float64       // real and expected lengths: decaying sums, ns
}

const keepLength = 0.9 // decay per cycle: the last ten count

// of corrects the expected length of a cycle.
func (s *correction) of(told time.Duration) time.Duration {
	if s.meant <= 0 {
		return told
	}
	return time.Duration(float64(told) * min(max(s.took/s.meant, 0.25), 4))
}

func (s *correction) learn(took time.Duration) {
	s.took = keepLength*s.took + float64(took)
	s.meant = keepLength*s.meant + float64(s.told)
}

// An observedLimit is the level at which memory really ends. That may be below the limit, because
// of fragments, other processes and a library's own memory. The most bytes that were granted are
// then the limit to go by. After keep cycles in which memory has not ended, the told limit counts
// again. Each time that this proves wrong, keep grows.
type observedLimit struct {
	granted int64 // most live bytes since memory last ended
	cycles  int   // since memory last ended
	keep    int   // cycles until the told limit counts again; 0 if memory has never ended
}

const (
	observedKeep = 256
	observedMore = 4 // factor by which keep grows
)

// of notes the live bytes, and returns the limit to go by.
func (c *observedLimit) of(live, told int64) int64 {
	c.granted = max(c.granted, live)
	if c.cycles >= c.keep {
		return told
	}
	return min(told, c.granted)
}

// learn takes a finished cycle. Memory has ended if a request did not fit although the limit had
// room for it.
func (c *observedLimit) learn(done Cycle) {
	if done.Wanted <= 0 || done.Wanted > done.Limit {
		c.cycles++
		return
	}
	if live := done.LiveAfter + done.Freed; live > c.granted || done.Wanted <= c.granted {
		c.granted = live
	}
	if c.keep == 0 {
		c.keep = observedKeep
	} else if c.cycles >= c.keep {
		c.keep *= observedMore
	}
	c.cycles = 0
}

// A byteWorth is the cost of freed bytes so far: decaying sums over cycles.
type byteWorth struct {
	paid   float64 // ns
	got    float64 // bytes freed
	early  float64 // bytes of room at the starts of cycles, which later starts would have freed
	cycles float64
}

const keepWorth = 0.85 // decay per cycle: the last seven count

func (p *byteWorth) learn(paid, got, early float64) {
	p.paid = keepWorth*p.paid + paid
	p.got = keepWorth*p.got + got
	p.early = keepWorth*p.early + early
	p.cycles = keepWorth*p.cycles + 1
}

// of returns the worth of a byte, in ns. Scored is the score of a cycle, in ns. The worth is the
// geometric mean of the measured cost and the score. The measured cost feeds on itself: dear bytes
// make starts late, and late starts make bytes dear. Before the first cycle only the score counts,
// and a cycle is taken to free the whole budget.
func (p *byteWorth) of(scored float64, budget int64) float64 {
	if p.got <= 0 {
		return scored / float64(max(1, budget))
	}
	return math.Sqrt(p.paid / p.got * scored * p.cycles / (p.got + p.early))
}
