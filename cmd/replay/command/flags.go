package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A setting is what to replay, as flags say it. The commands share these flags,
// so that each means the same, and is refused the same, everywhere: --policy or
// --policies, --limit or --limits, --cycle and --ladder, and those of a machine.
type setting struct {
	policies, limits, cycles listed
	ladder                   string
	machine, waits, space    string
	seed                     uint64
}

// A listed text is one, or where there may be many a list, with braces.
type listed struct {
	text string
	many bool
}

// expanded is the text with each brace replaced by its values.
func (l *listed) expanded() (string, error) {
	if !l.many {
		return l.text, nil
	}
	return expandList(l.text)
}

// onePolicy adds --policy, which has to be given if there is no default.
func (s *setting) onePolicy(cmd *cobra.Command, preset string) {
	cmd.Flags().StringVar(&s.policies.text, "policy", preset, "`policy`: see replay policies")
}

// manyPolicies adds --policies, which has to be given if there is no default.
func (s *setting) manyPolicies(cmd *cobra.Command, preset string) {
	s.policies.many = true
	cmd.Flags().StringVar(&s.policies.text, "policies", preset, "`list` of policies and optima")
}

func (s *setting) oneLimit(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.limits.text, "limit", "1.5x", "limit: `bytes` (8GiB) or a factor of the peak reachable bytes (1.5x)")
}

func (s *setting) manyLimits(cmd *cobra.Command, preset string) {
	s.limits.many = true
	cmd.Flags().StringVar(&s.limits.text, "limits", preset, "`list` of limits: bytes (8GiB) or factors of the peak reachable bytes (1.5x)")
}

// oneCost adds --cycle, which takes one duration, --ladder, and the flags of a machine.
func (s *setting) oneCost(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.cycles.text, "cycle", "10ms", "how long one collection takes, as a `duration`")
	s.costs(cmd)
}

// manyCosts adds --cycle, which takes a list, --ladder, and the flags of a machine.
func (s *setting) manyCosts(cmd *cobra.Command, preset string) {
	s.cycles.many = true
	cmd.Flags().StringVar(&s.cycles.text, "cycle", preset, "how long one collection takes: a `list` of durations")
	s.costs(cmd)
}

// costs adds --pool, --ladder and the flags of a machine, beside --cycle.
func (s *setting) costs(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.space, "pool", "", "the `kind` of pool whose address space decides what fits: exact, segments or virtual (default: the sum of bytes)")
	cmd.Flags().StringVar(&s.ladder, "ladder", "2x", "how long the refusal ladder takes, as a `time` (20ms) or in cycles (2x)")
	s.world(cmd)
	for _, name := range []string{"cycle", "ladder"} {
		cmd.MarkFlagsMutuallyExclusive(name, "machine")
	}
}

func (s *setting) world(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.machine, "machine", "", "simulate with the costs in a `file` of replay calibrate")
	f.StringVar(&s.waits, "waits", "", "`how` waits behave: rigid, a pause never shortens the next wait; elastic, it does, since the device works on meanwhile (default: as the machine file says)")
	f.Uint64Var(&s.seed, "seed", 1, "`number` from which the noise of a machine is drawn")
}

// grid reads the flags and the workloads, in that order: the grid has not run.
func (s *setting) grid(files []string) (*experiment.Grid, error) {
	g := new(experiment.Grid)
	if err := errors.Join(s.readPolicies(g), s.readLimits(g), s.readCosts(g)); err != nil {
		return nil, err
	}
	var err error
	g.Workloads, err = loadWorkloads(files)
	return g, err
}

func (s *setting) readPolicies(g *experiment.Grid) error {
	text, err := s.policies.expanded()
	switch {
	case err != nil:
		return err
	case text == "" && s.policies.many:
		return errors.New("no policies: give some, such as --policies never,pacer (replay policies lists them)")
	case text == "":
		return errors.New("no policy: give one, such as --policy pacer (replay policies lists them)")
	}
	if !s.policies.many {
		c, err := experiment.ParseContender(text)
		g.Contenders = []experiment.Contender{c}
		return policyError(text, err)
	}
	if text == "all" {
		text = strings.Join(contenderNames(), ",")
	}
	g.Contenders, err = experiment.ParseContenders(text)
	return policyError("", err)
}

// policyError adds what may have been meant to the error for the text of one policy.
func policyError(text string, err error) error {
	name, param, found := strings.Cut(text, ",")
	switch {
	case err == nil:
		return nil
	case found && !strings.Contains(name, ":"):
		return fmt.Errorf("policy %q: a parameter follows a colon: %s:%s", text, name, param)
	}
	name, _, _ = strings.Cut(text, ":")
	if slices.Contains(contenderNames(), name) {
		return err
	}
	return fmt.Errorf("%w%s", err, suggestion(name, contenderNames()))
}

func (s *setting) readLimits(g *experiment.Grid) (err error) {
	g.Limits, err = readItems(&s.limits, "--limit", experiment.ParseLimit)
	return err
}

func (s *setting) readCosts(g *experiment.Grid) (err error) {
	if g.Ladder, err = sim.ParseLadder(s.ladder); err != nil {
		return err
	}
	if g.Costs, err = readItems(&s.cycles, "--cycle", experiment.ParseCycle); err != nil {
		return err
	}
	return s.readMachine(g)
}

// elastic reads --waits. If it is not given, the machine says, if there is one.
func (s *setting) elastic(m *sim.Machine) (bool, error) {
	switch s.waits {
	case "":
		return m != nil && m.Elastic, nil
	case "rigid", "elastic":
		return s.waits == "elastic", nil
	}
	return false, fmt.Errorf("--waits %s: want rigid or elastic", s.waits)
}

// readMachine puts the machine of the flags into the grid, if they name one or
// something that only a machine's world has.
func (s *setting) readMachine(g *experiment.Grid) (err error) {
	if s.machine == "" && s.waits == "" && s.space == "" {
		return nil
	}
	if s.machine == "" && len(g.Costs) > 1 {
		return errors.New("--pool and --waits: want one --cycle, or a --machine")
	}
	m := sim.MachineOf(g.Costs[0], g.Ladder)
	if s.machine != "" {
		if m, err = loadMachine(s.machine); err != nil {
			return err
		}
	}
	if m.Elastic, err = s.elastic(m); err != nil {
		return err
	}
	if s.space != "" {
		if !slices.Contains(addressonly.Kinds, addressonly.Kind(s.space)) {
			return fmt.Errorf("--pool %s: want %s", s.space, orList(addressonly.Kinds))
		}
		g.Memory = func(limit int64) sim.Memory { return addressonly.New(addressonly.Kind(s.space), limit) }
	}
	g.SetMachine(m, s.seed)
	if len(g.Contenders) > 1 { // the base world alone has optima
		g.Contenders = slices.DeleteFunc(g.Contenders, func(c experiment.Contender) bool { return slices.Contains(sim.Optima(), c.String()) })
	}
	return nil
}

func loadMachine(path string) (*sim.Machine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := experiment.ReadMachine(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: want a file that replay calibrate wrote", path, err)
	}
	return m, nil
}

// readItems reads the texts of a flag, several of them only where it is a list.
func readItems[T any](texts *listed, flag string, parse func(string) (T, error)) ([]T, error) {
	whole, err := texts.expanded()
	if err != nil {
		return nil, err
	}
	items := strings.Split(whole, ",")
	if len(items) > 1 && !texts.many {
		return nil, fmt.Errorf("%s %s: want one, not a list", flag, whole)
	}
	var all []T
	for _, item := range items {
		v, err := parse(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
