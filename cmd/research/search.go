package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A searchCell is a recording with a limit and a cost, and the objective of pacer there.
type searchCell struct {
	load  *sim.Workload
	cfg   sim.Config
	pacer time.Duration
}

func (c *searchCell) run(p policy.Policy) time.Duration {
	r := sim.Run(c.load, p, c.cfg)
	return r.Objective()
}

func searchCells(loads []*sim.Workload, factors []float64, costs []sim.Cost) (cells []searchCell) {
	for _, w := range loads {
		for _, f := range factors {
			for _, cost := range costs {
				c := searchCell{load: w, cfg: sim.Config{Limit: int64(f * float64(w.PeakReachable)), Cost: cost, Ladder: sim.Ladder{Factor: 2}}}
				c.pacer = c.run(policy.MustParse("pacer").New())
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// A candidate is an expression and its fitness: the geometric mean of its objective over that of
// pacer.
type candidate struct {
	*expression
	fitness float64
}

// fitness returns the mean over cells. It gives up on an expression that is far above the bound.
func (e *expression) fitness(cells []searchCell, bound float64) float64 {
	sum := 0.0
	for i := range cells {
		sum += math.Log(ratio(cells[i].run(&expressed{expression: e}), cells[i].pacer))
		if i >= 2 && sum/float64(i+1) > math.Log(bound)+0.5 {
			return math.Exp(sum / float64(i+1))
		}
	}
	return math.Exp(sum / float64(len(cells)))
}

var searchFactors = []float64{1.25, 1.5, 2, 4} // of the peak reachable bytes, as in replay compare

// A stage evaluates the best expressions of the stage before on more cells.
type stage struct {
	keep  int
	cells []searchCell
}

const searchBatch = 250

// search returns the best expressions among a number of candidates, the best first. Half of the
// candidates are random, and half differ from one of the best so far in one place. After the stages
// a tenth more differ from the ten best in one place.
func search(ctx context.Context, candidates int, screen []searchCell, stages []stage, log io.Writer) ([]candidate, error) {
	lot := rand.New(rand.NewPCG(47, 47))
	var all []candidate
	seen := make(map[string]bool)
	for len(all) < candidates {
		var batch []candidate
		bound := math.Inf(1)
		if len(all) > 0 {
			bound = all[0].fitness
		}
		for len(batch) < searchBatch {
			e := randomExpression(lot)
			if len(all) > 0 && lot.IntN(2) == 0 {
				e = all[lot.IntN(min(len(all), 50))].mutate(lot)
			}
			if text := e.String(); !seen[text] {
				seen[text] = true
				batch = append(batch, candidate{expression: e})
			}
		}
		if err := judge(ctx, batch, screen, bound); err != nil {
			return nil, err
		}
		all = append(all, batch...)
		sortCandidates(all)
		fmt.Fprintf(log, "research: %d candidates, best %.4f: %s\n", len(all), all[0].fitness, all[0].expression)
	}
	for _, s := range stages {
		all = all[:min(len(all), s.keep)]
		if err := judge(ctx, all, s.cells, math.Inf(1)); err != nil {
			return nil, err
		}
		sortCandidates(all)
		fmt.Fprintf(log, "research: %d cells, best %.4f: %s\n", len(s.cells), all[0].fitness, all[0].expression)
	}
	last := stages[len(stages)-1].cells
	for range candidates / 10 / searchBatch {
		var batch []candidate
		for len(batch) < searchBatch {
			e := all[lot.IntN(min(len(all), 10))].mutate(lot)
			if text := e.String(); !seen[text] {
				seen[text] = true
				batch = append(batch, candidate{expression: e})
			}
		}
		if err := judge(ctx, batch, last, all[0].fitness); err != nil {
			return nil, err
		}
		all = append(all, batch...)
		sortCandidates(all)
		fmt.Fprintf(log, "research: changed the best, best %.4f: %s\n", all[0].fitness, all[0].expression)
	}
	return all, nil
}

func sortCandidates(all []candidate) {
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.fitness, b.fitness), a.size()-b.size())
	})
}

// judge evaluates candidates on all cores.
func judge(ctx context.Context, all []candidate, cells []searchCell, bound float64) error {
	var cores sync.WaitGroup
	for core := range runtime.GOMAXPROCS(0) {
		cores.Go(func() {
			for i := core; i < len(all) && ctx.Err() == nil; i += runtime.GOMAXPROCS(0) {
				all[i].fitness = all[i].expression.fitness(cells, bound)
			}
		})
	}
	cores.Wait()
	return ctx.Err()
}

// A heldOut is a set of recordings and worlds on which the frozen rules are judged.
type heldOut struct {
	name  string
	loads []*sim.Workload
	cost  []sim.Cost
}

