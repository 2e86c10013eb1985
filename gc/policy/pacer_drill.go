package policy

import (
	"math"
	"slices"
)

// A practice finds out how early to start, by drills. A drill is an end of headroom
// that does not exist: a total at which memory is taken to run out. For every trigger
// it notes where that would have started a cycle; once the total is reached, it is
// known how long that cycle would have held the program, and how many bytes early it was.
// So a start is judged by what the program has really done since, some hundred
// times where real cycles are few.
//
// A trigger is a guess and a margin: it starts a cycle once room is less than the
// guess, which changes with what the program does, and a margin, which does not.
type practice struct {
	drills  [drills]drill
	walls   [drills]int64            // totals at which they are
	nearest int64                    // of those
	trips   [guesses][drills]float64 // total and guess at which the next margin starts a cycle; of planned the total alone
	soon    [guesses]float64         // the least of them
	plans   [drills + 1]plan         // of each drill, and of the headroom that there is
	scores  [guesses][margins]score
	begun   bool
	draw    uint64 // pseudo-random

	weight float64 // of the next drill in scores
	sum    float64 // of the weights

	guess, margin int     // the trigger of the least cost
	plain         int     // the margin of the least cost without a guess
	cost          float64 // ns that the trigger of the least cost costs on average
	learned       int     // drills since these were chosen

	futile float64 // share of cycles which came too late that a refusal followed all the same
}

const (
	drills     = 6
	margins    = 7          // 0, and limit/64 times powers of 2 up to limit/2
	keepScore  = 1 - 1./200 // for each drill: the last 33 headrooms count most
	keepFutile = 0.9        // for each late cycle
	refused    = 4          // cycles that a refusal costs: twice the ladder of two, since it may fail
	halfway    = 0.5        // of the room: see [pacer.choose]
	fruitful   = 0.2        // of the room: what a cycle frees that starts early, as far as is known
	worthwhile = 0.01       // of a cycle: what starts that are early save, or there are none
)

// marginOf are the margins as shares of the budget, largest first; the one after the last never starts a cycle.
var marginOf = func() (m [margins + 1]float64) {
	x := 1. / 64
	for i := margins - 2; i >= 0; i-- {
		m[i] = x
		x *= 2
	}
	m[margins] = math.Inf(-1)
	return m
}()

// A drill is one end of headroom that does not exist.
type drill struct {
	next  int64                    // where headroom would end after the chosen trigger's cycle; 0 = that has not started
	due   [guesses]int             // number of margins that have started a cycle
	start [guesses][margins]moment // where
}

// A score is what a trigger has cost in drills, the newest ones counting most.
type score struct {
	hidden float64 // cycles by which the program was held and slowed for less than one
	early  float64 // bytes of room at the start
	late   float64 // drills at which the cycle was still under way
}

// A scene is a moment, as drills see it.
type scene struct {
	now       moment
	top       int64             // total once the request is granted
	guess     *[guesses]float64 // bytes
	g, slow   float64           // ns of a cycle; how it slows the program
	budget    int64
	headroom  int64 // that a cycle leaves
	reachable int64 // bytes that a cycle keeps which starts now
}

// see brings every drill to a moment.
func (p *practice) see(s *scene) {
	if !p.begun { // the first ones are there before memory is full
		p.begun, p.weight, p.margin, p.plain = true, 1, margins-1, margins-1
		for i := range p.drills {
			p.set(i, s.top+s.budget/2*int64(i+1)/drills, s)
		}
	}
	if s.top > p.nearest {
		for i := range p.walls {
			if s.top > p.walls[i] {
				p.learn(i, s)
				p.move(i, s)
			}
		}
		p.nearest = slices.Min(p.walls[:])
	}
	top := float64(s.top)
	for k := range p.soon {
		guess := s.guess[k]
		if k == planned { // it is each drill's own
			guess = 0
		}
		if top+guess > p.soon[k] {
			p.start(k, top+guess, s)
		}
	}
}

// start notes the cycles that a guess starts in drills.
func (p *practice) start(k int, top float64, s *scene) {
	now, budget, soon := s.now, float64(s.budget), math.Inf(1)
	trips := &p.trips[k]
	for i, trip := range trips {
		if top > trip {
			d, end := &p.drills[i], p.end(k, i)
			due, starts := d.due[k], &d.start[k]
			for top > trip {
				starts[due] = now
				due++
				trip = end - marginOf[due]*budget
			}
			if k == p.guess && d.due[k] <= p.margin && p.margin < due {
				d.next = s.now.total - s.reachable + s.budget
			}
			d.due[k], trips[i] = due, trip
		}
		soon = min(soon, trip)
	}
	p.soon[k] = soon
}

