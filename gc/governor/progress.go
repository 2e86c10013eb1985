package governor

import (
	"math"
	"time"
)

// A progress learns how much cycles slow the program. It compares the bytes that the program
// allocates beside a cycle with those that it allocates before and after. It compares neighbouring
// times, because the rate of a program changes with its phases. Counting goroutines that wait
// would not work for a program whose threads belong to C.
type progress struct {
	seen  moment      // reading at the last call
	free  moment      // seen, without the time and the bytes beside cycles
	ring  [128]moment // earlier values of free
	next  int         // number of the next entry of ring
	cycle besideCycle // the last cycle, until it is compared

	request int64         // bytes of the largest request of late
	waited  time.Duration // expected lengths of all waits so far
	apart   float64       // bytes expected beside cycles: decaying sum
	loss    float64       // missing bytes: decaying sum
	uneven  float64       // bytes by which times without a cycle differ from each other: decaying sum
	cycles  float64
}

// A moment is a time, and the bytes allocated until then.
type moment struct {
	at    time.Duration
	bytes int64
}

// A besideCycle is the time that passed and the bytes that were allocated beside a cycle.
type besideCycle struct {
	moment               // time and bytes beside the cycle
	from   time.Duration // its start, on the clock of free
}

const (
	keepProgress  = 0.95 // decay per cycle: the last twenty count
	leastCycles   = 3    // slowdown is 0 before that many cycles
	leastRequests = 4    // of the largest size, in the time of a cycle
	mostSlowdown  = 8
	apartTimes    = 3  // lengths of the cycle that are compared before it, and after it
	spacing       = 16 // entries of the ring per length of a cycle
)

// note takes a reading while no cycle is under way. A cycle is expected to take so long.
func (p *progress) note(now moment, cycle time.Duration) {
	now = p.work(now)
	p.free.at += now.at - p.seen.at
	p.free.bytes += now.bytes - p.seen.bytes
	p.seen = now
	if p.next == 0 || p.free.at-p.last(0).at >= cycle/spacing {
		p.ring[p.next%len(p.ring)] = p.free
		p.next++
	}
	if c := &p.cycle; c.at > 0 && p.free.at >= c.from+(1+apartTimes)*c.at {
		p.compare()
	}
}

// work returns now on a clock that stands still during waits.
func (p *progress) work(now moment) moment {
	now.at = max(p.seen.at, now.at-p.waited)
	return now
}

// last returns the nth value of the ring, counted back from the newest, which is 0.
func (p *progress) last(n int) moment { return p.ring[(p.next-1-n)%len(p.ring)] }

// ended reports that the cycle under way has settled. Held is the part of its time for which
// callers were held.
func (p *progress) ended(now moment, held time.Duration) {
	if p.cycle.at > 0 {
		p.compare() // the next cycle came soon, so compare this one now
	}
	now = p.work(now)
	length := now.at - p.seen.at
	if free := length - held; free >= length/4 && free > 0 {
		p.cycle = besideCycle{moment{free, now.bytes - p.seen.bytes}, p.free.at}
	}
	p.seen = now
}

// compare learns from the last cycle. It also counts a time as long as the cycle after its end.
// Sweeping and releases then go on, and a program whose device has worked on meanwhile catches up.
func (p *progress) compare() {
	c := p.cycle
	p.cycle = besideCycle{}
	var m [2*apartTimes + 2]moment // at the start of the cycle, and at whole lengths of it before and after
	for i := range m {
		m[i] = p.at(c.from + time.Duration(i-apartTimes)*c.at)
	}
	lo, begin, end, hi := m[0], m[apartTimes], m[apartTimes+1], m[len(m)-1]
	length := begin.at - lo.at + hi.at - end.at
	if 2*length < c.at {
		return // too little is known
	}
	rate := float64(begin.bytes-lo.bytes+hi.bytes-end.bytes) / float64(length)
	expected := rate * float64(c.at)
	if expected < leastRequests*float64(p.request) {
		return // chance decides whether a request falls into the cycle
	}
	loss := expected + rate*float64(end.at-begin.at) - float64(c.bytes+end.bytes-begin.bytes)
	p.apart = keepProgress*p.apart + expected
	p.loss = keepProgress*p.loss + loss
	p.uneven = keepProgress*p.uneven + unevenness(m[:], c.at, rate)
	p.cycles = keepProgress*p.cycles + 1
}

// unevenness returns the mean difference between the bytes that were allocated in twice the length
// of a cycle and those that rate gives. Moments lie a length apart, half of them before the cycle.
func unevenness(m []moment, length time.Duration, rate float64) (bytes float64) {
	n := 0.0
	for i := range len(m) - 2 {
		besideIt := i == apartTimes-1 || i == apartTimes
		if d := m[i+2].at - m[i].at; d >= length && !besideIt {
			n++
			bytes += math.Abs(float64(m[i+2].bytes-m[i].bytes)/float64(d)-rate) * float64(2*length)
		}
	}
	return bytes / max(1, n)
}

// at returns the moment at time t on the clock of free, or the nearest known one.
func (p *progress) at(t time.Duration) moment {
	later := p.free
	for n := range min(p.next, len(p.ring)) {
		m := p.last(n)
		if m.at <= t {
			if later.at > t && later.at > m.at {
				m.bytes += int64(float64(later.bytes-m.bytes) * float64(t-m.at) / float64(later.at-m.at))
				m.at = t
			}
			if t >= p.free.at {
				m = p.free
			}
			return m
		}
		later = m
	}
	return later
}

// slowdown returns how much longer the program takes beside a cycle, as a share of the time
// without one. A program allocates in bursts, and its cycles may all begin at the same place of a
// burst. So a loss that is no larger than the unevenness counts as none, and a larger one is
// reduced.
func (p *progress) slowdown() float64 {
	if p.cycles < leastCycles || p.loss <= 0 {
		return 0
	}
	loss := max(0, p.loss-p.uneven*p.uneven/p.loss)
	return min(p.apart/max(p.apart-loss, p.apart/(1+mostSlowdown))-1, mostSlowdown)
}
