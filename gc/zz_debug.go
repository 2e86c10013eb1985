package gc

import "fmt"

var Debug func(string)

func (p *Pacer) debug(now moment, at Point, budget int64, price float64) {
	if Debug != nil {
		Debug(fmt.Sprintf("t=%.2f room=%.0f%% wall+%.2fms early=%.2f lag=%d run=%d most=%.0f%% doubt=%.2f price*room/g=%.3f", float64(now.time)/1e6, 100*float64(budget-granted(at))/float64(budget), float64(p.plan.wall-now.time)/1e6, p.error.early/1e6, p.past.head-1-p.past.match, p.past.run, 100*p.burst.most/float64(budget), p.doubt.mean, price*float64(budget-granted(at))/float64(at.Cost)))
	}
}
