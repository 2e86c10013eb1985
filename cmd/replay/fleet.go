package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/sim/view"
)

// fleetPolicies are few: each is replayed for every job.
const fleetPolicies = "never,cudajl,sqrt,v8step,pacer"

func newFleet() *cobra.Command {
	var (
		s fleetSetting
		o fleetOutput
	)
	cmd := &cobra.Command{
		Use:   "fleet DIR|LIST|BUCKET",
		Short: "Ask many recordings, one from each job, and keep what is known of each",
		Long: `fleet replays every recording of a folder, or of a list with a path to a line, and
adds up what each policy would have lost: over all jobs, and for each group of like
jobs. It writes fleet.json, which replay gate and replay report read, and
cells.parquet, with a row for each job and cell.

What is known of a recording is kept in a cache, by content: the recording, what is
asked, and what the rules do. So a run that was stopped goes on where it was, and
a policy more costs that policy only. Several processes may share a cache. A
recording that cannot be read is named, and the others go on. Equal fleets give the
same bytes, on any number of cores or machines.

BUCKET is s3://bucket/folder or gs://bucket/folder. This program links no cloud: it
starts fleet-beam, which it looks for in $PATH, with what is after -- for Beam. To
build it: cd sim/fleet/beam && go install ./fleet-beam`,
		Example: `  replay fleet recordings -o fleet-out
  replay fleet recordings --policies never,cudajl,pacer --limits 1.25x,1.5x,2x --cycle 1ms
  replay gate fleet-out/fleet.json --policy pacer --baseline last-week/fleet.json --require 'exposed_pause<=1.05x'
  replay report fleet-out/fleet.json -o fleet.html
  replay fleet gs://bucket/recordings -o gs://bucket/out -- --runner=dataflow --project=mine --region=europe-west1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n == 1 || n < 0 && len(args) == 1 {
				return nil
			}
			return errors.New("fleet: want one DIR, LIST or BUCKET")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := s.plan()
			if err != nil {
				return err
			}
			if strings.Contains(args[0], "://") {
				return onBeam(cmd, plan, args[0], o.folder, args[1:])
			}
			if len(args) > 1 {
				return errors.New("fleet: what is after -- is for a BUCKET")
			}
			return o.run(cmd, plan, args[0])
		},
	}
	s.flags(cmd)
	o.flags(cmd)
	return cmd
}

// A fleetSetting is a question, from flags or from a file.
type fleetSetting struct {
	setting
	file string
}

func (s *fleetSetting) flags(cmd *cobra.Command) {
	s.manyPolicies(cmd, fleetPolicies)
	s.manyLimits(cmd, "1.25x,1.5x,2x")
	s.manyCycles(cmd, "10ms")
	s.times(cmd)
	cmd.Flags().StringVar(&s.file, "plan", "", "ask what this `file` asks: a fleet.json, or the plan in it; instead of the flags above")
	for _, name := range []string{"policies", "limits", "cycle", "ladder", "machine", "waits", "seed"} {
		cmd.MarkFlagsMutuallyExclusive("plan", name)
	}
}

func (s *fleetSetting) plan() (fleet.Plan, error) {
	if s.file != "" {
		return readPlan(s.file)
	}
	g, err := s.question()
	if err != nil {
		return fleet.Plan{}, err
	}
	return fleet.PlanOf(g)
}

func readPlan(path string) (p fleet.Plan, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	if strings.HasPrefix(string(text), fleet.Magic) {
		a, err := readFleet(path)
		if err != nil {
			return p, err
		}
		return a.Plan, nil
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// readFleet reads the answer of a fleet.
func readFleet(path string) (*fleet.Answer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := fleet.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// A fleetOutput is what a fleet is run with and where its answer goes.
type fleetOutput struct {
	folder, cache, format string
	workers               int
	parquet               bool
}

func (o *fleetOutput) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	formatFlag(cmd, &o.format, "", "table", "json")
	f.StringVarP(&o.folder, "output", "o", "fleet-out", "`folder` for fleet.json, cells.parquet and the cache")
	f.StringVar(&o.cache, "cache", "", "`folder` of the cache (default: cache in the output)")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "`number` of recordings that are replayed at once")
	f.BoolVar(&o.parquet, "cells", true, "write cells.parquet")
}

func (o *fleetOutput) run(cmd *cobra.Command, plan fleet.Plan, path string) error {
	m, err := fleet.NewMapper(plan)
	if err != nil {
		return err
	}
	sources, err := fleet.Sources(path)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("%s: no recordings", path)
	}
	dir, err := openFolder(o.folder)
	if err != nil {
		return err
	}
	cache := fleet.NewCache(fleet.Folder(cmp.Or(o.cache, filepath.Join(o.folder, "cache"))))
	local := &fleet.Local{Mapper: m, Cache: cache, Workers: o.workers, Limit: maxMemory, Order: uint64(os.Getpid())}
	bar := newFleetBar(cmd.ErrOrStderr())
	local.Each = bar.show
	sum, err := local.Run(cmd.Context(), sources)
	bar.done()
	if err != nil {
		return err
	}
	answer := &fleet.Answer{Plan: plan, Partial: sum}
	if err := dir.write("fleet.json", answer.Encode); err != nil {
		return err
	}
	if o.parquet {
		write := func(w io.Writer) error { return writeCellsParquet(cmd.Context(), w, local, sources) }
		if err := dir.write("cells.parquet", write); err != nil {
			return err
		}
	}
	if o.format == "json" {
		return answer.Encode(cmd.OutOrStdout())
	}
	if err := writeFleet(cmd.OutOrStdout(), answer); err != nil {
		return err
	}
	dir.report(cmd.ErrOrStderr())
	return nil
}

// A fleetBar shows how far a fleet is, and for how long it will go on.
type fleetBar struct {
	*progress
	stderr io.Writer
	last   fleet.Progress
}

func newFleetBar(stderr io.Writer) *fleetBar {
	return &fleetBar{progress: newProgress(stderr, "jobs", 0), stderr: stderr}
}

// show draws the bar. The time left is that of the bytes left, at the pace of those
// that needed a replay.
func (b *fleetBar) show(p fleet.Progress) {
	b.last = p
	if b.bar == nil || time.Since(b.start) < time.Second {
		return
	}
	b.bar.ChangeMax(p.Of)
	b.bar.Describe("jobs" + timeLeft(p, time.Since(b.start)))
	_ = b.bar.Set(p.Jobs) // a bar that cannot be drawn is no failure of the job
}

func timeLeft(p fleet.Progress, so time.Duration) string {
	if p.Bytes == 0 || p.Jobs == p.Of {
		return ""
	}
	left := time.Duration(float64(so) / float64(p.Bytes) * float64(p.Total-p.Bytes))
	return ", " + left.Round(time.Second).String() + " left"
}

// done takes the bar away and says what did not go as it should.
func (b *fleetBar) done() {
	b.progress.done()
	if b.last.Unkept > 0 {
		fmt.Fprintf(b.stderr, "replay: the cache could not keep %s: %v\n", view.Plural(b.last.Unkept, "job"), b.last.Error)
	}
}

// beamProgram is the command of module sim/fleet/beam.
const beamProgram = "fleet-beam"

// onBeam hands the question to the program that knows clouds.
func onBeam(cmd *cobra.Command, plan fleet.Plan, input, output string, rest []string) error {
	program, err := exec.LookPath(beamProgram)
	if err != nil {
		return fmt.Errorf("%s: this program links no cloud, and there is no %s in $PATH (cd sim/fleet/beam && go install ./%[2]s); or mount the bucket and name the folder", input, beamProgram)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	return runProgram(cmd.Context(), cmd, program, append([]string{"--plan=" + string(text), "--input=" + input, "--output=" + output}, rest...))
}

func runProgram(ctx context.Context, cmd *cobra.Command, program string, args []string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout, c.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	return nil
}
