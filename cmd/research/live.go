package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/montanaflynn/stats"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
)

// A liveRun is one line of the results of `replay live`.
type liveRun struct {
	Where, Ballast, Trace, Long, Policy string
	Limit                               float64       `json:"limit_factor"`
	Elapsed                             time.Duration `json:"elapsed_ns"`
	Exposed                             time.Duration `json:"exposed_pause_ns"`
}

// live reports the lower-bound overhead of live runs in elapsed time. A cell is the medians of its
// runs.
func (p *judgement) live(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	text := io.Reader(f)
	if strings.HasSuffix(file, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	runs := map[string]map[string][]cost{} // by place and policy
	for d := json.NewDecoder(text); ; {
		var r liveRun
		if err := d.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if !strings.HasPrefix(r.Policy, "sim:") {
			place := fmt.Sprintf("%s %s %s %s %.2f", r.Where, r.Ballast, r.Trace, r.Long, r.Limit)
			if runs[place] == nil {
				runs[place] = map[string][]cost{}
			}
			runs[place][r.Policy] = append(runs[place][r.Policy], cost{float64(r.Elapsed), float64(r.Exposed)})
		}
	}
	most := 0
	for _, of := range runs {
		most = max(most, len(of))
	}
	maps.DeleteFunc(runs, func(_ string, of map[string][]cost) bool { return len(of) < most })
	all, but, own := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for _, place := range slices.Sorted(maps.Keys(runs)) {
		medians, others := map[string]cost{}, []cost{}
		for policy, of := range runs[place] {
			medians[policy] = median(of)
			if policy != "never" {
				others = append(others, medians[policy])
			}
		}
		least, without := distilled(slices.Collect(maps.Values(medians))), distilled(others)
		for policy, c := range medians {
			all[policy], but[policy], own[policy] = append(all[policy], c.Total/least), append(but[policy], c.Total/without), append(own[policy], (c.Total-c.Collector)/least)
		}
	}
	fmt.Fprintf(p, "\n## Live: %s\n\nLower-bound overhead in elapsed time, of the %d cells in which all these ran; the baseline is over all, or over all but `never`. The last column is what a policy takes without its exposed pauses, over the baseline.\n\n", filepath.Base(file), len(runs))
	p.head("policy", "all", "but `never`", "without its pauses")
	for _, policy := range slices.Sorted(maps.Keys(all)) {
		p.row("`"+policy+"`", figure(experiment.GeometricMean(all[policy])), figure(experiment.GeometricMean(but[policy])), figure(experiment.GeometricMean(own[policy])))
	}
	return nil
}

// median returns the medians of the total and of the total without the collector's part.
func median(runs []cost) cost {
	var total, own []float64
	for _, r := range runs {
		total, own = append(total, r.Total), append(own, r.Total-r.Collector)
	}
	a, _ := stats.Median(total) // cannot fail: there is at least one run
	b, _ := stats.Median(own)
	return cost{a, a - b}
}
