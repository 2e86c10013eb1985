package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
)

func newGate() *cobra.Command {
	var (
		policy, baseline, limits string
		require                  []string
		price                    price
	)
	cmd := &cobra.Command{
		Use:   "gate [FILE...] --policy P --require CONDITION",
		Short: "Hold a policy to conditions, for use in CI: exit status 1 if one fails",
		Long: `gate replays the workloads under a policy and checks conditions on every cell
(workload x limit x cycle). It prints the cells that fail and exits with
status 1 if there are any.

A condition is METRIC OP VALUE, with OP one of <= < == > >= and METRIC a name of
the JSON results, with or without its unit. VALUE is a duration, a size or a
count, or a factor of the baseline's value: 1.05x. With geomean in front, the
geometric mean over all cells of the ratios to the baseline is compared; to both
sides of a ratio 1 ms, 1 MiB or 1 is added.

The baseline is another policy, or a file of results that compare wrote as JSON.`,
		Example: `  replay gate --policy pacer --require 'failed_allocs==0' --require 'max_pause<=50ms'
  replay gate --policy pacer --baseline cudajl --require 'exposed_pause<=1x' --require 'geomean exposed_pause<=0.5x'
  replay gate my.arrows --policy cudajl --baseline results.json --require 'exposed_pause<=1.05x'`,
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, files []string) error {
			g := gate{out: cmd.OutOrStdout()}
			for _, text := range require {
				c, err := parseCondition(text)
				if err != nil {
					return err
				}
				if c.relative && baseline == "" {
					return fmt.Errorf("condition %q needs a --baseline", text)
				}
				g.conditions = append(g.conditions, c)
			}
			if len(g.conditions) == 0 {
				return errors.New("nothing to hold: give a --require")
			}
			return g.run(cmd, files, policy, baseline, limits, &price)
		},
	}
	f := cmd.Flags()
	f.StringVar(&policy, "policy", "", "`policy` to hold to the conditions")
	f.StringVar(&baseline, "baseline", "", "`policy` to compare with, or a file of JSON results")
	f.StringVar(&limits, "limits", "1.25x,1.5x,2x,4x", "`list` of limits: bytes (8GiB) or factors of the peak reachable bytes (1.5x)")
	f.StringArrayVar(&require, "require", nil, "`condition` that every cell must meet; repeat for more")
	price.bind(cmd, "1ms,10ms", "2x")
	_ = cmd.MarkFlagRequired("policy")
	_ = cmd.RegisterFlagCompletionFunc("policy", completePolicies)
	return cmd
}

type gate struct {
	out        io.Writer
	conditions []condition
}

func (g *gate) run(cmd *cobra.Command, files []string, policy, baseline, limits string, price *price) error {
	old, err := readBaseline(baseline)
	if err != nil {
		return err
	}
	names := policy
	if baseline != "" && old == nil {
		names += "," + baseline
	}
	c := comparison{ctx: cmd.Context()}
	if c.contenders, err = sim.ParseContenders(names); err != nil {
		return err
	}
	if c.limits, err = parseEach(limits, parseLimit); err != nil {
		return err
	}
	if c.costs, c.ladder, err = price.parse(); err != nil {
		return err
	}
	if c.workloads, err = loadWorkloads(files); err != nil {
		return err
	}
	if err := c.run(cmd.ErrOrStderr()); err != nil {
		return err
	}
	return g.check(&c, old)
}

// check holds the first contender of every cell to every condition.
func (g *gate) check(c *comparison, old map[cellKey]sim.Result) error {
	out := &printer{w: g.out}
	cells, failed := 0, 0
	ratios := make([][]float64, len(g.conditions))
	for i := 0; i < len(c.outcomes); i += len(c.contenders) {
		o := &c.outcomes[i]
		if o.Err != nil {
			return fmt.Errorf("%s: %w", c.benchName(i), o.Err)
		}
		base, err := g.baseline(c, i, old)
		if err != nil {
			return err
		}
		cells++
		bad := false
		for k := range g.conditions {
			cond := &g.conditions[k]
			if cond.mean {
				ratios[k] = append(ratios[k], cond.ratio(&o.Result, base))
			} else if !cond.holds(&o.Result, base) {
				bad = true
				fmt.Fprintf(out, "FAIL %s: %s is %s", c.benchName(i), cond.text, cond.show(cond.metric.Of(&o.Result)))
				if cond.relative {
					fmt.Fprintf(out, ", baseline %s", cond.show(cond.metric.Of(base)))
				}
				fmt.Fprintln(out)
			}
		}
		if bad {
			failed++
		}
	}
	means := 0
	for k := range g.conditions {
		if cond := &g.conditions[k]; cond.mean {
			mean, ok := cond.holdsMean(ratios[k])
			verdict := "ok  "
			if !ok {
				verdict = "FAIL"
				means++
			}
			fmt.Fprintf(out, "%s %s is %.3fx\n", verdict, cond.text, mean)
		}
	}
	if failed > 0 || means > 0 {
		return errors.Join(out.err, fmt.Errorf("gate: %d of %d cells and %d means fail", failed, cells, means))
	}
	fmt.Fprintf(out, "ok   %d cells meet %d conditions\n", cells, len(g.conditions))
	return out.err
}

// baseline returns what cell i is compared with: nil if nothing asks for it.
func (g *gate) baseline(c *comparison, i int, old map[cellKey]sim.Result) (*sim.Result, error) {
	switch {
	case len(c.contenders) > 1:
		o := &c.outcomes[i+1]
		if o.Err != nil {
			return nil, fmt.Errorf("baseline: %s: %w", c.benchName(i+1), o.Err)
		}
		return &o.Result, nil
	case old != nil:
		r, ok := old[keyOf(&c.outcomes[i].Result)]
		if !ok {
			return nil, fmt.Errorf("baseline: the results have no cell %+v", keyOf(&c.outcomes[i].Result))
		}
		return &r, nil
	}
	return nil, nil
}

// A cellKey says what was run.
type cellKey struct {
	Trace, Policy string
	Limit         int64
	Cycle, Ladder int64 // ns
}

func keyOf(r *sim.Result) cellKey {
	return cellKey{r.Trace, r.Policy, r.LimitBytes, int64(r.Cycle), int64(r.Ladder)}
}

// byCell finds results by what was run.
func byCell(results []sim.Result) map[cellKey]sim.Result {
	all := make(map[cellKey]sim.Result, len(results))
	for _, r := range results {
		all[keyOf(&r)] = r
	}
	return all
}

// readBaseline reads a baseline that is a file of results; old is nil if it is
// a policy, or not given.
func readBaseline(baseline string) (old map[cellKey]sim.Result, err error) {
	if baseline == "" {
		return nil, nil
	}
	results, err := readResults(baseline)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case results == nil:
		return nil, fmt.Errorf("%s: no JSON results, as compare --format json writes them", baseline)
	}
	return byCell(results), nil
}
