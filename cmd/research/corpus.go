package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A statistic is one number of the cards. The statistics are the nominal ones of DaCapo Chopin
// (Blackburn et al., ASPLOS 2025) that a recording can answer.
type statistic struct {
	Name, About string
	Log         bool // the principal components use its logarithm
}

var statistics = []statistic{
	{"TIM", "recorded time, s", true},
	{"PKR", "the least limit, by bisection, MiB: as long as bytes alone count it is the peak of the reachable ones", true},
	{"FIL", "reachable bytes, mean over time / peak", false},
	{"TUR", "turnover: bytes allocated / peak", true},
	{"RAT", "bytes allocated per second / peak", true},
	{"BUR", "share of all bytes that is allocated in the busiest tenth of the time, by windows of 10 ms", false},
	{"OBM", "size of an object, median, B", true},
	{"OBT", "share of all bytes that the largest hundredth of the objects has", false},
	{"OPM", "objects per MiB, when reachable bytes peak: what a cycle has to look at", true},
	{"AGE", "age at death, in bytes allocated since / peak, median over bytes", true},
	{"IMM", "share of the peak that is reachable at the end", false},
	{"LEA", "growth: least reachable bytes of the last quarter / of the second, 1 % of the peak added to both", true},
	{"WPS", "waits per second", true},
	{"WSH", "share of the time that is waited", false},
	{"SEN", "sensitivity: time lost under never at 1.25x less that at 6x, cycles of 1 ms, share of the recorded time", true},
}

// A card is the statistics of one recording.
type card struct {
	Name, Group string
	Values      []float64
}

func newCard(t *trace.Trace, w *sim.Workload) card {
	type object struct{ bytes, gross, age float64 }
	var (
		objects                []object
		alive                  = make(map[uint64]int)
		gross, now, peak, area float64
		atPeak, last           int
		least                  = []float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)} // of each quarter
		windows                = make([]float64, w.Span/(10*time.Millisecond)+1)
	)
	quarter := func(t int) int { return min(3, 4*t/max(1, int(w.Span))) }
	for _, e := range eventsOf(t) {
		area += now * float64(int(e.Time)-last)
		for q := quarter(last); q <= quarter(int(e.Time)); q++ {
			least[q] = min(least[q], now)
		}
		last = int(e.Time)
		switch i, there := alive[e.ID]; {
		case e.Kind == trace.Alloc:
			alive[e.ID] = len(objects)
			gross, now = gross+float64(e.Bytes), now+float64(e.Bytes)
			objects = append(objects, object{float64(e.Bytes), gross, math.Inf(1)})
			windows[e.Time/1e7] += float64(e.Bytes)
			if now > peak {
				peak, atPeak = now, len(alive)
			}
		case e.Kind != trace.Sync && there:
			objects[i].age = gross - objects[i].gross
			now -= objects[i].bytes
			delete(alive, e.ID)
		}
	}
	least[3] = min(least[3], now)
	var sizes, ages, weights []float64
	for _, o := range objects {
		sizes, ages, weights = append(sizes, o.bytes), append(ages, min(o.age, gross)), append(weights, o.bytes)
	}
	slices.Sort(sizes)
	slices.Sort(windows)
	stat.SortWeighted(ages, weights)
	top := func(of []float64, share int) float64 { return floats.Sum(of[len(of)-max(1, len(of)/share):]) / gross }
	lost := func(factor float64) float64 {
		r := never(w, int64(factor*peak))
		return float64(r.Objective()) / float64(w.Span)
	}
	seconds := w.Span.Seconds()
	return card{Name: w.Name, Group: groupOf(t), Values: []float64{
		seconds, leastLimit(w) * peak / (1 << 20), area / float64(w.Span) / peak, gross / peak, gross / peak / seconds, top(windows, 10),
		stat.Quantile(0.5, stat.Empirical, sizes, nil), top(sizes, 100), float64(atPeak) / peak * (1 << 20), stat.Quantile(0.5, stat.Empirical, ages, weights) / peak,
		now / peak, (least[3] + peak/100) / (least[1] + peak/100), float64(w.Syncs) / seconds, w.Wait.Seconds() / seconds, lost(1.25) - lost(6),
	}}
}

func groupOf(t *trace.Trace) string {
	switch {
	case slices.Contains(samples.Programs(), t.Name):
		return "Go"
	case slices.Contains(samples.GoMLX(), t.Name):
		return "GoMLX"
	case t.Meta["source"] == "heaptrack":
		return "C"
	}
	return "PyTorch"
}

// leastLimit returns the smallest limit under which no allocation fails, as a factor of the peak
// reachable bytes. It bisects 0 to 10 in steps of 1/1000.
func leastLimit(w *sim.Workload) float64 {
	const steps = 1000
	i := sort.Search(10*steps, func(i int) bool {
		return never(w, w.PeakReachable*int64(i)/steps).FailedAllocs == 0
	})
	return float64(i) / steps
}

