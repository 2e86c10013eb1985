package command

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"slices"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/sim"
)

// A figure is one kind of chart of a recording, and its picture for where there is
// no script.
type figure struct {
	chart.Figure
	Static template.HTML
}

// figures are the charts of a recording, in the order of their tabs.
func (b *pageBuilder) figures(workload int, runs []chart.Run) ([]figure, error) {
	made := b.Figures(workload, runs)
	pictures, err := chart.Inlined(made, b.Grid.Workloads[workload].Name+", "+b.At(workload), b.Palette)
	if err != nil {
		return nil, err
	}
	all := make([]figure, len(made))
	for i, f := range made {
		all[i] = figure{f, template.HTML(pictures[i])}
	}
	return all, nil
}

// script is the data as the page carries them: JSON, packed with gzip, in base64.
func script(d *chart.Data) (template.JS, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	if err := json.NewEncoder(zip).Encode(d); err != nil {
		return "", err
	}
	err = zip.Close()
	return template.JS(`"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"`), err
}

// thinner returns runs for a small picture.
func thinner(runs []chart.Run) []chart.Run {
	out := slices.Clone(runs)
	for i, r := range out {
		out[i].Levels = sim.Thin(r.Levels, r.Result.Elapsed, 100)
	}
	return out
}

// slots bounds the page's size: what all its runs together are thinned to.
func (b *pageBuilder) slots() int {
	const all, most, least = 120_000, 40_000, 300
	return min(most, max(least, all/max(1, len(b.Grid.Workloads)*len(b.Grid.Contenders))))
}
