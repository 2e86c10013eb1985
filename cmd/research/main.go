// Command research judges policies. It makes the evidence that gc/policy/POLICIES.md and the
// results cite. It is a tool for changing and reviewing policies; to choose one, use `replay
// compare`.
//
//	research corpus [-o FOLDER] [RECORDING...]
//		describes each recording by a card of statistics
//	research baselines [-o FOLDER] [-live FILE,...] [RECORDING...]
//		judges every policy by different baselines, limits and parameters
//	research -trials all|NAME,... [-policy TEXT] [-o FOLDER] [RECORDING...]
//		judges one policy under adverse conditions
//	research -granularity [-o FOLDER] [RECORDING...]
//		judges every policy on recordings whose deaths are known only from cycles
//	research heaps [-o FOLDER] [RECORDING...]
//		divides one memory among several programs that run at once
//	research search [-candidates N] [-o FOLDER] [RECORDING...]
//		looks for a better policy among small expressions
//
// A RECORDING is a file that `replay import` reads or the name of a built-in recording. The name
// all means all built-in recordings, and synthetic:SEED the synthetic programs of a seed. The
// default is the recordings of `replay compare`. Reports are Markdown. With -o, research also
// writes the cells behind a report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
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
	page := ""
	if len(args) > 0 && (slices.Contains([]string{"corpus", "baselines", "heaps", "search"}, args[0])) {
		page, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("research", flag.ContinueOnError)
	flags.SetOutput(stderr)
	trials := flags.String("trials", "", "judge -policy in these `trials`:\n"+trialList())
	policy := flags.String("policy", "pacer", "with -trials: the `policy` to judge")
	granularity := flags.Bool("granularity", false, "record deaths only at every 1st, 4th, 16th or 64th wait")
	live := flags.String("live", "", "with baselines: `files` of live runs, one JSON object per line")
	candidates := flags.Int("candidates", 10_000, "with search: the `number` of expressions to try")
	out := flags.String("o", "", "`folder` for the report and its data; if empty, print the report")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = append(samples.Names(), samples.Programs()...)
	}
	programs, err := load(names)
	if err != nil {
		return err
	}
	var files folder
	switch {
	case page == "corpus":
		files, err = corpus(programs)
	case page == "baselines":
		files, err = baselines(ctx, programs, strings.FieldsFunc(*live, func(r rune) bool { return r == ',' }))
	case page == "heaps":
		files, err = heaps(ctx, programs)
	case page == "search":
		files, err = searches(ctx, programs, *candidates, stderr)
	case *granularity:
		files, err = granularities(ctx, programs)
	case *trials != "":
		files, err = judgeInTrials(ctx, programs, *policy, *trials, stderr)
	default:
		return errors.New("want corpus, baselines, heaps, search, -granularity, or -trials all (see research -h)")
	}
	if err != nil {
		return err
	}
	return files.save(*out, stdout)
}

func judgeInTrials(ctx context.Context, programs []*trace.Trace, policy, names string, stderr io.Writer) (folder, error) {
	trials, err := trialsNamed(names)
	if err != nil {
		return nil, err
	}
	who, err := experiment.ParseContender(policy)
	if err != nil {
		return nil, err
	}
	tried, err := prove(ctx, programs, who, trials, func(name string) { fmt.Fprintln(stderr, "research: trial", name) })
	if err != nil {
		return nil, err
	}
	return reportTrials(who, tried), nil
}
