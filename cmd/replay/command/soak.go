package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/pool/soak"
	"github.com/eagergc/eagergc/pressure"
)

func newSoak() *cobra.Command {
	var (
		cfg    soak.Config
		limit  string
		format string
	)
	cmd := &cobra.Command{
		Use:   "soak --for TIME",
		Short: "Drive a host pool with a mixed load under faults, and check it throughout",
		Long: `soak tests a pool for a long time. Several goroutines allocate, write, read back,
drop and free. Meanwhile the memory below the pool refuses, fails, is slow and
panics, policies are switched, and the pool is trimmed. soak prints what was done
and what went wrong. It exits with status 1 if anything went wrong.`,
		Example: `  replay soak --for 20s
  replay soak --for 20m --seed 7 --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := pressure.ParseLimit(limit)
			if err != nil || l.Percent != 0 || l.Bytes <= 0 {
				return fmt.Errorf("--limit %q: want a size such as 256MiB", limit)
			}
			cfg.Limit = l.Bytes
			r, err := soak.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if format == "json" {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			} else {
				out := newPrinter(cmd.OutOrStdout())
				writeSoak(out, r)
				err = out.err
			}
			if err == nil && !r.OK() {
				err = errors.New("soak: something went wrong: see the report")
			}
			return err
		},
	}
	f := cmd.Flags()
	f.DurationVar(&cfg.For, "for", 20*time.Second, "`time` to go on")
	f.Uint64Var(&cfg.Seed, "seed", 1, "of the load and the faults; goroutines still race")
	f.IntVar(&cfg.Workers, "workers", 4, "goroutines that allocate")
	f.StringVar(&limit, "limit", "256MiB", "hard limit of the pool, a `size`")
	formatFlag(cmd, &format, "", "text", "json")
	return cmd
}

func writeSoak(out *printer, r *soak.Report) {
	fmt.Fprintf(out, "operations    %s in %.1f s, %s allocated\n", formatCount(int(r.Operations)), r.Seconds, formatBytes(r.Bytes))
	fmt.Fprintf(out, "faults        refuse %d, outage %d, slow %d, release %d, sync %d, info %d, panic %d\n", r.Faults["refuse"], r.Faults["outage"],
		r.Faults["slow"], r.Faults["release"], r.Faults["sync"], r.Faults["info"], r.Faults["panic"])
	fmt.Fprintf(out, "out of memory %d; %d warnings\n", r.OutOfMemory, r.Warnings)
	fmt.Fprintf(out, "cycles        %d\n", r.Cycles)
	fmt.Fprintf(out, "longest stall %s (%s)\n", formatDuration(time.Duration(r.LongestNs)), r.LongestOp)
	fmt.Fprintf(out, "go heap       %s at the start, %s at the end\n", formatBytes(int64(r.HeapStart)), formatBytes(int64(r.HeapEnd)))
	fmt.Fprintf(out, "leaks         %s live, %s reserved\n", formatBytes(r.LeakedLive), formatBytes(r.LeakedHeld))
	fmt.Fprintf(out, "violations    %d\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(out, "  %s\n", v)
	}
}