// searches looks for a better rule, and judges the best ones on recordings that it has not seen.
func searches(ctx context.Context, programs []*trace.Trace, candidates int, log io.Writer) (folder, error) {
	loads, err := compile(programs)
	if err != nil {
		return nil, err
	}
	groups := make(map[string][]*sim.Workload)
	for i, w := range loads {
		group := groupOf(programs[i])
		groups[group] = append(groups[group], w)
	}
	train := groups["PyTorch"]
	if len(train) < 3 {
		return nil, fmt.Errorf("search: %d recordings of PyTorch programs, want three or more to tune on", len(train))
	}
	usual := []sim.Cost{sim.Fixed(time.Millisecond), sim.Fixed(10 * time.Millisecond)}
	full := searchCells(train, searchFactors, usual)
	best, err := search(ctx, candidates, searchCells(train[:min(len(train), 5)], []float64{1.25, 2}, usual),
		[]stage{{candidates / 10, searchCells(train, []float64{1.5}, usual)}, {candidates / 100, full}}, log)
	if err != nil {
		return nil, err
	}
	table := learn(full, 20, 1)
	who, err := experiment.ParseContenders("pacer,host,sqrt,never,optimum-blocking,optimum-objective")
	if err != nil {
		return nil, err
	}
	for i, c := range best[:min(3, len(best))] {
		who = append(who, experiment.NewContender(fmt.Sprintf("expression %d", i+1), func() policy.Policy { return &expressed{expression: c.expression} }))
	}
	who = append(who, experiment.NewContender("Q-learner", func() policy.Policy { return &qLearner{table: table} }))
	slow := []sim.Cost{{Base: time.Millisecond, Slowdown: 0.25}, {Base: 10 * time.Millisecond, Slowdown: 0.25}}
	sets := []heldOut{{"PyTorch (tuned)", train, usual}, {"Go", groups["Go"], usual}, {"GoMLX", groups["GoMLX"], usual},
		{"C", groups["C"], []sim.Cost{sim.Fixed(100 * time.Microsecond), sim.Fixed(time.Millisecond)}}, {"PyTorch, slowed", train, slow}, {"all others, slowed", slices.Concat(groups["Go"], groups["GoMLX"], groups["C"]), slow}}
	var r markdown
	fmt.Fprintf(&r, "# Is there a better rule?\n\n%d candidates, tuned on %d PyTorch recordings. J is delay + %v x collector time. The figures are J over that of `pacer`: geometric means over cells, 1 ms added to both. In brackets: J over the proven lower bound, where the search for it ends. The last column is the number of allocations that failed.\n\n", candidates, len(train), sim.CPUPrice)
	var limits []experiment.Limit
	for _, f := range searchFactors {
		limits = append(limits, experiment.Limit{Factor: f})
	}
	head := []any{"rule"}
	rows := make([][]any, len(who))
	failed := make([]int, len(who))
	for _, set := range sets {
		if len(set.loads) == 0 {
			continue
		}
		head = append(head, set.name)
		g := &experiment.Grid{Workloads: set.loads, Contenders: who, Limits: limits, Costs: set.cost, Ladder: sim.Ladder{Factor: 2}}
		if err := g.Run(ctx, nil); err != nil {
			return nil, err
		}
		bounds := lowerBounds(g)
		for k := range who {
			var x, y []float64
			for i, o := range g.Outcomes() {
				c := g.Cell(i)
				if c.Contender != k || o.Err != nil {
					continue
				}
				failed[k] += o.FailedAllocs
				c.Contender = 0
				x = append(x, ratio(o.Objective(), g.At(c).Objective()))
				if b, ok := bounds[c]; ok {
					y = append(y, ratio(o.Objective(), b))
				}
			}
			rows[k] = append(rows[k], fmt.Sprintf("%s (%s)", ratioText(experiment.GeometricMean(x)), ratioText(experiment.GeometricMean(y))))
		}
	}
	r.head(append(head, "failed")...)
	for k, row := range rows {
		r.row(append(append([]any{"`" + who[k].String() + "`"}, row...), failed[k])...)
	}
	r.WriteString("\n## The best expressions\n\n")
	for letter := range len(letters) {
		fmt.Fprintf(&r, "- %c: %s\n", letters[letter], quantities[letters[letter]])
	}
	r.WriteString("\n")
	r.head("", "on the tuned set", "a cycle is due where")
	for i, c := range best[:min(10, len(best))] {
		r.row(i+1, ratioText(c.fitness), "`"+c.expression.String()+"`")
	}
	return folder{"report.md": r.Bytes()}, nil
}

// lowerBounds returns the proven lower bounds that are known. The key of each is the cell of the
// first contender.
func lowerBounds(g *experiment.Grid) map[experiment.Cell]time.Duration {
	found := make(map[experiment.Cell]time.Duration)
	for i := range g.Len() {
		c := g.Cell(i)
		if c.Contender != 0 {
			continue
		}
		if _, bound, err := sim.Optimum("optimum-objective", g.Workloads[c.Workload], g.Config(c)); err == nil {
			found[c] = bound
		}
	}
	return found
}
