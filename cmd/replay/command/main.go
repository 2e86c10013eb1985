// Package command is the command replay, as a program of one's own may run it.
package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// Main is the command: it reads the arguments and ends the process. A program of one's own that
// has registered a policy (see gc/policy) calls it, and compares that policy with all others.
func Main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	go endOn(signals, cancel)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if ctx.Err() != nil {
		select {} // endOn says so and ends
	}
	os.Exit(status)
}

// interrupted is the exit status after Ctrl-C: 128 and the number of SIGINT.
const interrupted = 130

// endOn ends the process on an interrupt. A command that watches its context may
// end by itself for a moment, with a report. Others are busy, or wait for a file,
// a pipe or the standard input: they are ended where they are, and may leave a file
// whose name ends in .partial. A second interrupt ends at once.
func endOn(signals <-chan os.Signal, cancel context.CancelFunc) {
	<-signals
	cancel()
	select {
	case <-time.After(100 * time.Millisecond):
	case <-signals:
	}
	fmt.Fprintln(os.Stderr, "\nreplay: interrupted; a sweep goes on where it stopped when the same command is run again")
	os.Exit(interrupted)
}

// run is the command line: it returns the exit status, 0 or 1.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			return interrupted
		}
		var lines []string
		for line := range strings.Lines(err.Error()) { // of several errors; names are quoted in them
			lines = append(lines, recording.Plain(strings.TrimSuffix(line, "\n")))
		}
		fmt.Fprintln(stderr, "replay:", strings.Join(lines, "\n"))
		return 1
	}
	return 0
}

// commands are the subcommands, in the groups of the help.
var commands = []struct {
	about string
	all   []func() *cobra.Command
}{
	{"Choose a policy and a limit:", []func() *cobra.Command{newCompare, newAdvise, newReport, newLab, newPolicies}},
	{"Look closer:", []func() *cobra.Command{newRun, newPlot, newSweep, newGate}},
	{"Recordings:", []func() *cobra.Command{newImport, newInfo, newDiff, newExport}},
	{"On real memory, with Go's real collector:", []func() *cobra.Command{newLive, newCalibrate}},
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "replay",
		Short: "Replay recorded GPU workloads under garbage collection policies",
		Long: `replay runs recorded workloads, event by event on a virtual clock, under
policies that decide when a garbage collector should run, and compares what
each policy costs: how long it holds the program, how much garbage it leaves,
how often memory runs out.

No GPU is needed. Recordings of eleven PyTorch programs, of five Go programs with C
libraries and of four with GoMLX on a GPU (array, dense, conv, infer) are built in;
recordings of your own come in through the importers.`,
		Example: `  replay compare                                   # every policy on the built-in workloads
  replay compare my.arrows --limits 8GiB           # on a recording of your own
  replay import snapshot.pickle -o my.arrows       # from torch.cuda.memory._dump_snapshot
  replay info my.arrows                            # what is in it
  replay run my.arrows --policy cudajl --limit 1.5x --why`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().Var((*sizeFlag)(&maxMemory), "max-memory", "`bytes` that a file may make its reader hold: 2GiB (default: 16MiB and 30 times the file; the process takes at most twice that and 16MiB)")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [command]",
		Short: "Say what a command does",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) == 0 {
				err = cmd.Help()
			}
			return err
		},
	})
	root.CompletionOptions.DisableDefaultCmd = true
	for _, group := range commands {
		root.AddGroup(&cobra.Group{ID: group.about, Title: group.about})
		for _, c := range group.all {
			cmd := c()
			cmd.GroupID = group.about
			root.AddCommand(cmd)
		}
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
