package main

import (
	"context"
	"fmt"
	"math"

	"github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/floats"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// fewWaits is the least number of waits of a program whose recorder runs its cycles at waits. In
// other programs, each sixteenth of the peak that is allocated counts as a wait.
const fewWaits = 128

// A grain is the outcomes on recordings whose deaths are known only from a cycle at every nth wait.
type grain struct {
	Every int     // 0 keeps the true deaths
	Share float64 // argument of [recording.Earlier]: 1 keeps the deaths of the recorder, 0.5 moves them half way back
	Grid  *experiment.Grid
	lost  [][]float64 // time lost, by cost and contender
}

// granularities judges every policy with its default parameters, and cudajl with the parameters of
// its authors.
func granularities(ctx context.Context, programs []*trace.Trace) (folder, error) {
	var names []string
	for _, p := range policy.List() {
		names = append(names, p.Name)
	}
	grains, err := granulate(ctx, programs, contenders(append(names, "cudajl:poll=50us", "cudajl:poll=50us,overlap=true")...))
	if err != nil {
		return nil, err
	}
	page, err := writeGranularity(grains)
	return folder{"report.md": page, "cells.csv": cellsOf(grains[0].Grid)}, err
}

// granulate replays programs with their true deaths, and with later and later ones. All deaths of
// the programs must be known.
func granulate(ctx context.Context, programs []*trace.Trace, who []experiment.Contender) ([]*grain, error) {
	grains := []*grain{{Share: 1}}
	for _, share := range []float64{1, 0.5, 0} {
		for _, every := range []int{1, 4, 16, 64} {
			grains = append(grains, &grain{Every: every, Share: share})
		}
	}
	for _, g := range grains {
		var seen []*trace.Trace
		for _, p := range programs {
			if g.Every > 0 {
				p = thin(p, g.Every)
				if g.Share < 1 {
					p, _ = recording.Earlier(p, g.Share)
				}
			}
			seen = append(seen, p)
		}
		loads, err := compile(seen)
		if err != nil {
			return nil, err
		}
		g.Grid = &experiment.Grid{Workloads: loads, Contenders: who, Limits: factorLimits(trialLimits), Costs: pageCosts[:2], Ladder: sim.Ladder{Factor: 2}}
		if g.Share == 0 {
			continue // used for the bounds of peaks alone
		}
		if err := g.Grid.Run(ctx, nil); err != nil {
			return nil, err
		}
		for cost := range g.Grid.Costs {
			var lost []float64
			for p := range who {
				outcomes := g.Grid.Select(p, func(c experiment.Cell) bool { return c.Cost == cost })
				lost = append(lost, experiment.Mean(outcomes, slower)-1)
			}
			g.lost = append(g.lost, lost)
		}
	}
	return grains, nil
}

// thin returns t as a recorder would write it that runs a cycle at every nth wait. Each object ends
// at the first such wait after its death.
func thin(t *trace.Trace, every int) *trace.Trace {
	out := *t
	out.Events = nil
	about := recording.StatsOf(t)
	byBytes, grain := int64(0), max(1, about.PeakReachable/16)
	if about.Syncs >= fewWaits {
		grain = math.MaxInt64
	}
	var dead []trace.Event
	size := make(map[uint64]int64)
	waits := 0
	for _, e := range t.Events {
		wait := e.Kind == trace.Sync && grain == math.MaxInt64
		switch {
		case e.Kind == trace.Drop || e.Kind == trace.Free && e.Aux == trace.FreeCycle:
			e.Kind, e.Aux, e.Bytes = trace.Free, trace.FreeCycle, size[e.ID]
			dead = append(dead, e)
			continue
		case e.Kind == trace.Cycle:
			continue
		case e.Kind == trace.Alloc:
			size[e.ID] = e.Bytes
			if byBytes += e.Bytes; byBytes >= grain {
				byBytes, wait = 0, true
			}
		}
		if wait {
			if waits++; waits%every == 0 {
				out.Record(trace.Event{Time: e.Time, Kind: trace.Cycle, Space: e.Space})
				for _, d := range dead {
					d.Time = e.Time
					out.Record(d)
				}
				dead = dead[:0]
			}
		}
		out.Record(e)
	}
	return &out
}

func writeGranularity(grains []*grain) ([]byte, error) {
	var r markdown
	truth := grains[0]
	name := func(g *grain) string {
		switch {
		case g.Every == 0:
			return "true"
		case g.Share < 1:
			return fmt.Sprintf("%d, half way", g.Every)
		}
		return fmt.Sprint(g.Every)
	}
	fmt.Fprintf(&r, `# What later deaths change

%d recordings with true deaths, %d policies, limits of 1.25x to 4x of the peak that the recording shows, cycles of 1 and 10 ms. A recorder that runs a cycle at every nth wait learns of a death at the next such wait
(a wait is each time that 1/16 of the peak was allocated, where a program has under %d). Half way: each death is moved to the middle of the time in which it may have been. Ranks are by time lost, against those with
true deaths; J, exposed pause and peak are geometric means against those with true deaths.

`, len(truth.Grid.Workloads), len(truth.Grid.Contenders), fewWaits)
	r.head("cycle at every", "Spearman, 1 ms", "10 ms", "Kendall, 1 ms", "10 ms", "rank of pacer", "J", "J of pacer", "J of pacer / never", "exposed", "peak")
	pacer, never := truth.Grid.Find("pacer"), truth.Grid.Find("never")
	for _, g := range grains {
		if g.Share == 0 {
			continue
		}
		row := []any{name(g)}
		for _, of := range []func(a, b stats.Float64Data) (float64, error){stats.Spearman, stats.KendallTau} {
			for cost := range g.lost {
				x, err := of(truth.lost[cost], g.lost[cost])
				if err != nil {
					return nil, err
				}
				row = append(row, ratioText(x))
			}
		}
		mean := func(p int, m experiment.Metric) string {
			return ratioText(experiment.MeanRatio(g.Grid.Select(p, nil), truth.Grid.Select(p, nil), m))
		}
		var peaks []float64
		for i, w := range g.Grid.Workloads {
			peaks = append(peaks, float64(w.PeakReachable)/float64(truth.Grid.Workloads[i].PeakReachable))
		}
		r.row(append(row, fmt.Sprintf("%d, %d", rank(g.lost[0], pacer), rank(g.lost[1], pacer)),
			ratioText(experiment.MeanRatio(g.Grid.Outcomes(), truth.Grid.Outcomes(), experiment.Objective)), mean(pacer, experiment.Objective),
			ratioText(experiment.MeanRatio(g.Grid.Select(pacer, nil), g.Grid.Select(never, nil), experiment.Objective)),
			ratioText(experiment.MeanRatio(g.Grid.Outcomes(), truth.Grid.Outcomes(), experiment.Exposed)), ratioText(experiment.GeometricMean(peaks)))...)
	}
	r.WriteString("\n## Rank and time lost by policy, cycle 1 ms\n\n")
	var names, recordings []string
	for _, g := range grains[:5] {
		names = append(names, name(g))
	}
	table(&r, "policy", names, codes(truth.Grid.Contenders), func(p, k int) any {
		return fmt.Sprintf("%d (%.1f %%)", rank(grains[k].lost[0], p), 100*grains[k].lost[0][p])
	})
	r.WriteString("\n## Peak against the true one, as such a recording shows it, and at least\n\n")
	for _, w := range truth.Grid.Workloads {
		recordings = append(recordings, w.Name)
	}
	peak := func(g *grain, i int) float64 {
		return float64(g.Grid.Workloads[i].PeakReachable) / float64(truth.Grid.Workloads[i].PeakReachable)
	}
	table(&r, "recording", names[1:], recordings, func(i, k int) any {
		return fmt.Sprintf("%.2f (%.2f)", peak(grains[1+k], i), peak(grains[9+k], i))
	})
	return r.Bytes(), nil
}

// rank returns the rank of one among all, from 1.
func rank(all []float64, one int) int {
	return floats.Count(func(x float64) bool { return x <= all[one] }, all)
}
