// Command research judges policies: it makes the evidence that gc/POLICIES.md cites. It is
// for those who change a policy; who chooses one wants `replay compare`.
//
//	research [-o FOLDER] [RECORDING...]                              every policy, over limits and costs
//	research -trials all|NAME,... [-policy TEXT] [-o FOLDER] [RECORDING...]   one policy, where things go wrong
//	research -granularity [-o FOLDER] [RECORDING...]                 every policy, where deaths are known only from cycles
//
// A RECORDING is a file that `replay import` reads, the name of a built-in one, or
// synthetic:SEED for the made-up programs of a seed. Without one it takes all that are built in.
// Reports are Markdown; with -o the cells behind them are written beside them as CSV.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "research:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("research", flag.ContinueOnError)
	flags.SetOutput(stderr)
	trials := flags.String("trials", "", "judge -policy in these `trials`:\n"+trialList())
	policy := flags.String("policy", "pacer", "with -trials: the `policy` to judge")
	granularity := flags.Bool("granularity", false, "move deaths to the next 1st, 4th, 16th, 64th wait, as recorders with cycles there would see them")
	out := flags.String("o", "", "`folder` for report.md and cells.csv; empty prints the report")
	if err := flags.Parse(args); err != nil {
		return err
	}
	programs, err := load(flags.Args())
	if err != nil {
		return err
	}
	if *trials != "" {
		return prove(ctx, programs, *policy, *trials, *out, stdout, stderr)
	}
	if *granularity {
		causal := slices.DeleteFunc(everyone(), func(c experiment.Contender) bool { return experiment.Foresees(c.String()) })
		grains, err := granulate(ctx, programs, causal)
		if err != nil {
			return err
		}
		return save(*out, stdout,
			func(w io.Writer) error { return writeGranularity(w, grains) },
			func(w io.Writer) error { return writeCells(w, grains[0].Grid.Outcomes()) })
	}
	loads, err := compile(programs)
	if err != nil {
		return err
	}
	study, err := newStudy(ctx, loads, everyone())
	if err != nil {
		return err
	}
	return save(*out, stdout,
		func(w io.Writer) error { return writeStudy(w, study) },
		func(w io.Writer) error { return writeCells(w, study.Grid.Outcomes()) })
}

// everyone is every policy with its default parameters, cudajl as its authors run it, and the optima.
func everyone() []experiment.Contender {
	var names []string
	for _, p := range policy.List() {
		names = append(names, p.Name)
	}
	names = append(names, sim.Optima()...)
	names = append(names, "cudajl:poll=50us", "cudajl:poll=50us,overlap=true")
	all := make([]experiment.Contender, len(names))
	for i, name := range names {
		c, err := experiment.ParseContender(name)
		if err != nil {
			panic(err) // a name of our own table
		}
		all[i] = c
	}
	return all
}

// save writes a report and its cells into a folder; without one it prints the report.
func save(folder string, stdout io.Writer, report, cells func(io.Writer) error) error {
	if folder == "" {
		return report(stdout)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"report.md": report, "cells.csv": cells} {
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if err := write(f); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeCells writes the outcome of each cell of a study: bytes and ns.
func writeCells(w io.Writer, outcomes []*experiment.Outcome) error {
	if _, err := fmt.Fprintln(w, "trace,policy,limit_bytes,cycle_ns,collections,refusal_collections,failed_allocs,exposed_pause_ns,gc_busy_ns,elapsed_ns,mean_live_bytes"); err != nil {
		return err
	}
	for _, o := range outcomes {
		if _, err := fmt.Fprintf(w, "%s,%q,%d,%d,%d,%d,%d,%d,%d,%d,%.0f\n", o.Trace, o.Policy, o.LimitBytes, o.Cycle, o.Collections, o.RefusalCollections,
			o.FailedAllocs, o.ExposedPause, o.GCBusy, o.Elapsed, o.MeanLive); err != nil {
			return err
		}
	}
	return nil
}
