// Package fleet asks many recordings one question: under which policy and which limit would
// they have lost how much time?
//
// [Question.Map] replays one recording in every cell (policy x limit x cycle) and returns an
// [Answer]. [Answer.Merge] adds two of them. All of an answer is whole numbers, and Merge is
// associative and commutative: any order, any split and any number of machines give the same
// bytes. The program in folder beam runs both on Apache Beam, on a laptop too.
package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats"
)

// A Question is data: its JSON form goes to other machines. Its cells are the product of
// its limits, cycles and policies, in that order.
type Question struct {
	Policies []string        `json:"policies"`  // text forms that experiment.ParseContender reads
	Limits   []string        `json:"limits"`    // that experiment.ParseLimit reads: 1.5x, 8GiB
	Cycles   []time.Duration `json:"cycles_ns"` // what a collection takes
	Ladder   string          `json:"ladder"`    // that sim.ParseLadder reads: 2x, 20ms
}

// grid reads the question. Its error names the text that is wrong.
func (q *Question) grid() (*experiment.Grid, error) {
	g := new(experiment.Grid)
	var err error
	for _, text := range q.Policies {
		c, err := experiment.ParseContender(text)
		if err != nil {
			return nil, fmt.Errorf("fleet: %w", err)
		}
		g.Contenders = append(g.Contenders, c)
	}
	for _, text := range q.Limits {
		l, err := experiment.ParseLimit(text)
		if err != nil {
			return nil, fmt.Errorf("fleet: %w", err)
		}
		g.Limits = append(g.Limits, l)
	}
	for _, d := range q.Cycles {
		if d < 0 {
			return nil, fmt.Errorf("fleet: a cycle of %v", d)
		}
		g.Costs = append(g.Costs, sim.Fixed(d))
	}
	if g.Ladder, err = sim.ParseLadder(q.Ladder); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if len(g.Contenders)*len(g.Limits)*len(g.Costs) == 0 {
		return nil, fmt.Errorf("fleet: a question needs policies, limits and cycles")
	}
	return g, nil
}

// Check reports what is wrong with the question.
func (q *Question) Check() error {
	_, err := q.grid()
	return err
}

// Map replays one recording, of any format that `replay import` reads, in every cell. A
// recording that cannot be read is counted as broken, with its error. The error of Map is
// of the question alone.
func (q *Question) Map(name string, recording io.Reader) (*Answer, error) {
	g, err := q.grid()
	if err != nil {
		return nil, err
	}
	t, err := formats.Opener{}.Read(recording)
	var w *sim.Workload
	if err == nil {
		w, err = experiment.Compile(t)
	}
	if err != nil {
		return &Answer{Question: *q, Broken: map[string]string{name: err.Error()}}, nil
	}
	a := &Answer{Question: *q, Recordings: 1}
	for _, l := range g.Limits {
		for c := range g.Costs {
			for _, who := range g.Contenders {
				limit := l.Of(w)
				result, err := who.Run(w, g.World(c)(limit))
				a.Cells = append(a.Cells, tally(&result, err, limit < w.PeakReachable))
			}
		}
	}
	return a, nil
}

// An Answer is what is known of some recordings. The zero value knows none. It is for one
// goroutine at a time.
type Answer struct {
	Question   Question          `json:"question"`
	Recordings int64             `json:"recordings"`
	Broken     map[string]string `json:"broken,omitempty"` // by name: why it could not be read
	Cells      []Tally           `json:"cells"`            // by limit, then cycle, then policy
}

// A Tally adds up the replays of one cell, exactly, for any number of them.
type Tally struct {
	Runs      int64           `json:"runs"`
	Unmet     int64           `json:"unmet"`   // the limit is below what the recording keeps reachable: not run
	None      int64           `json:"none"`    // the optimum has no schedule
	Failing   int64           `json:"failing"` // runs with failed allocations
	Refusals  int64           `json:"refusal_collections"`
	Cycles    int64           `json:"collections"`
	Exposed   big.Int         `json:"exposed_pause_ns"`
	Busy      big.Int         `json:"gc_busy_ns"`
	Objective big.Int         `json:"objective_ns"`
	Span      big.Int         `json:"span_ns"`
	Longest   int64           `json:"max_pause_ns"`
	LogLost   int64           `json:"log_lost"` // sum of ln(1 + objective / span), in units of 1e-9: for the geometric mean
	Lost      map[int64]int64 `json:"lost"`     // runs by objective / span, in percent rounded down
}

// MarshalJSON writes one that has no address, too: the form of a [big.Int] needs that.
func (t Tally) MarshalJSON() ([]byte, error) {
	type fields Tally
	return json.Marshal((*fields)(&t))
}

func tally(r *sim.Result, err error, unmet bool) Tally {
	switch {
	case unmet:
		return Tally{Unmet: 1}
	case err != nil:
		return Tally{None: 1}
	}
	lost := float64(r.Objective()) / float64(max(1, r.Span))
	return Tally{
		Runs: 1, Failing: int64(min(1, r.FailedAllocs)), Refusals: int64(r.RefusalCollections), Cycles: int64(r.Collections),
		Exposed: *big.NewInt(int64(r.ExposedPause)), Busy: *big.NewInt(int64(r.GCBusy)), Objective: *big.NewInt(int64(r.Objective())), Span: *big.NewInt(int64(r.Span)), Longest: int64(r.MaxPause),
		LogLost: int64(math.Round(1e9 * math.Log1p(lost))), Lost: map[int64]int64{int64(100 * lost): 1},
	}
}

// GeometricMean is the time that the runs of a cell lost, as compare prints it.
func (t *Tally) GeometricMean() float64 {
	return math.Expm1(float64(t.LogLost) / 1e9 / float64(max(1, t.Runs)))
}

// Merge adds b, which stays as it is. Answers to different questions are a broken invariant.
func (a *Answer) Merge(b *Answer) {
	switch {
	case b.Recordings == 0 && len(b.Broken) == 0:
		return
	case a.Recordings == 0 && len(a.Broken) == 0:
		a.Question = b.Question
	case !a.Question.equal(&b.Question):
		panic("fleet: answers to different questions")
	}
	a.Recordings += b.Recordings
	if a.Broken == nil && b.Broken != nil {
		a.Broken = make(map[string]string)
	}
	maps.Copy(a.Broken, b.Broken)
	if len(a.Cells) == 0 {
		a.Cells = make([]Tally, len(b.Cells))
	}
	for i := range b.Cells {
		a.Cells[i].add(&b.Cells[i])
	}
}

func (q *Question) equal(other *Question) bool {
	return slices.Equal(q.Policies, other.Policies) && slices.Equal(q.Limits, other.Limits) && slices.Equal(q.Cycles, other.Cycles) && q.Ladder == other.Ladder
}

func (t *Tally) add(o *Tally) {
	t.Runs += o.Runs
	t.Unmet += o.Unmet
	t.None += o.None
	t.Failing += o.Failing
	t.Refusals += o.Refusals
	t.Cycles += o.Cycles
	t.Exposed.Add(&t.Exposed, &o.Exposed)
	t.Busy.Add(&t.Busy, &o.Busy)
	t.Objective.Add(&t.Objective, &o.Objective)
	t.Span.Add(&t.Span, &o.Span)
	t.Longest = max(t.Longest, o.Longest)
	t.LogLost += o.LogLost
	if t.Lost == nil && o.Lost != nil {
		t.Lost = make(map[int64]int64)
	}
	for lost, n := range o.Lost {
		t.Lost[lost] += n
	}
}
