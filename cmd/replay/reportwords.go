package main

import (
	"crypto/sha256"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
	"github.com/eagergc/eagergc/sim/experiment"
)

func (b *pageBuilder) title() string {
	if w := b.g.Workloads; len(w) == 1 {
		return "When to collect garbage: " + w[0].Name
	}
	return fmt.Sprintf("When to collect garbage: %d recordings", len(b.g.Workloads))
}

func (b *pageBuilder) world() string {
	cost := costName(b.g.Costs[b.cost])
	if m := b.g.Machine; m != nil {
		cost = fmt.Sprintf("that of a machine where one that frees nothing takes %s (%s)", formatDuration(m.Cycle(0, 0, 0)), m.About)
	}
	return fmt.Sprintf("Each policy was replayed on the recorded allocations and waits, on a virtual clock; the cost of a collection: %s, of the refusal ladder: %s. "+
		"A pause counts as exposed only beyond what the program waited for the device anyway. A limit such as 1.5x is a factor of the "+
		"peak reachable bytes: the most that was in use at once.", cost, b.g.Ladder)
}

// lostBy says what the figures of a summary are.
func lostBy(g *experiment.Grid) string {
	return fmt.Sprintf("Time lost, %s: (exposed pause + %v x collector time) / recorded time", meanOver(g), sim.CPUPrice)
}

// at says which cell the details of a recording are of.
func (b *pageBuilder) at(workload int) string {
	c := typical(b.g, workload)
	l, cost := b.g.Limits[c.Limit], costName(b.g.Costs[c.Cost])
	if b.g.Machine != nil {
		cost = "costs of the machine"
	}
	return fmt.Sprintf("a limit of %s (%s), %s", l, formatBytes(l.Of(b.g.Workloads[workload])), cost)
}

func about(w *sim.Workload) string {
	return fmt.Sprintf("%s allocations, %s in all, %s waits of %s together, %s long; at most %s were reachable at once.",
		formatCount(w.Allocs), formatBytes(w.AllocatedBytes), formatCount(w.Syncs), formatDuration(w.Wait), formatDuration(w.Span), formatBytes(w.PeakReachable))
}

// cards are the first thing that is seen.
func (b *pageBuilder) cards() []card {
	g, r := b.g, b.ranks
	if r.Best < 0 {
		return nil
	}
	lost := func(p int) string { return lostText(g.Lost(b.cost, p, experiment.AllLimits)) }
	name := g.Contenders[r.Best].String()
	best := card{"Policy", name, fmt.Sprintf("loses %s of the time over all limits", lost(r.Best)), b.mark(name)}
	if r.Second >= 0 {
		best.About += fmt.Sprintf("; the next best, %s, loses %s", g.Contenders[r.Second], lost(r.Second))
	} else {
		best.About += "; no other policy ran"
	}
	cards := []card{best}
	if len(g.Workloads) == 1 {
		cards = append(cards, b.adviceCards(b.advice[0])...)
	} else {
		cards = append(cards, b.limitsCard())
	}
	if r.Never >= 0 && r.Never != r.Best {
		saved := g.Lost(b.cost, r.Never, experiment.AllLimits) - g.Lost(b.cost, r.Best, experiment.AllLimits)
		cards = append(cards, card{"Saved, against never collecting early", formatPercent(saved) + " of the time",
			fmt.Sprintf("never loses %s at the same limits", lost(r.Never)), ""})
	}
	if r.Optimum >= 0 {
		cards = append(cards, card{"Left to gain", formatPercent(max(0, g.Lost(b.cost, r.Best, experiment.AllLimits)-g.Lost(b.cost, r.Optimum, experiment.AllLimits))),
			fmt.Sprintf("%s, which knows the future, loses %s", g.Contenders[r.Optimum], lost(r.Optimum)), ""})
	}
	return cards
}

func (b *pageBuilder) mark(policy string) template.CSS {
	return template.CSS(chart.Hex(b.palette.Of(policy).Light))
}

// limitsCard sums up the limits of several recordings.
func (b *pageBuilder) limitsCard() card {
	least, most, n := 0.0, 0.0, 0
	for _, a := range b.advice {
		if a == nil {
			continue
		}
		f := float64(a.Limit) / float64(max(1, a.Reachable))
		if n == 0 || f < least {
			least = f
		}
		most = max(most, f)
		n++
	}
	if n == 0 {
		return card{"Limit", "none", fmt.Sprintf("no policy loses under %s on any of them", formatPercent(experiment.DefaultLost)), ""}
	}
	return card{"Limit", fmt.Sprintf("%sx to %sx", three(least), three(most)),
		fmt.Sprintf("of what is reachable at once: the smallest without a refusal that loses at most %s, on %d of %d recordings; each has its own below",
			formatPercent(experiment.DefaultLost), n, len(b.advice)), ""}
}

