package chart

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// Explain says what a contender saw and answered last before a time of the recording,
// and which cycles came before and after. The log must have all decisions.
func Explain(c experiment.Contender, log *sim.Log, at time.Duration) string {
	out := new(strings.Builder)
	ds := log.Decisions
	next := sort.Search(len(ds), func(i int) bool { return ds[i].Trace > at })
	if next == 0 {
		fmt.Fprintf(out, "%s had not been asked by %v.\n", c, at)
	} else {
		d := &ds[next-1]
		fmt.Fprintf(out, "%s was last asked at %v, before %s, and answered %v: %s.\n", c, d.Trace, where(d), d.Action, d.Reason)
		explainPoint(out, &d.Point)
		if d.Wake > 0 {
			fmt.Fprintf(out, "  wake       %s: no allocation asks before live + request reaches this, or a cycle ends\n", wakeText(d.Wake))
		}
	}
	if next < len(ds) {
		d := &ds[next]
		fmt.Fprintf(out, "It was asked again at %v, before %s, and answered %v: %s.\n", d.Trace, where(d), d.Action, d.Reason)
	} else {
		fmt.Fprintln(out, "It was not asked again.")
	}
	explainCycles(out, log, ds, next)
	return out.String()
}

func where(d *sim.Decided) string {
	if d.At == policy.Sync {
		return fmt.Sprintf("a wait of %s", pressure.Duration(d.Wait))
	}
	return fmt.Sprintf("an allocation of %s", pressure.Bytes(d.Request).String())
}

func wakeText(wake int64) string {
	if wake >= 1<<61 {
		return "never"
	}
	return pressure.Bytes(wake).String()
}

func explainPoint(w io.Writer, p *policy.Point) {
	fmt.Fprintf(w, "  now        %v on the clock of the run\n", p.Now)
	fmt.Fprintf(w, "  live       %s of %s: pressure %s\n", pressure.Bytes(p.Sample.Live).String(), pressure.Bytes(p.Sample.Limit).String(), pressure.Percent(p.Sample.Pressure()))
	fmt.Fprintf(w, "  since the last cycle: allocated %s, freed by the program %s; live after it %s\n", pressure.Bytes(p.Allocated).String(), pressure.Bytes(p.Freed).String(), pressure.Bytes(p.LiveAfter).String())
	fmt.Fprintf(w, "  a cycle    would cost %s; %d so far", pressure.Duration(p.Cost), p.Cycles)
	if p.Running {
		fmt.Fprint(w, ", one under way")
	}
	fmt.Fprintln(w)
}

// explainCycles writes the cycles around decision next: the run's clock tells
// which they are.
func explainCycles(w io.Writer, log *sim.Log, ds []sim.Decided, next int) {
	now := time.Duration(0)
	if next > 0 {
		now = ds[next-1].Now
	}
	after := sort.Search(len(log.Cycles), func(i int) bool { return log.Cycles[i].Start >= now })
	show := func(name string, i int) {
		if i < 0 || i >= len(log.Cycles) {
			fmt.Fprintf(w, "  %s none\n", name)
			return
		}
		c := &log.Cycles[i]
		fmt.Fprintf(w, "  %s at %v, asked for by %v: took %s, exposed %s, freed %s, left %s\n", name, c.Start, c.Trigger,
			pressure.Duration(c.Duration), pressure.Duration(c.Exposed), pressure.Bytes(c.Freed).String(), pressure.Bytes(c.LiveAfter).String())
	}
	fmt.Fprintln(w, "Cycles, on the clock of the run:")
	show("before", after-1)
	show("then  ", after)
}
