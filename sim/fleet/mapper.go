package fleet

import (
	"fmt"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
)

// A Mapper replays recordings under a plan. It is immutable: any number of goroutines
// may use it.
type Mapper struct {
	Plan  Plan
	id    string
	grid  *experiment.Grid
	cells []Cell
	keys  []string // of the cells
}

// NewMapper reads a plan. Its error says which text of the plan is wrong.
func NewMapper(p Plan) (*Mapper, error) {
	g, err := p.grid()
	if err != nil {
		return nil, err
	}
	m := &Mapper{Plan: p, id: p.ID(), grid: g, cells: p.Cells()}
	rules := m.rules()
	for i, c := range m.cells {
		_, _, who := m.split(i)
		m.keys = append(m.keys, digest([]any{rules[who], c, p.Ladder, p.Machine, p.Seed}))
	}
	return m, nil
}

// Len is the number of cells.
func (m *Mapper) Len() int { return len(m.cells) }

// Key names what cell i asks, by content: its settings, and what the rules do. Equal
// keys have equal outcomes on equal recordings.
func (m *Mapper) Key(i int) string { return m.keys[i] }

// split returns the indices of cell i in the plan.
func (m *Mapper) split(i int) (limit, cycle, policy int) {
	n := len(m.Plan.Policies)
	return i / n / len(m.Plan.Cycles), i / n % len(m.Plan.Cycles), i % n
}

// Job returns what is known of a recording before any replay.
func (m *Mapper) Job(r *Recording) *Job {
	return &Job{Hash: r.Hash, Bytes: r.Bytes, Features: featuresOf(r.Workload), Outcomes: make(Outcomes)}
}

// Run replays a recording in cell i.
func (m *Mapper) Run(r *Recording, i int) Outcome {
	limit, cycle, policy := m.split(i)
	cfg := m.config(r.Workload, limit, cycle)
	result, err := m.grid.Contenders[policy].Run(r.Workload, cfg)
	return outcomeOf(&result, err)
}

func (m *Mapper) config(w *sim.Workload, limit, cycle int) sim.Config {
	return m.grid.World(cycle)(m.grid.Limits[limit].Of(w))
}

// Map replays a recording in all cells: the Map of the package's model.
func (m *Mapper) Map(name string, r *Recording) *Partial {
	j := m.Job(r)
	for i := range m.cells {
		j.Outcomes[m.keys[i]] = m.Run(r, i)
	}
	return m.Partial(name, j, 0, m.Len())
}

// Missing returns the cells in [from, to) that a job has no outcome for.
func (m *Mapper) Missing(j *Job, from, to int) (cells []int) {
	for i := from; i < to; i++ {
		if _, ok := j.Outcomes[m.keys[i]]; !ok {
			cells = append(cells, i)
		}
	}
	return cells
}

// A Row is one job in one cell.
type Row struct {
	Name, Group string
	*Job
	Cell
	*Outcome
}

// Rows calls each for every cell of a job, in order; the job must have all outcomes.
func (m *Mapper) Rows(name string, j *Job, each func(*Row) error) error {
	row := Row{Name: name, Group: j.Features.Group(), Job: j}
	for i, c := range m.cells {
		o, ok := j.Outcomes[m.keys[i]]
		if !ok {
			return fmt.Errorf("fleet: %s has no outcome of %v", name, c)
		}
		row.Cell, row.Outcome = c, &o
		if err := each(&row); err != nil {
			return err
		}
	}
	return nil
}

// Revision is raised by hand when the rules of a replay change in a way that the probe
// does not show.
const Revision = 1

// rules returns a name for what each policy does in the plan's world: its results on a
// made recording, the probe. So a change of one policy makes only what is known of that
// policy out of date.
func (m *Mapper) rules() []string {
	w := probe()
	names := make([]string, len(m.grid.Contenders))
	for p, who := range m.grid.Contenders {
		var results []any
		for _, factor := range []float64{1.1, 1.5, 3} {
			for _, cost := range append(m.grid.Costs, sim.Fixed(300*time.Microsecond)) {
				cfg := m.grid.World(0)(experiment.Limit{Factor: factor}.Of(w))
				cfg.Cost = cost
				r, err := who.Run(w, cfg)
				results = append(results, r, err != nil)
			}
		}
		names[p] = digest([]any{Revision, results})
	}
	return names
}
