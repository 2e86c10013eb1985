package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
	"github.com/eagergc/eagergc/sim/fleet"
)

// isFleet reports whether files are the answer of one fleet.
func isFleet(files []string) bool {
	if len(files) != 1 {
		return false
	}
	f, err := os.Open(files[0])
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(fleet.Magic))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, []byte(fleet.Magic))
}

// gateFleet holds a policy of a fleet to conditions.
func gateFleet(cmd *cobra.Command, path, policy, baseline string, conditions []experiment.Condition) error {
	for _, flag := range []string{"limits", "cycle", "ladder", "machine", "waits", "seed", "pool"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s: %s has been asked with its own", flag, path)
		}
	}
	a, err := readFleet(path)
	if err != nil {
		return err
	}
	old, than := a, policy
	switch {
	case baseline == "":
		old = nil
	case isFleet([]string{baseline}):
		if old, err = readFleet(baseline); err != nil {
			return err
		}
	default:
		than = baseline
	}
	pairs, gone, err := fleetPairs(a, policy, old, than)
	if err != nil {
		return err
	}
	failures, means, err := experiment.CheckPairs(conditions, pairs)
	if err != nil {
		return err
	}
	if gone > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "replay: %d cells are in only one of the fleets and are not compared\n", gone)
	}
	if n := a.Partial.Broken.Count; n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "replay: %d recordings of %s could not be read\n", n, path)
	}
	return writeGate(cmd.OutOrStdout(), len(pairs), len(conditions), failures, means)
}

// fleetPairs returns the cells of a policy with those of another one, in the same fleet
// or in an older one; gone is how many have no like.
func fleetPairs(a *fleet.Answer, policy string, old *fleet.Answer, than string) (pairs []experiment.Pair, gone int, err error) {
	policy, err = policyOf(a, policy)
	if err != nil {
		return nil, 0, err
	}
	before := make(map[string]*sim.Result)
	if old != nil {
		if than, err = policyOf(old, than); err != nil {
			return nil, 0, fmt.Errorf("baseline: %w", err)
		}
		results, cells := old.Results()
		for i := range results {
			if cells[i].Policy == than {
				before[cellName(&results[i], cells[i])] = &results[i]
			}
		}
	}
	results, cells := a.Results()
	for i := range results {
		if cells[i].Policy != policy {
			continue
		}
		name := cellName(&results[i], cells[i])
		base := before[name]
		if old != nil && base == nil {
			gone++
			continue
		}
		delete(before, name)
		pairs = append(pairs, experiment.Pair{Name: name, Result: &results[i], Baseline: base})
	}
	if len(pairs) == 0 {
		return nil, 0, errors.New("the fleets have no cell in common")
	}
	return pairs, gone + len(before), nil
}

func cellName(r *sim.Result, c fleet.Cell) string {
	return fmt.Sprintf("%s, limit %s, cycle %s", r.Trace, c.Limit, c.Cycle)
}

// policyOf finds a policy of a fleet by its text form.
func policyOf(a *fleet.Answer, text string) (string, error) {
	c, err := sim.ParseContender(text)
	if err != nil {
		return "", err
	}
	if !slices.Contains(a.Plan.Policies, c.String()) {
		return "", fmt.Errorf("the fleet was not asked about %s (but about %s)", c, orList(a.Plan.Policies))
	}
	return c.String(), nil
}
