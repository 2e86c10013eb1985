// Command research judges policies: it makes the evidence that gc/policy/POLICIES.md and results cite. It is
// for those who change a policy, and for reviewers; who chooses one wants `replay compare`.
//
//	research corpus [-o FOLDER] [RECORDING...]                              a card for each recording, and where all lie
//	research baselines [-o FOLDER] [-live FILE,...] [RECORDING...]          every policy, over baselines, limits and knobs
//	research -trials all|NAME,... [-policy TEXT] [-o FOLDER] [RECORDING...]   one policy, where things go wrong
//	research -granularity [-o FOLDER] [RECORDING...]                          every policy, where deaths are known only from cycles
//
// A RECORDING is a file that `replay import` reads, the name of a built-in one, all for all of those, or
// synthetic:SEED for the made-up programs of a seed. Without one it takes those of `replay compare`.
// Reports are Markdown; with -o the cells behind them are written beside them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

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
	if len(args) > 0 && (args[0] == "corpus" || args[0] == "baselines") {
		page, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("research", flag.ContinueOnError)
	flags.SetOutput(stderr)
	trials := flags.String("trials", "", "judge -policy in these `trials`:\n"+trialList())
	policy := flags.String("policy", "pacer", "with -trials: the `policy` to judge")
	granularity := flags.Bool("granularity", false, "move deaths to the next 1st, 4th, 16th, 64th wait, as recorders with cycles there would see them")
	live := flags.String("live", "", "with baselines: `files` of live runs, a JSON object to a line")
	out := flags.String("o", "", "`folder` for the report and what is behind it; empty prints the report")
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
	case *granularity:
		files, err = granularities(ctx, programs)
	case *trials != "":
		files, err = prove(ctx, programs, *policy, *trials, stderr)
	default:
		return errors.New("want corpus, baselines, -granularity, or -trials all (see research -h)")
	}
	if err != nil {
		return err
	}
	return files.save(*out, stdout)
}

// A folder is the files of a report, by their names. The one whose name ends in .md is the report.
type folder map[string][]byte

// save writes the files into a folder; without one it prints the report.
func (f folder) save(path string, stdout io.Writer) error {
	if path != "" {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	for name, text := range f {
		var err error
		if path != "" {
			err = os.WriteFile(filepath.Join(path, name), text, 0o644)
		} else if filepath.Ext(name) == ".md" {
			_, err = stdout.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
