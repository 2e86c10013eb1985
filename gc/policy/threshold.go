package policy

// threshold blocks for a cycle at every allocation and sync point that finds
// pressure at Ratio or above. It takes no account of what earlier cycles freed: a
// program whose reachable bytes stay above Ratio collects all the time. It never
// collects without a limit, and the zero value never does.
type threshold struct {
	blocking
	Ratio float64 // 0..1
}

func (p *threshold) params() []Param {
	return []Param{headline(bind(&p.Ratio, "ratio", 0.8, numberKind(0, 1), "pressure (live / limit) that starts a cycle; 0 never does")), p.overlapParam()}
}

// Decide compares live bytes with Ratio x limit.
func (p *threshold) Decide(at Point) Decision {
	trigger := toBytes(p.Ratio * float64(at.Sample.Limit))
	if trigger <= 0 {
		return Decision{Reason: "no limit"}
	}
	if at.Sample.Live < trigger {
		return Decision{Wake: trigger, Reason: "below threshold"}
	}
	return Decision{Action: p.action(at), Reason: "threshold"}
}

func (p *threshold) Observe(Cycle) {}

func (p *threshold) String() string { return textOf("threshold", p.params()) }