// adviceCards say which limit one recording needs, and what that saves.
func (b *pageBuilder) adviceCards(a *experiment.Advice) []card {
	if a == nil {
		return []card{{"Limit", "none", fmt.Sprintf("no policy loses under %s, however large the limit", formatPercent(experiment.DefaultLost)), ""}}
	}
	c := a.Choice
	cards := []card{{"Limit", formatBytes(a.Limit), fmt.Sprintf("the smallest, with %s: no refusal, %s of the time lost, p99 pause %s, %s of a core",
		a.Policy, formatPercent(c.Lost), formatDuration(c.P99), formatPercent(c.Core)), b.mark(a.Policy)}}
	for _, o := range a.Others {
		switch {
		case o.Policy != "never":
		case o.Needs > a.Limit:
			cards = append(cards, card{"Memory saved, against never collecting early", formatBytes(o.Needs - a.Limit),
				fmt.Sprintf("never needs %s to lose as little; at %s it loses %s", formatBytes(o.Needs), formatBytes(a.Limit), formatDuration(o.Exposed)), ""})
		case o.Exposed > c.Exposed:
			cards = append(cards, card{"Time saved, against never collecting early", formatDuration(o.Exposed - c.Exposed),
				fmt.Sprintf("never is held for %s at %s", formatDuration(o.Exposed), formatBytes(a.Limit)), ""})
		}
	}
	return append(cards, card{"Below this nothing helps", formatBytes(a.Reachable), "that much is reachable at once, garbage or not", ""})
}

// short is a recording in a line.
func (b *pageBuilder) short(workload int, a *experiment.Advice) string {
	w := b.g.Workloads[workload]
	if a == nil {
		return fmt.Sprintf("peak %s reachable, %s: no limit does", formatBytes(w.PeakReachable), formatDuration(w.Span))
	}
	return fmt.Sprintf("%s at %s (%sx), %s of the time lost", a.Policy, formatBytes(a.Limit), three(float64(a.Limit)/float64(w.PeakReachable)), formatPercent(a.Choice.Lost))
}

// runTable is what stands behind the memory chart.
func runTable(runs []chart.Run) table {
	t := table{{"policy", "cycles", "forced by a refusal", "failed", "exposed pause", "longest", "collector", "peak live", "mean live", "mean garbage", "took"}}
	for _, run := range runs {
		r := run.Result
		t = append(t, []string{r.Policy, formatCount(r.Collections), formatCount(r.RefusalCollections), formatCount(r.FailedAllocs), formatDuration(r.ExposedPause),
			formatDuration(r.MaxPause), formatDuration(r.GCBusy), formatBytes(r.PeakLive), formatBytes(int64(r.MeanLive)), formatBytes(int64(r.MeanGarbage)), formatDuration(r.Elapsed)})
	}
	return t
}

// reasons counts why each policy collected.
func reasons(runs []chart.Run) table {
	counts := table{{"policy", "decision", "reason", "times"}}
	for i := range runs {
		type key struct{ action, reason string }
		times := map[key]int{}
		var order []key
		for _, d := range runs[i].Log.Decisions {
			if d.Action == gc.Skip {
				continue
			}
			k := key{d.Action.String(), d.Reason}
			if times[k] == 0 {
				order = append(order, k)
			}
			times[k]++
		}
		for _, k := range order {
			counts = append(counts, []string{runs[i].Result.Policy, k.action, k.reason, formatCount(times[k])})
		}
		if n := runs[i].Result.RefusalCollections; n > 0 {
			counts = append(counts, []string{runs[i].Result.Policy, "ladder", "an allocation did not fit", formatCount(n)})
		}
	}
	return counts
}

// provenance says what the page was made of and with.
func provenance(cmd *cobra.Command, g *experiment.Grid, files []string) ([]entry, error) {
	all := []entry{
		{"replay", version()},
		{"machine", fmt.Sprintf("%s/%s, %d cores, %s; the replays do not depend on it", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())},
		{"command", commandLine(cmd, files)},
	}
	for i, w := range g.Workloads {
		from := "built in"
		if i < len(files) {
			if sum, size, err := digest(files[i]); err == nil {
				from = fmt.Sprintf("%s, %s, SHA-256 %s", filepath.Base(files[i]), formatBytes(size), sum)
			} else if !os.IsNotExist(err) {
				return nil, err
			}
		}
		all = append(all, entry{"recording " + w.Name, from})
	}
	return all, nil
}

// commandLine is the command as it could be typed.
func commandLine(cmd *cobra.Command, files []string) string {
	words := []string{cmd.CommandPath()}
	for _, f := range files {
		words = append(words, filepath.Base(f))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { words = append(words, fmt.Sprintf("--%s=%s", f.Name, f.Value)) })
	return strings.Join(words, " ")
}

// digest is the SHA-256 of a file and its size.
func digest(path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), n, err
}
