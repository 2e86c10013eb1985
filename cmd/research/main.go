// Command research judges policies. It makes the evidence that gc/policy/POLICIES.md and the
// results cite. It is a tool for changing and reviewing policies; to choose one, use `replay
// compare`.
//
//	research corpus [-o FOLDER] [RECORDING...]
//		describes each recording by a card of statistics
//	research heaps [-o FOLDER] [RECORDING...]
//		divides one memory among several programs that run at once
//	research search [-candidates N] [-o FOLDER] [RECORDING...]
//		looks for a better policy among small expressions
//
// A RECORDING is a file that `replay import` reads or the name of a built-in recording. The name
// all means all built-in recordings. The default is the recordings of `replay compare`. Reports
// are Markdown. With -o, research also writes the cells behind a report.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		page, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("research", flag.ContinueOnError)
	flags.SetOutput(stderr)
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
	switch page {
	case "corpus":
		files, err = corpus(programs)
	case "heaps":
		files, err = heaps(ctx, programs)
	case "search":
		files, err = searches(ctx, programs, *candidates, stderr)
	default:
		err = fmt.Errorf("%q: want corpus, heaps or search", page)
	}
	if err != nil {
		return err
	}
	return files.save(*out, stdout)
}
