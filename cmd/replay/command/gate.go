package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

func newGate() *cobra.Command {
	var (
		baseline string
		require  []string
		s        setting
	)
	cmd := &cobra.Command{
		Use:   "gate [FILE...] --policy P --require CONDITION",
		Short: "Hold a policy to conditions, for use in CI: exit status 1 if one fails",
		Long: `gate replays the workloads under a policy and tests conditions on every cell
(workload x limit x cycle). It prints the cells that fail, and then exits with status 1.

A condition is METRIC OP VALUE. OP is one of <= < == > >=, and METRIC is a name of the
JSON results, with or without its unit. VALUE is a duration, a size or a count, or a
factor of the baseline's value: 1.05x. With geomean in front, the condition is about the
geometric mean over all cells of the ratios to the baseline. A ratio has 1 ms, 1 MiB or
1 added to both sides.

The baseline is another policy, or a file of JSON results of compare.`,
		Example: `  replay gate --policy pacer --require 'failed_allocs==0' --require 'max_pause<=50ms'
  replay gate --policy pacer --baseline cudajl --require 'exposed_pause<=1x' --require 'geomean exposed_pause<=0.5x'
  replay compare my.arrows -o before && replay gate my.arrows --policy pacer --baseline before/results.json --require 'exposed_pause<=1.05x'`,
		RunE: func(cmd *cobra.Command, files []string) error {
			conditions, err := parseConditions(require, baseline != "")
			if err != nil {
				return err
			}
			known, err := readBaseline(baseline)
			if err != nil {
				return err
			}
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			if baseline != "" && known == nil {
				c, err := experiment.ParseContender(baseline)
				if err != nil {
					return err
				}
				g.Contenders = append(g.Contenders, c)
			}
			if err := runGrid(cmd, g); err != nil {
				return err
			}
			failures, means, err := g.Check(conditions, known)
			if err != nil {
				return err
			}
			return writeGate(cmd.OutOrStdout(), g.Len()/len(g.Contenders), len(conditions), failures, means)
		},
	}
	s.onePolicy(cmd, "")
	s.manyLimits(cmd, defaultLimits)
	s.manyCosts(cmd, "1ms,10ms")
	f := cmd.Flags()
	f.StringVar(&baseline, "baseline", "", "`policy` to compare with, or a file of JSON results")
	f.StringArrayVar(&require, "require", nil, "`condition` for every cell; may be repeated")
	return cmd
}

func parseConditions(texts []string, baseline bool) ([]experiment.Condition, error) {
	if len(texts) == 0 {
		return nil, errors.New("no condition: give a --require")
	}
	var all []experiment.Condition
	for _, text := range texts {
		c, err := experiment.ParseCondition(text)
		if err != nil {
			return nil, err
		}
		if c.Relative && !baseline {
			return nil, fmt.Errorf("condition %q needs a --baseline", text)
		}
		all = append(all, c)
	}
	return all, nil
}

// writeGate prints the failures, or that all conditions are true. It returns an error if there
// is a failure.
func writeGate(w io.Writer, cells, conditions int, failures []experiment.Failure, means []experiment.Verdict) error {
	out := bufio.NewWriter(w)
	failed := make(map[string]bool)
	for _, f := range failures {
		failed[f.Name] = true
		fmt.Fprintf(out, "FAIL %s: %s is %s", f.Name, f.Text, quantity(f.Value, f.Metric.Unit))
		if f.Relative {
			fmt.Fprintf(out, ", baseline %s", quantity(f.Baseline, f.Metric.Unit))
		}
		fmt.Fprintln(out)
	}
	bad := 0
	for _, m := range means {
		verdict := "ok  "
		if !m.OK {
			verdict = "FAIL"
			bad++
		}
		fmt.Fprintf(out, "%s %s is %.3fx\n", verdict, m.Text, m.Ratio)
	}
	if len(failed) > 0 || bad > 0 {
		text := fmt.Sprintf("gate: a condition fails in %d of %s", len(failed), chart.Counted(cells, "cell"))
		if len(means) > 0 {
			text += fmt.Sprintf(", and for %d of %s", bad, chart.Counted(len(means), "mean"))
		}
		return errors.Join(out.Flush(), errors.New(text))
	}
	fmt.Fprintf(out, "ok   %s, %s\n", chart.Counted(cells, "cell"), chart.Counted(conditions, "condition"))
	return out.Flush()
}

// readBaseline reads a baseline file of results. It returns nil if the baseline is a policy, or
// is not given.
func readBaseline(baseline string) (map[experiment.Key]sim.Result, error) {
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
		return nil, fmt.Errorf("%s: want JSON results, as compare --format json writes them", baseline)
	}
	return experiment.ByKey(results), nil
}
