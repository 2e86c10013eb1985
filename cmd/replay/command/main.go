// Package command is the command replay. A program with a policy of its own may run it too.
package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// Main reads the arguments, runs the command and ends the process. A program that has registered
// a policy (see gc/policy) calls it to compare that policy with all others.
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

// endOn ends the process on an interrupt. A command that watches its context has a moment to end
// by itself. Other commands are busy, or wait for a file or a pipe: they are ended at once, and
// may leave a file whose name ends in .partial. A second interrupt ends the process immediately.
func endOn(signals <-chan os.Signal, cancel context.CancelFunc) {
	<-signals
	cancel()
	select {
	case <-time.After(100 * time.Millisecond):
	case <-signals:
	}
	fmt.Fprintln(os.Stderr, "\nreplay: interrupted")
	os.Exit(interrupted)
}

// run runs the command line and returns the exit status, 0 or 1.
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
		for line := range strings.Lines(err.Error()) { // several errors have a line each
			lines = append(lines, recording.Plain(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  ")))
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
	{"Look closer:", []func() *cobra.Command{newRun, newPlot}},
	{"Recordings:", []func() *cobra.Command{newImport, newInfo, newExport}},
	{"On real memory, with Go's real collector:", []func() *cobra.Command{newLive, newCalibrate}},
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "replay",
		Short: "Replay recorded GPU workloads under garbage collection policies",
		Long: `replay runs recorded workloads event by event, on a virtual clock, under policies
that decide when a garbage collector runs. It compares the costs of the policies:
how long they hold the program, how much garbage they leave, and how often memory
runs out.

It needs no GPU. Built in are recordings of eleven PyTorch programs, of five Go
programs with C libraries, and of four Go programs with GoMLX on a GPU (array, dense,
conv, infer). Importers read your own recordings.`,
		Example: `  replay help environment                          # the variables that programs with eagergc read
  replay compare                                   # every policy on the built-in workloads
  replay compare my.arrows --limits 8GiB           # on a recording of your own
  replay import snapshot.pickle -o my.arrows       # from torch.cuda.memory._dump_snapshot
  replay info my.arrows                            # what is in it
  replay run my.arrows --policy cudajl --limit 1.5x --why`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().Var((*sizeFlag)(&maxMemory), "max-memory", "`bytes` that the reader of a file may hold, such as 2GiB (default: 16MiB and 30 times the file; the process takes at most twice that and 16MiB)")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [command | environment]",
		Short: "Describe a command, or the variables of the environment",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "environment" {
				return writeEnvironment(cmd.OutOrStdout())
			}
			cmd, _, err := root.Find(args)
			if err != nil {
				return err
			}
			return cmd.Help()
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

// writeEnvironment lists the variables of the environment that programs with eagergc read.
func writeEnvironment(w io.Writer) error {
	out := bufio.NewWriter(w)
	rows := table{{"variable", left + "values", left + "what it sets"}}
	for _, v := range pressure.Variables() {
		rows = append(rows, []string{v.Name, left + v.Values, left + v.About})
	}
	rows.print(out)
	fmt.Fprintln(out, "\nA value that cannot be read gives a warning in the log. With the import gc/auto a name that is\nmisspelt gives one, too.")
	return out.Flush()
}

// version returns the version of the module, which names the commit of a checkout, and the
// version of Go.
func version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return fmt.Sprintf("%s, built with %s", b.Main.Version, b.GoVersion)
}
