package command

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/perfetto"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// perfettoRuns replays a recording under the policies of a setting.
func perfettoRuns(s *setting, file string) ([]perfetto.Run, error) {
	const slots = 20_000 // of a counter: more than any screen shows at once
	g, err := s.grid([]string{file})
	if err != nil {
		return nil, err
	}
	var runs []perfetto.Run
	for _, r := range chart.LogRuns(g, experiment.Cell{}, slots, true) {
		runs = append(runs, perfettoRun(&r, fmt.Sprintf("%s, limit %s, %s", r.Result.Policy, g.Limits[0], experiment.CostName(g.Costs[0]))))
	}
	return runs, nil
}

// perfettoRun turns the log of a run into events.
func perfettoRun(r *chart.Run, name string) perfetto.Run {
	out := perfetto.Run{Name: name}
	for _, l := range r.Levels {
		out.Levels = append(out.Levels, perfetto.Level{Time: int64(l.At), Reachable: l.Live - l.Garbage, Garbage: l.Garbage})
	}
	texts := new(trace.Trace)
	labels := recording.NewLabeler(texts, nil)
	for _, c := range r.Log.Cycles {
		if c.Trigger == gc.TriggerRefusal {
			out.Events = append(out.Events, trace.Event{Time: int64(c.Start), Kind: trace.Refuse, Duration: c.Exposed})
		}
		out.Events = append(out.Events, trace.Event{Time: int64(c.Start), Kind: trace.Cycle, Duration: c.Duration, Bytes: c.Freed, Aux: uint32(c.Trigger)})
	}
	for _, p := range r.Log.Pauses {
		out.Events = append(out.Events, trace.Event{Time: int64(p.At), Kind: trace.Mark, Duration: p.Length, Aux: labels.Label("exposed pause")})
	}
	for _, d := range chosen(r.Log) {
		out.Events = append(out.Events, trace.Event{Time: int64(d.Now), Kind: trace.Decision, Bytes: int64(d.Action), Aux: labels.Label(d.Reason)})
	}
	slices.SortStableFunc(out.Events, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	out.Labels = texts.Labels
	return out
}

// chosen returns the decisions that started a cycle.
func chosen(log *sim.Log) (some []sim.Decided) {
	for _, d := range log.Decisions {
		if d.Action != gc.Skip {
			some = append(some, d)
		}
	}
	return some
}
