package main

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/chart"
	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/sim/view"
)

// reportPicks is how many policies a distribution shows.
const reportPicks = 6

// A fleetPage is what the template of a fleet's report shows.
type fleetPage struct {
	Title, World string
	Cards        []view.Card
	Cycles       []fleetSection
	Worst        view.Table
	WorstOf      string
	Broken       view.Table
	Provenance   []entry
	CSS          template.CSS
}

// A fleetSection is what a page says of one cost of a cycle.
type fleetSection struct {
	Cycle                   string
	Summary, Groups, Spread view.Table
	Picture                 template.HTML
}

// reportFleet writes the report of a fleet.
func reportFleet(cmd *cobra.Command, path, out string) error {
	a, err := readFleet(path)
	if err != nil {
		return err
	}
	p, err := newFleetPage(a)
	if err != nil {
		return err
	}
	p.Provenance = []entry{{"replay", version()}, {"question", a.Plan.ID()}, {"command", commandLine(cmd, []string{path})}}
	if err := writeFile(out, p.write); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s\n", out)
	return nil
}

func newFleetPage(a *fleet.Answer) (*fleetPage, error) {
	all := a.Partial.Total()
	last := len(a.Plan.Cycles) - 1
	worst := worstCell(a, all)
	p := &fleetPage{
		Title: fmt.Sprintf("When to collect garbage: a fleet of %s", view.Plural(int(all.Jobs), "job")),
		World: fmt.Sprintf("Each job's recording was replayed under each policy, limit and cost of a cycle, on a virtual clock; a refusal takes %s. "+
			"Time lost is (exposed pause + %v x collector time) / recorded time, and its mean the geometric one over the jobs. "+
			"A limit such as 1.5x is a factor of what a job has reachable at most.", ladderText(&a.Plan), sim.CPUPrice),
		Cards: fleetCards(a, all, last),
		Worst: plainTable(fleetWorst(a, worst)), Broken: plainTable(fleetBroken(a, 100)),
	}
	cell := a.Plan.Cells()[worst]
	p.WorstOf = fmt.Sprintf("under %s at %s, cycle %s", cell.Policy, cell.Limit, cell.Cycle)
	for cycle, d := range a.Plan.Cycles {
		s := fleetSection{Cycle: d.String(), Summary: plainTable(fleetSummary(a, all, cycle)), Groups: plainTable(fleetGroups(a, cycle))}
		var err error
		if s.Picture, s.Spread, err = fleetSpread(a, all, cycle); err != nil {
			return nil, err
		}
		p.Cycles = append(p.Cycles, s)
	}
	style, err := pageStyle()
	p.CSS = style
	return p, err
}

func ladderText(p *fleet.Plan) string {
	if p.Machine != nil {
		return "what the machine's file says"
	}
	if p.Ladder[len(p.Ladder)-1] == 'x' {
		return p.Ladder + " a cycle"
	}
	return p.Ladder
}

// fleetCards are the figures that matter, at the middle limit and the last cost.
func fleetCards(a *fleet.Answer, all *fleet.Group, cycle int) []view.Card {
	limit := len(a.Plan.Limits) / 2
	cards := []view.Card{
		card("jobs", formatCount(int(all.Jobs)), formatDuration(time.Duration(all.Span.Float()))+" recorded", ""),
		card("broken", formatCount(int(a.Partial.Broken.Count)), "recordings that could not be read", ""),
	}
	best := a.Plan.Best(all, limit, cycle)
	if best < 0 {
		return cards
	}
	i := a.Plan.Index(limit, cycle, best)
	c := &all.Cells[i]
	at := fmt.Sprintf("at %s, cycle %s", a.Plan.Limits[limit], a.Plan.Cycles[cycle])
	return append(cards,
		card("policy", policyName(a.Plan.Policies[best]), "loses least "+at, ""),
		card("lost", formatPercent(c.Lost()), "of the recorded time, mean of the jobs", ""),
		card("95 % of jobs", formatPercent(c.LostAt(0.95)), "lose at most", ""),
		card("saved", formatDuration(all.Saved(i, a.Plan.Index(limit, cycle, 0))), "against "+policyName(a.Plan.Policies[0]), ""))
}

// fleetSpread is the distribution of lost time over the jobs, at the middle limit.
func fleetSpread(a *fleet.Answer, all *fleet.Group, cycle int) (template.HTML, view.Table, error) {
	limit := len(a.Plan.Limits) / 2
	head := []string{"policy", "half of the jobs", "90 %", "95 %", "99 %", "all"}
	t := view.Table{head}
	var shown []chart.Distribution
	for p, name := range a.Plan.Policies {
		c := &all.Cells[a.Plan.Index(limit, cycle, p)]
		row := []string{name}
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 1} {
			row = append(row, formatPercent(c.LostAt(q)))
		}
		t = append(t, row)
		if len(shown) < reportPicks && c.Runs > 0 {
			shown = append(shown, distribution(name, c))
		}
	}
	var names []string
	for _, d := range shown {
		names = append(names, d.Policy)
	}
	picture, err := inline(chart.Distributions("How much the jobs lose", fmt.Sprintf("limit %s, cycle %s", a.Plan.Limits[limit], a.Plan.Cycles[cycle]), shown, view.NewPalette(names)))
	return picture, t, err
}

func distribution(policy string, c *fleet.Tally) chart.Distribution {
	d := chart.Distribution{Policy: policy}
	var seen int64
	for _, ppm := range slices.Sorted(maps.Keys(c.LostPPM)) {
		seen += c.LostPPM[ppm]
		d.Lost, d.Jobs = append(d.Lost, float64(ppm)/1e6), append(d.Jobs, float64(seen)/float64(c.Runs))
	}
	return d
}

// plainTable is a table without the marks by which it is printed.
func plainTable(t table) view.Table {
	var out view.Table
	for _, row := range t {
		var cells []string
		for _, c := range row {
			cells = append(cells, trimMarks(c))
		}
		out = append(out, cells)
	}
	return out
}

func (p *fleetPage) write(w io.Writer) error {
	t, err := template.ParseFS(pageFiles, "page/page.html", "page/fleet.html")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "fleet.html", p)
}
