package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
)

// A Plan is what a fleet is asked. Its cells are the product of its limits, cycles
// and policies. It is data: its JSON form goes to other machines.
type Plan struct {
	Policies []string        `json:"policies"`  // text forms that sim.ParseContender reads
	Limits   []string        `json:"limits"`    // that experiment.ParseLimit reads
	Cycles   []time.Duration `json:"cycles_ns"` // costs of a cycle
	Ladder   string          `json:"ladder"`    // that sim.ParseLadder reads
	Machine  *sim.Machine    `json:"machine,omitempty"`
	Seed     uint64          `json:"seed,omitempty"` // of the machine's noise
}

// PlanOf returns the plan with the settings of a grid, whose workloads do not count. It
// is an error if a cost is not the same for all cycles, unless there is a machine.
func PlanOf(g *experiment.Grid) (Plan, error) {
	p := Plan{Ladder: g.Ladder.String(), Machine: g.Machine}
	if g.Machine != nil {
		p.Seed = g.Seed
	}
	for _, c := range g.Contenders {
		p.Policies = append(p.Policies, c.String())
	}
	for _, l := range g.Limits {
		p.Limits = append(p.Limits, l.String())
	}
	for _, c := range g.Costs {
		d, ok := experiment.FixedCycle(c)
		if !ok {
			return Plan{}, fmt.Errorf("fleet: the cost %+v is not fixed", c)
		}
		p.Cycles = append(p.Cycles, d)
	}
	return p, nil
}

// ID names the plan: equal plans have equal IDs.
func (p *Plan) ID() string { return digest(p) }

// digest is a name made of the JSON form of a value: 128 bits in hexadecimal.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// grid reads the plan.
func (p *Plan) grid() (*experiment.Grid, error) {
	g := new(experiment.Grid)
	for _, text := range p.Policies {
		c, err := sim.ParseContender(text)
		if err != nil {
			return nil, fmt.Errorf("fleet: %w", err)
		}
		g.Contenders = append(g.Contenders, c)
	}
	for _, text := range p.Limits {
		l, err := experiment.ParseLimit(text)
		if err != nil {
			return nil, fmt.Errorf("fleet: %w", err)
		}
		g.Limits = append(g.Limits, l)
	}
	for _, d := range p.Cycles {
		if d < 0 {
			return nil, fmt.Errorf("fleet: a cycle of %v", d)
		}
		g.Costs = append(g.Costs, sim.Fixed(d))
	}
	ladder, err := sim.ParseLadder(p.Ladder)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	g.Ladder = ladder
	if len(g.Contenders)*len(g.Limits)*len(g.Costs) == 0 {
		return nil, fmt.Errorf("fleet: a plan needs policies, limits and cycles")
	}
	g.Machine, g.Seed = p.Machine, p.Seed
	return g, nil
}

// A Cell is one combination of a plan, by its texts.
type Cell struct {
	Policy, Limit string
	Cycle         time.Duration
}

// Cells lists the cells of the plan: by limit, then cycle, then policy.
func (p *Plan) Cells() []Cell {
	var all []Cell
	for _, l := range p.Limits {
		for _, c := range p.Cycles {
			for _, who := range p.Policies {
				all = append(all, Cell{who, l, c})
			}
		}
	}
	return all
}
