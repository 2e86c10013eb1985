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
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A setting holds the flags that say what to replay: --policy or --policies, --limit or --limits,
// --cycle and --ladder, and those of a machine. The commands share these flags, so that a flag has
// the same meaning and the same errors everywhere.
type setting struct {
	policies, limits, cycles listed
	ladder                   string
	machine, waits, space    string
	seed                     uint64
	advises                  bool     // the command gives advice
	device                   sizeFlag // largest limit of the advice
	origins                  []origin // of the workloads, once the grid has been read
}

// A listed flag has one item, or if many is set, a list of items.
type listed struct {
	text string
	many bool
}

// onePolicy adds --policy. Without a preset it is required.
func (s *setting) onePolicy(cmd *cobra.Command, preset string) {
	cmd.Flags().StringVar(&s.policies.text, "policy", preset, "`policy`: see replay policies")
}

// manyPolicies adds --policies. Without a preset it is required.
func (s *setting) manyPolicies(cmd *cobra.Command, preset string) {
	s.policies.many = true
	cmd.Flags().StringVar(&s.policies.text, "policies", preset, "`list` of policies and optima")
	if strings.Contains(preset, ":") { // commas also separate parameters
		cmd.Flags().Lookup("policies").DefValue = "as compare --help lists"
	}
}

func (s *setting) oneLimit(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.limits.text, "limit", "1.5x", "limit: `bytes` (8GiB) or a factor of the peak reachable bytes (1.5x)")
}

func (s *setting) manyLimits(cmd *cobra.Command, preset string) {
	s.limits.many = true
	cmd.Flags().StringVar(&s.limits.text, "limits", preset, "`list` of limits: bytes (8GiB) or factors of the peak reachable bytes (1.5x)")
}

// oneCost adds --cycle with one duration, --ladder, and the flags of a machine.
func (s *setting) oneCost(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.cycles.text, "cycle", "10ms", "length of one collection, as a `duration`")
	s.costs(cmd)
}

// manyCosts adds --cycle with a list, --ladder, and the flags of a machine.
func (s *setting) manyCosts(cmd *cobra.Command, preset string) {
	s.cycles.many = true
	cmd.Flags().StringVar(&s.cycles.text, "cycle", preset, "length of one collection: a `list` of durations")
	s.costs(cmd)
}

// costs adds --pool, --ladder and the flags of a machine, beside --cycle.
func (s *setting) costs(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.space, "pool", "", "`kind` of pool whose fragments count against the limit: exact, segments or virtual (default: no fragments)")
	cmd.Flags().StringVar(&s.ladder, "ladder", "2x", "length of the refusal ladder, as a `time` (20ms) or in cycles (2x)")
	s.world(cmd)
	for _, name := range []string{"cycle", "ladder"} {
		cmd.MarkFlagsMutuallyExclusive(name, "machine")
	}
}

func (s *setting) world(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.machine, "machine", "", "simulate with the costs in a `file` of replay calibrate")
	f.StringVar(&s.waits, "waits", "", "`kind` of waits: elastic, a pause shortens the next wait, since the device works on; rigid, it does not (default: that of the machine file)")
	f.Uint64Var(&s.seed, "seed", 1, "`number` that seeds the noise of a machine")
}

// ofDevice adds --device, which bounds the advice.
func (s *setting) ofDevice(cmd *cobra.Command) {
	s.advises = true
	cmd.Flags().Var(&s.device, "device", "`bytes` of the device, such as 80GiB: the largest limit of the advice (default: the memory of this machine or of the recorded program, whichever is more)")
}

// question returns the question about a workload of a grid at one of its costs.
func (s *setting) question(g *experiment.Grid, workload, cost int) experiment.Question {
	machine, _ := pressure.HostMemory() // 0 where the system does not say
	return experiment.Question{
		Workload: g.Workloads[workload], Policies: g.Contenders, World: g.World(cost), Variants: experiment.DefaultVariants,
		Most: experiment.Known(int64(s.device), machine.Total, s.origins[workload].had),
	}
}

// grid reads the flags, then the workloads. It does not run the grid.
func (s *setting) grid(files []string) (*experiment.Grid, error) {
	g := new(experiment.Grid)
	if err := errors.Join(s.readPolicies(g), s.readLimits(g), s.readCosts(g)); err != nil {
		return nil, err
	}
	var err error
	g.Workloads, s.origins, err = loadWorkloads(files, s.advises)
	return g, err
}

func (s *setting) readPolicies(g *experiment.Grid) error {
	text := s.policies.text
	switch {
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
	var err error
	g.Contenders, err = experiment.ParseContenders(text)
	return policyError("", err)
}

// policyError adds a suggestion to the error about one policy.
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

// elastic reads --waits. Without the flag the machine decides, if there is one.
func (s *setting) elastic(m *sim.Machine) (bool, error) {
	switch s.waits {
	case "":
		return m != nil && m.Elastic, nil
	case "rigid", "elastic":
		return s.waits == "elastic", nil
	}
	return false, fmt.Errorf("--waits %s: want rigid or elastic", s.waits)
}

// readMachine sets the machine of the grid, if the flags name one, or if they ask for a feature
// that only a machine's world has.
func (s *setting) readMachine(g *experiment.Grid) (err error) {
	if s.machine == "" && s.waits == "" && s.space == "" {
		return nil
	}
	if s.machine == "" && len(g.Costs) > 1 {
		return errors.New("--pool and --waits: give one --cycle, or a --machine")
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
	if len(g.Contenders) > 1 { // only the base world has optima
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

// readItems reads the items of a flag. It refuses a list if the flag takes one item.
func readItems[T comparable](texts *listed, flag string, parse func(string) (T, error)) ([]T, error) {
	items := strings.Split(texts.text, ",")
	if len(items) > 1 && !texts.many {
		return nil, fmt.Errorf("%s %s: want one, not a list", flag, texts.text)
	}
	var all []T
	for _, item := range items {
		v, err := parse(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, v) {
			return nil, fmt.Errorf("%s: %s is given twice", flag, item)
		}
		all = append(all, v)
	}
	return all, nil
}
