package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A trial is a world in which a policy is judged. All trials have cycles of 0.1 to 100 ms.
type trial struct {
	Name     string
	About    string
	Limits   []float64 // factors of the peak reachable bytes
	Slowdown float64   // of the program beside a cycle
	Told     sim.Told
	Noise    sim.Noise                           // varies the length of cycles
	change   func([]*trace.Trace) []*trace.Trace // changes the programs; nil keeps them
}

var (
	trialLimits = []float64{1.25, 1.5, 2, 4}
	trialCycles = []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}
)

// trialNoise is the noise of cycles on a host with two cores and a Go heap of 1 MiB, the largest
// that was measured. One outlier is left out: one cycle in a hundred took four times as long.
// Source: results/2026-11-22-fidelity at commit 24f90ac, machine-host-1MiB.json.
var trialNoise = sim.Noise{0.65, 0.82, 0.87, 0.89, 0.92, 0.94, 0.96, 0.98, 0.99, 1.01, 1.03, 1.05, 1.06, 1.08, 1.1, 1.12, 1.15, 1.19, 1.22, 1.36, 1.64}

// allTrials returns all trials. The others differ from the first, the plain one, in one respect
// each.
func allTrials() []trial {
	return []trial{
		{Name: "plain", About: "nothing goes wrong", Limits: trialLimits},
		{Name: "limit-2%", About: "memory runs out 2 % before the limit that policies see", Limits: trialLimits, Told: sim.Told{Limit: 1.02}},
		{Name: "limit-5%", About: "memory runs out 5 % before that limit", Limits: trialLimits, Told: sim.Told{Limit: 1.05}},
		{Name: "limit-10%", About: "memory runs out 10 % before that limit", Limits: trialLimits, Told: sim.Told{Limit: 1.1}},
		{Name: "cost-half", About: "a cycle takes twice as long as policies expect", Limits: trialLimits, Told: sim.Told{Cost: 0.5}},
		{Name: "cost-double", About: "a cycle takes half as long as policies expect", Limits: trialLimits, Told: sim.Told{Cost: 2}},
		{Name: "rate-10x", About: "programs ten times as fast", Limits: trialLimits, change: faster},
		{Name: "edges", About: "limits of 1.1x and 8x", Limits: []float64{1.1, 8}},
		{Name: "pairs", About: "each program and the next one take turns of 20 ms under one limit", Limits: trialLimits, change: pairs},
		{Name: "slow-0.25", About: "the program takes 1.25 times as long beside a cycle", Limits: trialLimits, Slowdown: 0.25},
		{Name: "slow-1", About: "the program takes twice as long beside a cycle", Limits: trialLimits, Slowdown: 1},
		{Name: "learned", About: "cycles vary in length and slow the program by 5 %; policies see learned estimates of both and of waits, and the first estimate is half the true value", Limits: trialLimits, Slowdown: 0.05, Noise: trialNoise},
	}
}

// trialList returns a line of text for each trial.
func trialList() string {
	var b strings.Builder
	for _, t := range allTrials() {
		fmt.Fprintf(&b, "  %-12s  %s\n", t.Name, t.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// world returns a key for the part of a trial that the optima depend on.
func (t *trial) world() string {
	if t.change != nil {
		return t.Name
	}
	return fmt.Sprint(t.Limits, t.Slowdown)
}

// grid returns the cells of a trial. They have not run yet.
func (t *trial) grid(loads []*sim.Workload, who []experiment.Contender) *experiment.Grid {
	g := &experiment.Grid{Workloads: loads, Contenders: who, Limits: factorLimits(t.Limits), Ladder: sim.Ladder{Factor: 2}, Told: t.Told, Noise: t.Noise}
	for _, d := range trialCycles {
		g.Costs = append(g.Costs, sim.Cost{Base: d, Slowdown: t.Slowdown})
	}
	return g
}

// faster returns the programs ten times as fast.
func faster(all []*trace.Trace) []*trace.Trace {
	var out []*trace.Trace
	for _, t := range all {
		events := slices.Clone(t.Events)
		for i := range events {
			events[i].Time /= 10
			events[i].Duration /= 10
		}
		fast := *t
		fast.Events = events
		out = append(out, &fast)
	}
	return out
}

// pairs returns each program together with the next one, and the last with the first.
func pairs(all []*trace.Trace) []*trace.Trace {
	if len(all) < 2 {
		return nil
	}
	var out []*trace.Trace
	for i, t := range all {
		out = append(out, turns(t, all[(i+1)%len(all)], 20*time.Millisecond))
	}
	return out
}

// turns returns two programs that take turns in one memory. A wait that continues in the other
// program's turn keeps its length. The longer program ends alone.
func turns(a, b *trace.Trace, length time.Duration) *trace.Trace {
	out := &trace.Trace{Name: a.Name + "+" + b.Name}
	runs, rests := eventsOf(a), eventsOf(b)
	var first uint64 // the first ID of b
	for _, e := range runs {
		first = max(first, e.ID+1)
	}
	for i := range rests {
		rests[i].ID += first
		rests[i].Space = sim.SpaceOf(a)
	}
	for turn := int64(0); len(runs)+len(rests) > 0; turn++ {
		before := turn / 2 * int64(length) // how long the program has run
		n := slices.IndexFunc(runs, func(e trace.Event) bool { return e.Time >= before+int64(length) })
		if n < 0 || len(rests) == 0 {
			n = len(runs)
		}
		for _, e := range runs[:n] {
			e.Time += turn*int64(length) - before
			out.Events = append(out.Events, e)
		}
		runs, rests = rests, runs[n:]
	}
	return out
}

// eventsOf returns the events that a replay uses. The first one has time 0.
func eventsOf(t *trace.Trace) []trace.Event {
	var out []trace.Event
	space, start := sim.SpaceOf(t), int64(0)
	for _, e := range t.Events {
		switch e.Kind {
		case trace.Alloc, trace.Drop, trace.Free:
			if e.Space != space {
				continue
			}
		case trace.Sync:
		default:
			continue
		}
		if len(out) == 0 {
			start = e.Time
		}
		e.Time -= start
		out = append(out, e)
	}
	return out
}

// trialsNamed returns the trials of a list of names. The list "all" is all trials.
func trialsNamed(text string) ([]trial, error) {
	if text == "all" {
		return allTrials(), nil
	}
	var some []trial
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(allTrials(), func(t trial) bool { return t.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("no trial %q; there are\n%s", name, trialList())
		}
		some = append(some, allTrials()[i])
	}
	return some, nil
}

func factorLimits(factors []float64) (limits []experiment.Limit) {
	for _, f := range factors {
		limits = append(limits, experiment.Limit{Factor: f})
	}
	return limits
}
