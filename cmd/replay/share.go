package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
	"github.com/eagergc/eagergc/sim/fleet"
)

func newShare() *cobra.Command {
	var s shareSetting
	cmd := &cobra.Command{
		Use:   "share [FILE...]",
		Short: "Run recordings as processes of one machine that share its memory",
		Long: `share replays all recordings at once, as processes of one machine whose limits
together are a budget, and compares rules that divide it:

  fixed         equal shares for ever, as limits of containers are
  peak          shares for ever, by peaks that nobody knows beforehand
  proportional  by what each process needs now
  sqrt          what each needs now, and the rest by the square root of its rate of
                growth x the cost of its cycle (MemBalancer, OOPSLA 2022)

A budget is a number of bytes, or a factor of the sum of all peaks of reachable bytes.
A share is a goal: a process for which it is too small even after a collection goes
over it. Saved is how much smaller the budget of sqrt may be than that of another
rule, for the same collector time, if all processes together keep to it. Each process has a cost of a cycle of its own, drawn from --cycle and the seed.`,
		Example: `  replay share
  replay share a.arrows b.arrows c.arrows --budgets 1.25x,2x --policies never,pacer --every 1s`,
		ValidArgsFunction: completeTraces,
		RunE:              func(cmd *cobra.Command, files []string) error { return s.run(cmd, files) },
	}
	f := cmd.Flags()
	s.manyPolicies(cmd, "never,sqrt,pacer")
	f.StringVar(&s.budgets, "budgets", "1.25x,1.5x,2x", "`list` of budgets: bytes, or factors of the sum of all peaks of reachable bytes")
	f.DurationVar(&s.every, "every", time.Second, "`time` between two looks of a rule")
	f.DurationVar(&s.cycle, "cycle", 10*time.Millisecond, "how long a cycle takes about: each process draws between a third and three times this `duration`")
	f.Uint64Var(&s.seed, "seed", 1, "`number` from which these are drawn")
	return cmd
}

type shareSetting struct {
	setting
	budgets string
	every   time.Duration
	cycle   time.Duration
	seed    uint64
}

func (s *shareSetting) run(cmd *cobra.Command, files []string) error {
	if s.every <= 0 || s.cycle < 0 {
		return errors.New("share: want --every above 0 and --cycle not below")
	}
	text, err := s.expanded(&s.policies)
	if err != nil {
		return err
	}
	loads, err := loadWorkloads(files)
	if err != nil {
		return err
	}
	all, peaks := s.neighbours(loads)
	head := []string{"", ""}
	for _, r := range fleet.Rules() {
		head = append(head, r.Name, left)
	}
	t := table{append(head, "saved against fixed", "against peak")}
	for _, policy := range gc.SplitList(text) {
		spec, err := gc.Parse(policy)
		if err != nil {
			return err
		}
		for _, b := range strings.Split(s.budgets, ",") {
			limit, err := experiment.ParseLimit(strings.TrimSpace(b))
			if err != nil {
				return err
			}
			budget := limit.Bytes
			if limit.Factor > 0 {
				budget = int64(limit.Factor * float64(peaks))
			}
			m := &fleet.Machine{Budget: budget, Every: s.every, Policy: spec.New, Ladder: sim.Ladder{Factor: 2}}
			t = append(t, append([]string{policyName(spec.String()), limit.String()}, shareRow(m, all)...))
		}
	}
	out := newPrinter(cmd.OutOrStdout())
	fmt.Fprintf(out, "%d processes of one machine, %s reachable at most if each is at its peak.\n", len(all), formatBytes(peaks))
	fmt.Fprintf(out, "Time lost: (exposed pause + %v x collector time) / recorded time, of all;\nand the most bytes of all processes, against the budget.\n\n", sim.CPUPrice)
	t.print(out)
	return out.err
}

// neighbours are the processes, and the sum of their peaks.
func (s *shareSetting) neighbours(loads []*sim.Workload) (all []fleet.Neighbour, peaks int64) {
	r := rand.New(rand.NewPCG(s.seed, 3))
	for _, w := range loads {
		cycle := float64(s.cycle) * math.Pow(3, 2*r.Float64()-1)
		all = append(all, fleet.Neighbour{Workload: w, Cost: sim.Fixed(time.Duration(cycle))})
		peaks += w.PeakReachable
	}
	return all, peaks
}

// shareRow has what is lost under each rule, and what the last one saves.
func shareRow(m *fleet.Machine, all []fleet.Neighbour) (row []string) {
	ran := make(map[string]fleet.Shared)
	for _, rule := range fleet.Rules() {
		m.Rule = rule
		r := m.Run(all)
		ran[rule.Name] = r
		row = append(row, formatPercent(r.Lost), left+fmt.Sprintf("%3.0f%%", 100*float64(r.MostLive)/float64(m.Budget)))
	}
	for _, name := range []string{"fixed", "peak"} {
		row = append(row, formatPercent(1-float64(m.Needs(all, ran[name]))/float64(m.Budget)))
	}
	return row
}
