// Measure runs programs of GoMLX that forget or finalize their tensors, and prints their times in
// Go's benchmark format. See results/2026-11-23-gomlx.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// An experiment is the content of the flags.
type experiment struct {
	plugin                           string
	arena, device                    int64 // MiB
	programs, manners, heaps, limits string
	rounds, steps, small             int
	seconds                          time.Duration
	record                           string

	raw       *memo
	reachable map[string]int64 // bytes of a program
	out       io.Writer
}

func run(args []string, out io.Writer) (err error) {
	e := experiment{out: out, reachable: map[string]int64{}}
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.StringVar(&e.plugin, "plugin", "", "path of a PJRT plugin; simplego if empty")
	flags.Int64Var(&e.arena, "arena", 4096, "MiB that the plugin's allocator takes of the device")
	flags.Int64Var(&e.device, "device", 81079, "MiB that the plugin takes for the memory of the device")
	flags.StringVar(&e.programs, "programs", "array", "of array, cache, dense, train, serve")
	flags.StringVar(&e.manners, "manners", "hand,default", "asis, hand, hand+tick5ms, tick100ms, wrapped (and finalized by hand), default, or a policy")
	flags.StringVar(&e.heaps, "heaps", "0", "MiB of Go pointers beside the program")
	flags.StringVar(&e.limits, "limits", "4", "of the wrapper: times what the program can reach")
	flags.IntVar(&e.rounds, "rounds", 1, "of all manners in turn")
	flags.IntVar(&e.steps, "steps", 1000, "of a run")
	flags.IntVar(&e.small, "small", 1, "divides the programs' sizes")
	flags.DurationVar(&e.seconds, "seconds", 400*time.Millisecond, "a run is cut off after")
	flags.StringVar(&e.record, "record", "", "file of a recording; with wrapped, arrays are dropped when the program finalizes them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if e.raw, err = e.open(); err != nil {
		return err
	}
	return e.cells()
}

// cells runs all cells of the flags.
func (e *experiment) cells() error {
	heaps, err := list(e.heaps)
	if err != nil {
		return fmt.Errorf("-heaps: %w", err)
	}
	limits, err := list(e.limits)
	if err != nil {
		return fmt.Errorf("-limits: %w", err)
	}
	for _, heap := range heaps {
		pointers := fill(int(heap * (1 << 20)))
		for name := range strings.SplitSeq(e.programs, ",") {
			if err := e.compile(name); err != nil {
				fmt.Fprintf(e.out, "# %s: %.300v\n", name, err)
				continue
			}
			for _, factor := range limits {
				for range e.rounds {
					for manner := range strings.SplitSeq(e.manners, ",") {
						c := &cell{experiment: e, name: name, manner: manner, heap: heap, factor: factor}
						if err := c.run(); err != nil {
							return fmt.Errorf("%s, %s: %w", name, manner, err)
						}
					}
				}
			}
		}
		runtime.KeepAlive(pointers)
	}
	return nil
}

func list(text string) (all []float64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseFloat(item, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

type node struct{ a, b, c *node }

// fill makes a heap of pointers with the given bytes. They form no list, so marking can run in
// parallel.
func fill(bytes int) []*node {
	all := make([]*node, bytes/40)
	for i := range all {
		all[i] = new(node)
		if i > 0 {
			all[i].a, all[i].b = all[i/2], all[i-1-i/3]
		}
	}
	return all
}