// end is where a guess starts a cycle in drill i without a margin.
func (p *practice) end(k, i int) float64 {
	end := float64(p.walls[i])
	if k == planned {
		end -= p.plans[i].lead
	}
	return end
}

// set begins drill i.
func (p *practice) set(i int, wall int64, s *scene) {
	d := &p.drills[i]
	d.next, d.due = 0, [guesses]int{}
	p.walls[i] = wall
	for k := range p.trips {
		p.trips[k][i] = p.end(k, i) - marginOf[0]*float64(s.budget)
		p.soon[k] = min(p.soon[k], p.trips[k][i])
	}
}

// follow goes by another plan in drill i from now on.
func (p *practice) follow(i int, x plan) {
	p.trips[planned][i] += p.plans[i].lead - x.lead
	p.soon[planned] = min(p.soon[planned], p.trips[planned][i])
	p.plans[i] = x
}

// move begins drill i anew. Every other one goes to where headroom would end after the
// chosen trigger's cycle, so that places count as often as they come in fact:
// in a program of few large requests it always ends at the same one. The rest go on by about
// a headroom, so that every place is tried.
func (p *practice) move(i int, s *scene) {
	was, wall := p.walls[i], p.drills[i].next
	if i%2 == 0 {
		wall = was + int64((0.75+0.5*p.random())*float64(s.headroom))
	} else if wall == 0 { // nothing had started: a cycle starts here
		wall = s.now.total - s.reachable + s.budget
	}
	if wall <= was || wall < s.top { // a request larger than all of that
		wall = s.top + int64(p.random()*float64(s.headroom))
	}
	p.set(i, wall, s)
}

// learn scores every trigger: headroom of the drill ends here.
func (p *practice) learn(i int, s *scene) {
	d := &p.drills[i]
	p.learned++
	p.weight /= keepScore
	p.sum += p.weight
	w, cycle := p.weight, 1/max(1, s.g)
	for k := range p.scores {
		for m := range d.due[k] {
			x, q := &d.start[k][m], &p.scores[k][m]
			passed, waited := float64(s.now.time-x.time), float64(s.now.waited-x.waited)
			ran := beside(passed, waited, s.slow) * cycle
			lost := ran - passed*cycle
			q.early += w * float64(p.walls[i]-x.total)
			switch {
			case ran < 1:
				q.hidden += w * (ran - lost)
				q.late += w
			case lost > 0:
				q.hidden += w * (1 - lost/ran)
			default:
				q.hidden += w
			}
		}
	}
	if w > 1e9 {
		p.rescale()
	}
}

func (p *practice) rescale() {
	for k := range p.scores {
		for m := range p.scores[k] {
			q := &p.scores[k][m]
			*q = score{q.hidden / p.weight, q.early / p.weight, q.late / p.weight}
		}
	}
	p.sum /= p.weight
	p.weight = 1
}

// choose takes the trigger of the least cost: what it does not hide, and the bytes that it
// gives up, at their price in ns. Of equal ones it takes the latest, and the one without a guess.
func (p *practice) choose(g, price float64) {
	p.learned = 0
	cost := func(k, m int) float64 {
		q := &p.scores[k][m]
		return (refused*p.futile*q.late-q.hidden)*g + price*q.early
	}
	least := cost(p.guess, p.margin) // mostly it stays
	for k := guesses - 1; k >= 0; k-- {
		for m := range margins {
			if c := cost(k, m); c <= least {
				least, p.guess, p.margin = c, k, m
			}
		}
	}
	if c := cost(noGuess, margins-1) - worthwhile*g*p.sum; c <= least { // never early
		least, p.guess, p.margin = c, noGuess, margins-1
	}
	for m := range margins {
		if cost(noGuess, m) <= cost(noGuess, p.plain) {
			p.plain = m
		}
	}
	p.cost = g + least/max(1, p.sum)
}

// due reports whether a cycle starts where there is so much room.
func (p *practice) due(room float64, guess *[guesses]float64, budget int64) bool {
	return room < guess[p.guess]+marginOf[p.margin]*float64(budget)
}

// refuse learns whether a refusal followed a cycle that came too late.
func (p *practice) refuse(yes bool) {
	p.futile *= keepFutile
	if yes {
		p.futile += 1 - keepFutile
	}
}

// random draws from 0 to 1: a linear congruential generator with Knuth's constants for 64 bits.
func (p *practice) random() float64 {
	p.draw = p.draw*6364136223846793005 + 1442695040888963407
	return float64(p.draw>>40) / (1 << 24)
}
