package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/aclements/go-moremath/stats"
)

// What was asked for of each of our ways, against Close.
var wanted = []struct {
	way        string
	mean, peak float64
}{{"own", 1.1, 1.25}, {"gauge", 1.2, 1.4}, {"auto", 1.2, 1.4}}

const (
	wantedCPU = 1.02 // of Close's
	quick     = 5.0  // ms: where a cycle takes less, these hold
)

// certain is the probability below which a difference is not said to be chance: of two
// times three rounds all of one side have to be below all of the other.
const certain = 0.05

// less reports whether values of a are lower than those of b, by the exact test of Mann and Whitney.
func less(a, b runs, of func(*run) *float64) bool {
	t, err := stats.MannWhitneyUTest(a.values(of), b.values(of), stats.LocationLess)
	return err == nil && t.P <= certain+1e-9
}

// ratio is that of the medians, in bold if it is above most.
func ratio(a, b runs, of func(*run) *float64, most float64) string {
	r := a.median(of) / b.median(of)
	if math.Round(100*r) > math.Round(100*most) {
		return fmt.Sprintf("**%.2f**", r)
	}
	return fmt.Sprintf("%.2f", r)
}

// aims is our ways against Close, and their latencies against the program as it is.
func (all runs) aims() string {
	var rows [][]string
	for _, load := range all.names(func(r run) string { return r.Load }) {
		for _, c := range clients {
			closes, plain := all.of(c.program, load, "close"), all.of(c.program, load, "plain")
			for _, w := range wanted {
				some := all.of(c.program, load, w.way)
				if len(some) == 0 || len(closes) == 0 || len(plain) == 0 {
					continue
				}
				cycle := all.firstCycle(c.program)
				mostMean, mostPeak, mostCPU := w.mean, w.peak, wantedCPU
				if cycle >= quick {
					mostMean, mostPeak, mostCPU = math.Inf(1), math.Inf(1), math.Inf(1)
				}
				latency := func(of func(*run) *float64) string {
					text := fmt.Sprintf("%.2f", some.median(of)/plain.median(of))
					if less(plain, some, of) {
						return "**" + text + "**"
					}
					return text
				}
				rows = append(rows, []string{c.program + loadTitles[load], w.way, fmt.Sprintf("%.1f", cycle),
					ratio(some, closes, mean, mostMean), ratio(some, closes, peak, mostPeak), ratio(some, closes, cpu, mostCPU),
					ratio(some, closes, seconds, math.Inf(1)), latency(p50), latency(p99)})
			}
		}
	}
	return markdown(2, []string{"client", "way", "ms of a cycle at rest", "mean / Close's", "peak / Close's", "CPU / Close's", "time / Close's", "p50 / plain's", "p99 / plain's"}, rows)
}

// firstCycle is what a cycle takes before a client's work begins, in ms, over all of its runs.
func (all runs) firstCycle(client string) float64 {
	var some runs
	for _, r := range all {
		if r.Client == client {
			some = append(some, r)
		}
	}
	return some.median(func(r *run) *float64 { return &r.FirstCycle })
}

// autoAims is what was asked for of the import alone.
func (all runs) autoAims() string {
	auto := func(client string) runs { return all.of(client, "", "auto") }
	var rows [][]string
	add := func(what string, unit string, digits int, got, most float64) {
		verdict := "met"
		if got > most {
			verdict = "**missed**"
		}
		rows = append(rows, []string{what, fmt.Sprintf("%.*f %s", digits, most, unit), fmt.Sprintf("%.*f %s", digits, got, unit), verdict})
	}
	if m := auto("matrix"); len(m) > 0 {
		add("matrix: peak", "MiB", 0, m.median(peak), 818)
		add("matrix: time against Close", "times", 2, m.median(seconds)/all.of("matrix", "", "close").median(seconds), 1.15)
	}
	if h := auto("held"); len(h) > 0 {
		add("700 MiB held under a limit of 512: cycles", "", 0, h.median(cycles), 5)
	}
	if m := auto("mapped"); len(m) > 0 {
		add("a mapped file of 2 GiB: cycles", "", 0, m.median(cycles), 0)
	}
	if r := auto("rest"); len(r) > 0 {
		add("at rest: share of a core", "%", 2, 100*r.median(cpu)/r.median(seconds), 0.5)
	}
	if c := auto("cache"); len(c) > 0 {
		plain := all.of("cache", "", "plain")
		add("a cache of 2 GiB that grows, beside 1 GiB of Go pointers: time more", "%", 2, 100*(c.median(seconds)/plain.median(seconds)-1), 1)
		add("the same: processor time more", "%", 2, 100*(c.median(cpu)/plain.median(cpu)-1), 1)
	}
	return markdown(1, []string{"`auto`", "at most", "measured", ""}, rows)
}

// better names what is better than our ways in memory and in time.
func (all runs) better() string {
	var rows [][]string
	for _, load := range all.names(func(r run) string { return r.Load }) {
		for _, c := range clients {
			for _, w := range wanted {
				some := all.of(c.program, load, w.way)
				if len(some) == 0 {
					continue
				}
				fixed := beats(all, some, c.program, load, rivals)
				others := beats(all, some, c.program, load, peers)
				if fixed+others != "" {
					rows = append(rows, []string{c.program + loadTitles[load], w.way, fixed, others})
				}
			}
		}
	}
	return markdown(4, []string{"client", "our way", "ticker, GOGC, GOMEMLIMIT", "other projects"}, rows)
}

// beats lists those ways whose medians of mean memory and of time are both lower, in bold where both are certain.
func beats(all, ours runs, client, load, ways string) string {
	var names []string
	for _, way := range strings.Split(ways, ",") {
		some := all.of(client, load, way)
		switch {
		case len(some) == 0 || some.median(mean) >= ours.median(mean) || some.median(seconds) >= ours.median(seconds):
		case less(some, ours, mean) && less(some, ours, seconds):
			names = append(names, "**"+way+"**")
		default:
			names = append(names, way)
		}
	}
	return strings.Join(names, ", ")
}

// importCost is what the import costs a program that closes everything by hand.
func (all runs) importCost() string {
	var rows [][]string
	for _, c := range clients {
		closes, both := all.of(c.program, "", "close"), all.of(c.program, "", "close+auto")
		if len(closes) == 0 || len(both) == 0 {
			continue
		}
		sure := "no"
		if less(closes, both, cpu) {
			sure = "yes"
		}
		rows = append(rows, []string{c.program, ratio(both, closes, cpu, math.Inf(1)), sure, ratio(both, closes, seconds, math.Inf(1)), ratio(both, closes, mean, math.Inf(1)),
			fmt.Sprintf("%.0f", closes.median(cycles)), fmt.Sprintf("%.0f", both.median(cycles))})
	}
	return markdown(1, []string{"client", "CPU", "certain", "time", "mean memory", "cycles without", "cycles with"}, rows)
}
