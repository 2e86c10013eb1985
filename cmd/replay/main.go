// Command replay runs recorded GPU workloads under collection policies and
// compares them. `replay --help` is its manual.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command line: it returns the exit status, 0 or 1.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "replay:", err)
		return 1
	}
	return 0
}

// commands are the subcommands: one line here for each.
var commands = []func() *cobra.Command{
	newCompare,
	newPlot,
	newRun,
	newSweep,
	newGate,
	newExplain,
	newImport,
	newInfo,
	newDiff,
	newPolicies,
	newEvaluate,
	newLive,
	newCalibrate,
	newRecord,
	newReport,
	newExport,
	newSoak,
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "replay",
		Short: "Replay recorded GPU workloads under garbage collection policies",
		Long: `replay runs recorded workloads, event by event on a virtual clock, under
policies that decide when a garbage collector should run, and compares what
each policy costs: how long it holds the program, how much garbage it leaves,
how often memory runs out.

No GPU is needed. Eleven recorded PyTorch workloads are built in; recordings of
your own come in through the importers.`,
		Example: `  replay compare                                   # every policy on the built-in workloads
  replay compare my.arrows --limits 8GiB           # on a recording of your own
  replay import snapshot.pickle -o my.arrows       # from torch.cuda.memory._dump_snapshot
  replay info my.arrows                            # what is in it
  replay run my.arrows --policy cudajl --limit 1.5x --why`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	for _, c := range commands {
		root.AddCommand(c())
	}
	return root
}

// version is what the build knows of its source: the version of the module, which
// names the commit of a checkout, and the Go that built it.
func version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return fmt.Sprintf("%s, built with %s", b.Main.Version, b.GoVersion)
}
