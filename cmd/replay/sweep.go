package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
)

func newSweep() *cobra.Command {
	var (
		policies, limits, out, smallest string
		price                           price
	)
	cmd := &cobra.Command{
		Use:   "sweep [FILE...] --policies LIST",
		Short: "Run parameters, limits and costs by the thousand; find Pareto fronts and smallest limits",
		Long: `sweep replays every workload under every combination of policy, limit and
cycle. Lists may have braces, which stand for each of their values:

  {a|b|c}       these
  {0.5..0.9/5}  five values from 0.5 to 0.9, evenly spaced
  {1ms..1s*7}   seven values from 1ms to 1s, evenly spaced in their logarithm

It prints, for every workload, limit and cycle, the Pareto front of exposed pause
against collector time and against mean memory. Results go to the folder of -o
as they come, one JSON object to a line; a sweep that was cut off and is run
again leaves out what is there.

With --smallest, it prints the smallest limit at which each policy meets a
condition instead, found by bisection; --limits is not used then.`,
		Example: `  replay sweep --policies 'never,cudajl,threshold:{0.5..0.95/10},periodic:{1ms..1s*10}' --limits '{1.1x..6x/20}'
  replay sweep my.arrows --policies cudajl --limits 1.5x --cycle '{0.1ms..1s*13}' -o results/cost
  replay sweep --policies never,cudajl --smallest 'refusal_collections==0'`,
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, files []string) error {
			c, err := newComparison(cmd.Context(), files, policies, limits, &price)
			if err != nil {
				return err
			}
			if smallest != "" {
				return c.smallest(cmd.OutOrStdout(), smallest)
			}
			if err := c.sweep(out, cmd.ErrOrStderr()); err != nil {
				return err
			}
			return c.writeFronts(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&policies, "policies", "", "`list` of policies and optima")
	f.StringVar(&limits, "limits", "{1.25x..4x*6}", "`list` of limits: bytes (8GiB) or factors of the peak reachable bytes (1.5x)")
	price.bind(cmd, "10ms", "2x")
	f.StringVar(&smallest, "smallest", "", "find the smallest limit that meets this `condition`, such as refusal_collections==0")
	f.StringVarP(&out, "output", "o", "", "`folder` for the results; empty writes none")
	_ = cmd.MarkFlagRequired("policies")
	_ = cmd.RegisterFlagCompletionFunc("policies", completePolicies)
	return cmd
}

// sweep runs the cells that the folder has no result of yet.
func (c *comparison) sweep(out string, stderr io.Writer) error {
	if out == "" {
		return c.run(stderr)
	}
	path := filepath.Join(out, "sweep.jsonl")
	file, known, err := openSweep(out, path)
	if err != nil {
		return err
	}
	defer file.Close()
	cells := c.cells()
	c.outcomes = make([]sim.Outcome, len(cells))
	var todo []int
	for i, cell := range cells {
		if r, ok := known[cellKeyOf(cell)]; ok {
			c.outcomes[i] = sim.Outcome{Result: r}
		} else {
			todo = append(todo, i)
		}
	}
	bar := newProgress(stderr, "runs", len(todo))
	defer bar.done()
	for len(todo) > 0 {
		part := todo[:min(len(todo), 512)]
		todo = todo[len(part):]
		if err := c.runPart(file, cells, part); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		bar.set(cap(todo) - len(todo))
	}
	fmt.Fprintf(stderr, "replay: %s has %d results\n", path, len(cells))
	return nil
}

// runPart runs some cells and appends their results to the file.
func (c *comparison) runPart(file *os.File, cells []sim.Cell, part []int) error {
	batch := make([]sim.Cell, len(part))
	for k, i := range part {
		batch[k] = cells[i]
	}
	var lines bytes.Buffer
	for k, o := range sim.RunAll(c.ctx, batch, nil) {
		c.outcomes[part[k]] = o
		switch {
		case o.Err == nil:
			text, err := json.Marshal(o.Result)
			if err != nil {
				return err
			}
			lines.Write(append(text, '\n'))
		case !errors.Is(o.Err, sim.ErrNoSchedule):
			return o.Err
		}
	}
	_, err := file.Write(lines.Bytes())
	return err
}

// openSweep opens the results of a sweep for more, and reads what is there. A
// last line that was cut off is cut away.
func openSweep(out, path string) (*os.File, map[cellKey]sim.Result, error) {
	dir, err := openFolder(out)
	if err != nil {
		return nil, nil, err
	}
	defer dir.close()
	f, err := dir.root.OpenFile("sweep.jsonl", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	results, err := parseResults(path, bytes.NewReader(text[:whole]))
	if err == nil {
		err = f.Truncate(int64(whole))
	}
	if err == nil {
		_, err = f.Seek(int64(whole), io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, byCell(results), nil
}

func cellKeyOf(c sim.Cell) cellKey {
	g := c.Config.Cost.Of(0, 0)
	return cellKey{c.Workload.Name, c.Contender.String(), c.Config.Limit, int64(g), int64(c.Config.Ladder.Of(g))}
}

// writeFronts prints the Pareto fronts of every workload, limit and cost.
func (c *comparison) writeFronts(w io.Writer) error {
	out := &printer{w: w}
	pause, err := sim.MetricNamed("exposed_pause")
	if err != nil {
		return err
	}
	for _, name := range []string{"gc_busy", "mean_live"} {
		against, err := sim.MetricNamed(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Pareto front of exposed pause against %s\n", name)
		for i, load := range c.workloads {
			for l := range c.limits {
				for k := range c.costs {
					fmt.Fprintf(out, "\n%s, limit %s, %s\n", load.Name, c.limits[l], c.costName(k))
					c.front(i, l, k, pause, against).print(out)
				}
			}
		}
		fmt.Fprintln(out)
	}
	return out.err
}

func (c *comparison) front(workload, limit, cost int, x, y sim.Metric) grid {
	var results []sim.Result
	for p := range c.contenders {
		if o := c.at(workload, limit, cost, p); o.Err == nil && o.FailedAllocs == 0 {
			results = append(results, o.Result)
		}
	}
	g := grid{{"policy", "pause", "collector", "mean live", "refusals"}}
	for _, i := range sim.Pareto(results, x, y) {
		r := &results[i]
		g = append(g, []string{r.Policy, formatDuration(r.ExposedPause), formatDuration(r.GCBusy), formatBytes(int64(r.MeanLive)), formatCount(r.RefusalCollections)})
	}
	return g
}

// smallest prints the smallest limit that meets a condition, for each policy,
// cost and workload.
func (c *comparison) smallest(w io.Writer, text string) error {
	cond, err := parseCondition(text)
	if err != nil {
		return err
	}
	if cond.relative {
		return fmt.Errorf("condition %q: the smallest limit has no baseline", text)
	}
	limits, err := c.minLimits(cond)
	if err != nil {
		return err
	}
	out := &printer{w: w}
	fmt.Fprintf(out, "Smallest limit at which %s, as a factor of the peak reachable bytes\n", cond.text)
	for k := range c.costs {
		head := []string{c.costName(k)}
		for _, load := range c.workloads {
			head = append(head, load.Name)
		}
		g := grid{head}
		for p, name := range c.contenders {
			row := []string{name.String()}
			for i, load := range c.workloads {
				row = append(row, limitText(limits[(k*len(c.contenders)+p)*len(c.workloads)+i], load))
			}
			g = append(g, row)
		}
		fmt.Fprintln(out)
		g.print(out)
	}
	return out.err
}

func limitText(bytes int64, w *sim.Workload) string {
	if bytes < 0 {
		return "none"
	}
	return strings.TrimSuffix(three(float64(bytes)/float64(w.PeakReachable)), ".") + "x"
}

// minLimits bisects side by side; -1 stands for no limit at all.
func (c *comparison) minLimits(cond condition) ([]int64, error) {
	out := make([]int64, len(c.costs)*len(c.contenders)*len(c.workloads))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range out {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			load := i % len(c.workloads)
			p := i / len(c.workloads) % len(c.contenders)
			k := i / len(c.workloads) / len(c.contenders)
			cfg := sim.Config{Cost: c.costs[k], Ladder: c.ladder}
			n, err := sim.MinLimit(c.workloads[load], c.contenders[p], cfg, 1e-3, func(r *sim.Result) bool { return cond.holds(r, nil) })
			if err != nil {
				n = -1
			}
			out[i] = n
		})
	}
	wg.Wait()
	return out, c.ctx.Err()
}
