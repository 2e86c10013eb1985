package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
)

// A setting is what to replay, as flags say it. The commands share these flags,
// so that each means the same, and is refused the same, everywhere: --policy or
// --policies, --limit or --limits, --cycle, --ladder and --cost.
type setting struct {
	policies, limits, cycles string
	ladder, cost             string
	list                     map[*string]bool // texts that may be lists, with braces
}

func (s *setting) many(text *string) {
	if s.list == nil {
		s.list = make(map[*string]bool)
	}
	s.list[text] = true
}

// onePolicy adds --policy; required if there is no default.
func (s *setting) onePolicy(cmd *cobra.Command, preset string) {
	cmd.Flags().StringVar(&s.policies, "policy", preset, "`policy`: see replay policies")
	_ = cmd.RegisterFlagCompletionFunc("policy", completePolicies)
	if preset == "" {
		_ = cmd.MarkFlagRequired("policy")
	}
}

// manyPolicies adds --policies; required if there is no default.
func (s *setting) manyPolicies(cmd *cobra.Command, preset string) {
	s.many(&s.policies)
	cmd.Flags().StringVar(&s.policies, "policies", preset, "`list` of policies and optima")
	_ = cmd.RegisterFlagCompletionFunc("policies", completePolicies)
	if preset == "" {
		_ = cmd.MarkFlagRequired("policies")
	}
}

// oneLimit adds --limit.
func (s *setting) oneLimit(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.limits, "limit", "1.5x", "limit: `bytes` (8GiB) or a factor of the peak reachable bytes (1.5x)")
}

// manyLimits adds --limits.
func (s *setting) manyLimits(cmd *cobra.Command, preset string) {
	s.many(&s.limits)
	cmd.Flags().StringVar(&s.limits, "limits", preset, "`list` of limits: bytes (8GiB) or factors of the peak reachable bytes (1.5x)")
}

// oneCost adds --cycle, which takes one duration, and --ladder and --cost.
func (s *setting) oneCost(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.cycles, "cycle", "10ms", "how long one collection takes, as a `duration`")
	s.price(cmd, "2x")
	cmd.MarkFlagsMutuallyExclusive("cycle", "cost")
}

// manyCosts adds --cycle, which takes a list, and --ladder and --cost.
func (s *setting) manyCosts(cmd *cobra.Command, preset string) {
	s.many(&s.cycles)
	cmd.Flags().StringVar(&s.cycles, "cycle", preset, "how long one collection takes: a `list` of durations")
	s.price(cmd, "2x")
	cmd.MarkFlagsMutuallyExclusive("cycle", "cost")
}

// price adds --ladder and --cost.
func (s *setting) price(cmd *cobra.Command, ladder string) {
	cmd.Flags().StringVar(&s.ladder, "ladder", ladder, "how long the refusal ladder takes, as a `time` (20ms) or in cycles (2x)")
	cmd.Flags().StringVar(&s.cost, "cost", "", "cost model of a cycle in a JSON `file`, as replay calibrate writes it")
}

// grid reads the flags and the workloads, in that order: the grid has not run.
func (s *setting) grid(files []string) (*experiment.Grid, error) {
	g := new(experiment.Grid)
	err := errors.Join(s.readPolicies(g), s.readLimits(g), s.readCosts(g))
	if err != nil {
		return nil, err
	}
	g.Workloads, err = loadWorkloads(files)
	return g, err
}

// A cell is one run as flags say it.
type cell struct {
	workload  *sim.Workload
	contender sim.Contender
	config    sim.Config
}

// cell reads the flags of a command that makes one run.
func (s *setting) cell(file string) (*cell, error) {
	g, err := s.grid([]string{file})
	if err != nil {
		return nil, err
	}
	return &cell{g.Workloads[0], g.Contenders[0], g.Config(experiment.Cell{})}, nil
}

func (c *cell) run(decisions bool) (sim.Result, *sim.Log, error) {
	cfg := c.config
	cfg.Log = &sim.Log{KeepDecisions: decisions}
	r, err := c.contender.Run(c.workload, cfg)
	return r, cfg.Log, err
}

func (s *setting) readPolicies(g *experiment.Grid) error {
	text, err := s.expanded(&s.policies)
	if err != nil {
		return err
	}
	if !s.list[&s.policies] {
		c, err := sim.ParseContender(text)
		g.Contenders = []sim.Contender{c}
		return err
	}
	if text == "all" {
		text = strings.Join(contenderNames(), ",")
	}
	g.Contenders, err = sim.ParseContenders(text)
	return err
}

func (s *setting) readLimits(g *experiment.Grid) (err error) {
	g.Limits, err = readItems(s, &s.limits, "--limit", experiment.ParseLimit)
	return err
}

func (s *setting) readCosts(g *experiment.Grid) (err error) {
	if g.Ladder, err = sim.ParseLadder(s.ladder); err != nil {
		return err
	}
	if s.cost == "" {
		g.Costs, err = readItems(s, &s.cycles, "--cycle", parseCycle)
		return err
	}
	cost, err := readCost(s.cost)
	g.Costs = []sim.Cost{cost}
	return err
}

func (s *setting) expanded(text *string) (string, error) {
	if !s.list[text] {
		return *text, nil
	}
	return expandList(*text)
}

// readItems reads the texts of a flag, several of them only where it is a list.
func readItems[T any](s *setting, text *string, flag string, parse func(string) (T, error)) ([]T, error) {
	whole, err := s.expanded(text)
	if err != nil {
		return nil, err
	}
	items := strings.Split(whole, ",")
	if len(items) > 1 && !s.list[text] {
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

func parseCycle(text string) (sim.Cost, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return sim.Cost{}, fmt.Errorf("cycle %q: want the duration of a collection, such as 10ms", text)
	}
	return sim.Fixed(d), nil
}

// readCost reads a cost model, the JSON form of [sim.Cost].
func readCost(path string) (sim.Cost, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return sim.Cost{}, err
	}
	var c sim.Cost
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: byte %d: %w", path, d.InputOffset(), err)
	}
	if d.More() {
		return c, fmt.Errorf("%s: byte %d: more than one object", path, d.InputOffset())
	}
	for _, v := range []float64{float64(c.Base), float64(c.PerMiB), c.HeapMiB, c.PerTracked, c.PerFreed, c.Slowdown} {
		if !(v >= 0) {
			return c, fmt.Errorf("%s: negative coefficient %v", path, v)
		}
	}
	return c, nil
}
