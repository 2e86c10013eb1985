// Command dense trains the toy model of CUDA.jl 5.4's announcement (one dense
// layer, 1000 -> 1, 300,000 observations, batches of 2048, Adam, float32) in the
// allocating style of an array library: every operation allocates its result and
// nothing is freed by hand. It compares policies side by side by the time that
// the training takes under a memory limit.
//
//	dense --pool cuda --limit 4GiB --policy never,cudajl,pacer --ballast 0,256MiB --runs 10
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	cmd := command(stdout)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(stderr, "dense:", err)
		return 1
	}
	return 0
}

type options struct {
	shape
	pool     string
	device   int
	limit    string
	chunk    string
	policies string
	ballasts string
	epochs   int
	runs     int
	check    int
	log      bool
	poll     time.Duration
}

func command(stdout io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "dense",
		Short:         "Train the toy model of CUDA.jl 5.4's announcement under a memory limit",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return o.compare(stdout) },
	}
	f := cmd.Flags()
	f.StringVar(&o.pool, "pool", "host", "memory: host, cuda (our pool over device memory) or cuda-async (the driver's)")
	f.IntVar(&o.device, "device", 0, "number of the GPU")
	f.StringVar(&o.limit, "limit", "4GiB", "hard limit of the pool; empty for none")
	f.StringVar(&o.chunk, "chunk", "0", "size of the chunks that memory of the GPU is mapped in; 0 for the pool's choice")
	f.StringVar(&o.policies, "policy", "never,cudajl", "policies to compare, in turn within each run")
	f.StringVar(&o.ballasts, "ballast", "0", "pointerful Go heap beside the model, which makes collections dear; several in turn")
	f.IntVar(&o.epochs, "epochs", 100, "epochs of each training")
	f.IntVar(&o.runs, "runs", 1, "trainings of each policy")
	f.IntVar(&o.check, "check", 2, "epochs whose loss is checked against a float64 reference")
	f.IntVar(&o.observations, "observations", 300_000, "rows of the data")
	f.IntVar(&o.features, "features", 1000, "columns of the data")
	f.IntVar(&o.batch, "batch", 2048, "rows of a batch")
	f.DurationVar(&o.poll, "poll", 200*time.Microsecond, "how long a wait for the GPU polls before it blocks in the driver")
	f.BoolVar(&o.log, "log", false, "print a line for each collection and each epoch")
	return cmd
}

func (o *options) specs() (specs []policy.Spec, err error) {
	for _, text := range policy.SplitList(o.policies) {
		s, err := policy.Parse(text)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// sizes reads a list of sizes, of which 0 is one.
func sizes(list string) (bytes []int64, err error) {
	for _, text := range policy.SplitList(list) {
		l := pressure.Limit{}
		if text != "0" {
			if l, err = pressure.ParseLimit(text); err != nil {
				return nil, err
			}
		}
		bytes = append(bytes, l.Bytes)
	}
	return bytes, nil
}
