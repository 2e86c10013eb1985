package command

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
)

func (b *pageBuilder) title() string {
	if w := b.Grid.Workloads; len(w) == 1 {
		return "When to collect garbage: " + w[0].Name
	}
	return fmt.Sprintf("When to collect garbage: %d recordings", len(b.Grid.Workloads))
}

func (b *pageBuilder) world() string {
	cost := experiment.CostName(b.Grid.Costs[b.Cost])
	if m := b.Grid.Machine; m != nil {
		cost = fmt.Sprintf("that of a machine where one that frees nothing takes %s (%s)", chart.Duration(m.Cycle(0, 0, 0)), m.About)
	}
	return fmt.Sprintf("Each policy was replayed on the recorded allocations and waits, on a virtual clock. The cost of a collection is %s. "+
		"The ladder, which runs when an allocation does not fit, takes %s. A pause is exposed only beyond the time in which the program "+
		"waited for the device anyway. A limit such as 1.5x is a factor of the peak reachable bytes: the most that was in use at once.", cost, b.Grid.Ladder)
}

func card(name, value, about, mark string) chart.Card {
	return chart.Card{Name: name, Value: value, About: about, Mark: mark}
}

// cards returns the cards at the top of the page.
func (b *pageBuilder) cards() []chart.Card {
	g, r := b.Grid, b.Ranks
	if r.Best < 0 {
		return nil
	}
	lost := func(p int) string { return chart.LostText(g.Lost(b.Cost, p, experiment.AllLimits)) }
	name := g.Contenders[r.Best].String()
	best := card("Policy", name, fmt.Sprintf("loses %s of the time in the mean over all limits of the table", lost(r.Best)), b.Palette.Mark(name))
	if r.Second >= 0 {
		best.About += fmt.Sprintf("; the next best, %s, loses %s", g.Contenders[r.Second], lost(r.Second))
	} else {
		best.About += "; no other policy ran"
	}
	cards := []chart.Card{best}
	if len(g.Workloads) == 1 {
		cards = append(cards, b.AdviceCards(b.advice[0], b.questions[0].Most)...)
	} else {
		cards = append(cards, b.limitsCard())
	}
	if r.Never >= 0 && r.Never != r.Best {
		saved := g.Lost(b.Cost, r.Never, experiment.AllLimits) - g.Lost(b.Cost, r.Best, experiment.AllLimits)
		cards = append(cards, card("Saved, against never collecting early", chart.Percent(saved)+" of the time",
			fmt.Sprintf("never loses %s at the same limits", lost(r.Never)), ""))
	}
	if r.Optimum >= 0 {
		cards = append(cards, card("Left to gain", chart.Percent(max(0, g.Lost(b.Cost, r.Best, experiment.AllLimits)-g.Lost(b.Cost, r.Optimum, experiment.AllLimits))),
			fmt.Sprintf("%s, which knows the future, loses %s", g.Contenders[r.Optimum], lost(r.Optimum)), ""))
	}
	return cards
}

// limitsCard sums up the limits of several recordings.
func (b *pageBuilder) limitsCard() chart.Card {
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
		return card("Limit", "none", fmt.Sprintf("no policy loses under %s on any of them", chart.Percent(experiment.DefaultLost)), "")
	}
	return card("Limit", fmt.Sprintf("%sx to %sx", chart.Number(least), chart.Number(most)),
		fmt.Sprintf("of what is reachable at once: the smallest without a refusal that loses at most %s, on %d of %d recordings; each has its own below",
			chart.Percent(experiment.DefaultLost), n, len(b.advice)), "")
}

// short describes a recording in a line.
func (b *pageBuilder) short(workload int, a *experiment.Advice) string {
	w := b.Grid.Workloads[workload]
	if a == nil {
		return fmt.Sprintf("peak %s reachable, %s: no limit is enough", pressure.Bytes(w.PeakReachable).String(), chart.Duration(w.Span))
	}
	return fmt.Sprintf("%s at %s (%sx), %s of the time lost", a.Policy, pressure.Bytes(a.Limit).String(), chart.Number(float64(a.Limit)/float64(w.PeakReachable)), chart.Percent(a.Choice.Lost))
}

// provenance names the sources and the tools of the page.
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
				from = fmt.Sprintf("%s, %s, SHA-256 %s", filepath.Base(files[i]), pressure.Bytes(size).String(), sum)
			} else if !os.IsNotExist(err) {
				return nil, err
			}
		}
		all = append(all, entry{"recording " + w.Name, from})
	}
	return all, nil
}

// commandLine returns the command as a user could type it.
func commandLine(cmd *cobra.Command, files []string) string {
	words := []string{cmd.CommandPath()}
	for _, f := range files {
		words = append(words, filepath.Base(f))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { words = append(words, fmt.Sprintf("--%s=%s", f.Name, f.Value)) })
	return strings.Join(words, " ")
}

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
