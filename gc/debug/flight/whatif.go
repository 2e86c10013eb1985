package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// others are the policies that the one in use is compared with: those of a report.
var others = []string{"never", "cudajl", "sqrt", "v8step", gc.DefaultPolicy}

// ErrTooShort reports that nothing was recorded yet that could be replayed.
var ErrTooShort = errors.New("flight: nothing to replay yet: no allocations were recorded; is the recorder that of the collector and of its pools?")

// A Replay is what one policy would have done in the last minutes.
type Replay struct {
	sim.Result
	InUse bool // it is the policy of the collector
}

// An Answer says what policies would have done in the last minutes.
type Answer struct {
	Span     time.Duration
	Limit    int64         // of the replays, in bytes
	Assumed  bool          // no limit is known: it is one and a half times what was reachable
	Cycle    time.Duration // that each took in the replays: what the collector expects now
	Replays  []Replay      // the least lost first
	Cycles   int           // that really ended
	Held     time.Duration // for which callers were really held
	Explicit float64       // share of the bytes given back that the program freed itself, whose end is known exactly
}

// WhatIf replays the last minutes under the policy of c and under others, with its limit
// and the cost of a cycle that it has learned. It takes one core for some
// milliseconds for each thousand events, and ends early with ctx.
func (r *Recorder) WhatIf(ctx context.Context, c *gc.Collector) (*Answer, error) {
	t, err := r.Trace()
	if err != nil {
		return nil, err
	}
	w, err := sim.Compile(t, sim.SpaceOf(t))
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrTooShort, err)
	}
	a := &Answer{Span: w.Span, Cycle: c.Stats().Cost}
	a.count(t, w.Space)
	for _, s := range c.Samples() {
		if s.Space == w.Space {
			a.Limit += s.Limit
		}
	}
	if a.Limit == 0 {
		a.Limit, a.Assumed = w.PeakReachable+w.PeakReachable/2, true
	}
	policies := append([]string{c.Policy()}, others...)
	for i, name := range policies {
		if slices.Contains(policies[:i], name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		spec, err := gc.Parse(name)
		if err != nil {
			continue // a policy of the program's own
		}
		result := sim.Run(w, spec.New(), sim.Config{Limit: a.Limit, Cost: sim.Fixed(a.Cycle), Ladder: sim.Ladder{Factor: 2}})
		a.Replays = append(a.Replays, Replay{result, i == 0})
	}
	slices.SortStableFunc(a.Replays, func(x, y Replay) int { return int(x.Objective() - y.Objective()) })
	return a, nil
}

// count counts what really happened.
func (a *Answer) count(t *trace.Trace, space pressure.Space) {
	sizes := make(map[uint64]int64)
	var own, all int64
	for _, e := range t.Events {
		if e.Space != space {
			continue
		}
		switch e.Kind {
		case trace.Alloc:
			sizes[e.ID] = e.Bytes
		case trace.Free:
			all += sizes[e.ID]
			if e.Aux == trace.FreeExplicit {
				own += sizes[e.ID]
			}
		case trace.Cycle:
			a.Cycles++
		case trace.Mark:
			if t.Label(e) == gc.PauseLabel {
				a.Held += e.Duration
			}
		}
	}
	a.Explicit = float64(own) / float64(max(1, all))
}

// WriteWhatIf writes the answer of [Recorder.WhatIf] for people.
func (r *Recorder) WriteWhatIf(ctx context.Context, c *gc.Collector, w io.Writer) error {
	a, err := r.WhatIf(ctx, c)
	if err != nil {
		return err
	}
	return a.Write(w)
}

// Write writes an answer for people.
func (a *Answer) Write(w io.Writer) error {
	limit := "the limit of " + pressure.Bytes(a.Limit).String()
	if a.Assumed {
		limit = "an assumed limit of " + pressure.Bytes(a.Limit).String() + ", 1.5 times what was reachable at most (none is set)"
	}
	fmt.Fprintf(w, "The last %v again, in the simulator, with %s and cycles of %v:\n\n", a.Span.Round(time.Millisecond), limit, a.Cycle.Round(time.Microsecond))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "policy\tcallers held\tlongest\tcycles\trefusals\tcollector\tmean live\tpeak live\t\n")
	for _, r := range a.Replays {
		name := r.Policy
		if r.InUse {
			name += " (in use)"
		}
		fmt.Fprintf(t, "%s\t%v\t%v\t%d\t%d\t%v\t%v\t%v\t\n", name, r.ExposedPause.Round(time.Microsecond), r.MaxPause.Round(time.Microsecond),
			r.Collections, r.RefusalCollections, r.GCBusy.Round(time.Microsecond), pressure.Bytes(int64(r.MeanLive)), pressure.Bytes(r.PeakLive))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\n", wrap(a.verdict()), "\n\n", wrap(fmt.Sprintf("Really there were %d cycles, and callers were held for %v. Of the bytes given back the program freed %.0f %% itself. "+
		"The others count as reachable until a real cycle found them: a policy that collects more often could have freed those sooner, which nobody can see in this recording. "+
		"For a limit that suits, download the recording and ask replay advise.",
		a.Cycles, a.Held.Round(time.Microsecond), 100*a.Explicit)), "\n")
	return err
}

// wrap breaks a text into lines about as wide as the table.
func wrap(text string) string {
	var out strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		if column > 0 && column+len(word) > 92 {
			out.WriteByte('\n')
			column = 0
		} else if column > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(word)
		column += len(word) + 1
	}
	return out.String()
}

// verdict says which policy loses least.
func (a *Answer) verdict() string {
	best := a.Replays[0]
	lost := func(r Replay) string {
		return fmt.Sprintf("%.3g %%", 100*float64(r.Objective())/float64(max(1, a.Span)))
	}
	text := fmt.Sprintf("%s loses least: %s of the time (callers held + %v x collector time).", best.Policy, lost(best), sim.CPUPrice)
	for _, r := range a.Replays {
		if r.InUse && r.Policy != best.Policy {
			text += fmt.Sprintf(" %s, which is in use, loses %s.", r.Policy, lost(r))
		}
	}
	return text
}
