package main

import (
	"math/rand/v2"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

// A qTable is the table of a Q-learner: the expected rewards of waiting and of collecting, for each
// state. A state is pressure, growth since the last cycle, and the wait of the caller.
//
// Source: Cen, Marcus, Mao, Gottschlich, Alizadeh and Kraska, "Learned Garbage Collection", MAPL
// 2020.
type qTable [10 * 6 * 3][2]float64

const (
	qRate     = 0.1
	qDiscount = 0.99
)

// A qLearner is the policy of a table. It explores, and updates the table, while lot is not nil.
type qLearner struct {
	table *qTable
	lot   *rand.Rand

	state, action int
	reward        float64 // since that action, in cycles
	begun         bool
}

func (p *qLearner) Decide(at policy.Point) policy.Decision {
	limit := float64(at.Sample.Limit)
	if limit == 0 {
		return policy.Decision{}
	}
	live := float64(at.Sample.Live+at.Request) / limit
	switch {
	case live > 1:
		p.reward-- // held for a whole cycle
		return policy.Decision{Action: policy.Block, Reason: "no headroom left"}
	case at.Running:
		return policy.Decision{Wake: at.Sample.Limit + 1}
	}
	grown := float64(at.Sample.Live+at.Request-at.LiveAfter) / max(1, limit-float64(at.LiveAfter))
	wait := 0
	if at.Wait > 0 {
		wait++
	}
	if at.Wait >= at.Cost {
		wait++
	}
	state := (int(9.999*max(0, live))*6+int(5.999*max(0, min(1, grown))))*3 + wait
	q := &p.table[state]
	action := 0
	if q[1] > q[0] {
		action = 1
	}
	if p.lot != nil {
		if p.begun {
			old := &p.table[p.state][p.action]
			*old += qRate * (p.reward + qDiscount*max(q[0], q[1]) - *old)
		}
		if p.lot.Float64() < 0.05 {
			action = p.lot.IntN(2)
		}
	}
	p.state, p.action, p.begun = state, action, true
	p.reward = -sim.CPUPrice * float64(action)
	if action == 1 {
		return policy.Decision{Action: policy.Overlap, Reason: "learned"}
	}
	return policy.Decision{Wake: at.Sample.Live + at.Request + at.Sample.Limit>>7}
}

func (p *qLearner) Observe(c policy.Cycle) {
	if c.Trigger == policy.TriggerRefusal {
		p.reward -= float64(c.Exposed) / float64(max(time.Microsecond, c.Duration))
	}
}

func (p *qLearner) String() string { return "q-learner" }

// learn trains a table on cells, over and over in random order.
func learn(cells []searchCell, episodes int, seed uint64) *qTable {
	lot := rand.New(rand.NewPCG(seed, seed))
	table := new(qTable)
	for range episodes {
		for _, i := range lot.Perm(len(cells)) {
			cells[i].run(&qLearner{table: table, lot: lot})
		}
	}
	return table
}