// never replays a recording under never, with cycles of 1 ms.
func never(w *sim.Workload, limit int64) sim.Result {
	return sim.Run(w, policy.MustParse("never").New(), sim.Config{Limit: max(1, limit), Cost: sim.Fixed(time.Millisecond), Ladder: sim.Ladder{Factor: 2}})
}

// placeOf returns the rank of a value. The largest has rank 1.
func placeOf(of float64, among []float64) int {
	return 1 + floats.Count(func(x float64) bool { return x > of }, among)
}

// components returns the position of each card on the first two principal components. It also
// returns the weight of each statistic and the share of the variance of each component. A statistic
// with the same value for all cards has no weight.
func components(cards []card) (at, weights [][2]float64, share [2]float64, err error) {
	var columns [][]float64
	var which []int
	for s, what := range statistics {
		x := column(cards, s)
		if what.Log {
			for i := range x {
				x[i] = math.Log10(max(x[i], 1e-6))
			}
		}
		mean, sd := stat.MeanStdDev(x, nil)
		if sd == 0 || math.IsNaN(sd) {
			continue
		}
		for i := range x {
			x[i] = stat.StdScore(x[i], mean, sd)
		}
		columns, which = append(columns, x), append(which, s)
	}
	if len(cards) < 3 || len(columns) < 2 {
		return nil, nil, share, fmt.Errorf("principal components need at least three different recordings, got %d", len(cards))
	}
	m := mat.NewDense(len(cards), len(columns), nil)
	for j, x := range columns {
		m.SetCol(j, x)
	}
	var pc stat.PC
	if !pc.PrincipalComponents(m, nil) {
		return nil, nil, share, fmt.Errorf("%d recordings have no principal components", len(cards))
	}
	var vectors, points mat.Dense
	pc.VectorsTo(&vectors)
	points.Mul(m, vectors.Slice(0, len(columns), 0, 2))
	at, weights = make([][2]float64, len(cards)), make([][2]float64, len(statistics))
	vars := pc.VarsTo(nil)
	for k := range 2 {
		share[k] = vars[k] / floats.Sum(vars)
		sign := math.Copysign(1, vectors.At(0, k)) // the sign is arbitrary: longer recordings lie to the right and above
		for i := range cards {
			at[i][k] = sign * points.At(i, k)
		}
		for j, s := range which {
			weights[s][k] = sign * vectors.At(j, k)
		}
	}
	return at, weights, share, nil
}

func column(cards []card, s int) (x []float64) {
	for _, c := range cards {
		x = append(x, c.Values[s])
	}
	return x
}

// corpus reports the cards of recordings and draws their positions.
func corpus(programs []*trace.Trace) (folder, error) {
	loads, err := compile(programs)
	if err != nil {
		return nil, err
	}
	cards := make([]card, len(programs))
	var cores sync.WaitGroup
	for i := range cards {
		cores.Go(func() { cards[i] = newCard(programs[i], loads[i]) })
	}
	cores.Wait()
	at, weights, share, err := components(cards)
	if err != nil {
		return nil, err
	}
	var r markdown
	fmt.Fprintf(&r, "# The recordings, by their statistics\n\nThe value, and in brackets its rank among %d, the largest first.\n\n", len(cards))
	head := []any{"recording", "from"}
	for _, s := range statistics {
		head = append(head, s.Name)
	}
	r.head(head...)
	csv := "recording,group"
	for _, s := range statistics {
		csv += "," + s.Name
	}
	for _, c := range cards {
		row := []any{c.Name, c.Group}
		csv += fmt.Sprintf("\n%s,%s", c.Name, c.Group)
		for s, v := range c.Values {
			csv += fmt.Sprintf(",%.6g", v)
			row = append(row, fmt.Sprintf("%.4g (%d)", v, placeOf(v, column(cards, s))))
		}
		r.row(row...)
	}
	fmt.Fprintf(&r, "\nWhat each statistic is, and what it weighs in the two first principal components, which have %.0f and %.0f %% of the variance.\n\n", 100*share[0], 100*share[1])
	r.head("", "statistic", "least", "median", "most", "first", "second")
	for s, what := range statistics {
		x := slices.Sorted(slices.Values(column(cards, s)))
		r.row(what.Name, what.About, fmt.Sprintf("%.4g", x[0]), fmt.Sprintf("%.4g", stat.Quantile(0.5, stat.Empirical, x, nil)), fmt.Sprintf("%.4g", x[len(x)-1]), fmt.Sprintf("%.2f", weights[s][0]), fmt.Sprintf("%.2f", weights[s][1]))
	}
	for _, c := range cards {
		fmt.Fprintf(&r, "\n## %s\n\n%s\n\n", c.Name, strings.TrimSpace(c.Group+". "+samples.About(c.Name)))
		r.head("", "value", "rank", "statistic")
		for s, v := range c.Values {
			r.row(statistics[s].Name, fmt.Sprintf("%.4g", v), placeOf(v, column(cards, s)), statistics[s].About)
		}
	}
	picture, err := drawCorpus(cards, at, share)
	return folder{"cards.md": r.Bytes(), "cards.csv": []byte(csv + "\n"), "corpus.svg": picture}, err
}
