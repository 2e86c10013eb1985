package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/samples"
	"github.com/eagergc/eagergc/trace/synthetic"
)

func testPlan() Plan {
	return Plan{
		Policies: []string{"never", "pacer", "cudajl", "optimum-overlap"}, Limits: []string{"1.25x", "2x", "64MiB"},
		Cycles: []time.Duration{time.Millisecond}, Ladder: "2x",
	}
}

func newMapper(t testing.TB, p Plan) *Mapper {
	t.Helper()
	m, err := NewMapper(p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encode(t testing.TB, m *Mapper, p *Partial) string {
	t.Helper()
	var b bytes.Buffer
	if err := (&Answer{Plan: m.Plan, Partial: p}).Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// writeFleet makes n recordings in a folder.
func writeFleet(t testing.TB, n, events int) string {
	t.Helper()
	dir := t.TempDir()
	g := Generator{Seed: 7, Events: events, Bases: bases(t, "mlp", "serve", "decoder:1")}
	for i := range n {
		tr := g.Trace(i)
		if err := arrowfile.WriteFile(filepath.Join(dir, tr.Name+".arrows"), tr); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func bases(t testing.TB, names ...string) (all []*trace.Trace) {
	for _, name := range names {
		tr, err := samples.Open(name)
		if shape, ok := strings.CutSuffix(name, ":1"); ok {
			tr, err = synthetic.Open(shape, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	return all
}

func sources(t testing.TB, dir string) []Source {
	t.Helper()
	all, err := Sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// anyPartial draws the partial of a job that nobody has replayed.
func anyPartial(m *Mapper) *rapid.Generator[*Partial] {
	number := rapid.Custom(func(t *rapid.T) int64 {
		return rapid.Int64Range(0, math.MaxInt64).Draw(t, "n") >> rapid.IntRange(0, 62).Draw(t, "shift")
	})
	return rapid.Custom(func(t *rapid.T) *Partial {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
			return m.Fault(name, errors.New(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "why")))
		}
		j := &Job{Hash: rapid.SampledFrom([]string{"00", "11"}).Draw(t, "hash"), Outcomes: make(Outcomes)}
		j.Features = Features{PeakReachable: number.Draw(t, "peak"), Span: number.Draw(t, "span"), AllocatedBytes: number.Draw(t, "allocated")}
		for _, key := range m.keys {
			j.Outcomes[key] = Outcome{
				None: rapid.IntRange(0, 9).Draw(t, "none") == 0, Limit: number.Draw(t, "limit"), Objective: number.Draw(t, "objective"),
				Longest: number.Draw(t, "longest"), MeanLive: number.Draw(t, "live"), Elapsed: number.Draw(t, "elapsed"), Failed: number.Draw(t, "failed"),
			}
		}
		return m.Partial(name, j, 0, m.Len())
	})
}

// Any order and any tree of merges gives the same bytes, through the encoding or not.
func TestMergeIsAssociativeAndCommutative(t *testing.T) {
	m := newMapper(t, Plan{Policies: []string{"never", "always"}, Limits: []string{"2x"}, Cycles: []time.Duration{1}, Ladder: "2x"})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(anyPartial(m), 1, 40).Draw(t, "parts")
		straight := new(Partial)
		for _, p := range parts {
			straight.Merge(p)
		}
		want, _ := json.Marshal(straight)
		heap := rapid.Permutation(parts).Draw(t, "order")
		for len(heap) > 1 {
			i := rapid.IntRange(0, len(heap)-2).Draw(t, "pair")
			before, _ := json.Marshal(heap[i+1])
			sum := Merge(heap[i], heap[i+1])
			if after, _ := json.Marshal(heap[i+1]); !bytes.Equal(before, after) {
				t.Fatal("merging has changed a part")
			}
			if rapid.Bool().Draw(t, "travel") {
				b, err := sum.MarshalBinary()
				if sum = new(Partial); err != nil || sum.UnmarshalBinary(b) != nil {
					t.Fatal(err)
				}
			}
			heap = slices.Replace(heap, i, i+2, sum)
		}
		if got, _ := json.Marshal(Merge(new(Partial), heap[0])); string(got) != string(want) {
			t.Fatalf("another order gives\n%s\nand not\n%s", got, want)
		}
	})
}

// A job cut into parts by its cells says what the whole job says.
func TestPartsOfAJob(t *testing.T) {
	m := newMapper(t, testPlan())
	rec := record(t, (&Generator{Seed: 3, Events: 300, Bases: bases(t, "gnn")}).Trace(1))
	whole := encode(t, m, m.Map("a", rec))
	j := m.Job(rec)
	for i := range m.Len() {
		j.Outcomes[m.Key(i)] = m.Run(rec, i)
	}
	for step := 1; step < m.Len(); step++ {
		sum := new(Partial)
		for from := m.Len() / step * step; from >= 0; from -= step {
			sum.Merge(m.Partial("a", j, from, min(from+step, m.Len())))
		}
		if encode(t, m, sum) != whole {
			t.Fatalf("parts of %d cells say something else", step)
		}
	}
}

func record(t testing.TB, tr *trace.Trace) *Recording {
	t.Helper()
	var b bytes.Buffer
	if err := trace.WriteText(&b, tr); err != nil {
		t.Fatal(err)
	}
	rec, err := Read(&b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A sum is exact, and so is its text.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, sum := new(big.Int), Sum{}
		for _, n := range rapid.SliceOf(rapid.Int64Range(0, math.MaxInt64)).Draw(t, "numbers") {
			want.Add(want, new(big.Int).Mul(big.NewInt(n), big.NewInt(n)))
			sum.Add(Product(n, n))
		}
		want.And(want, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
		var back Sum
		if text, err := json.Marshal(sum); err != nil || string(text) != want.String() || json.Unmarshal(text, &back) != nil || back != sum {
			t.Fatalf("%s, want %v, read back %v", text, want, back)
		}
		if f, _ := new(big.Float).SetInt(want).Float64(); math.Abs(f-sum.Float()) > 1e-9*f {
			t.Fatalf("%v as a float is %v", want, sum.Float())
		}
	})
	var s Sum
	for _, bad := range []string{"-1", "1.5", `"x"`, "340282366920938463463374607431768211456"} {
		if json.Unmarshal([]byte(bad), &s) == nil {
			t.Errorf("%s is read as a sum", bad)
		}
	}
}

// Buckets and quantiles are those of the library.
func TestHistogramIsHdr(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs := Histogram{}, hdrhistogram.New(1, 1<<40, 2)
		numbers := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 50).Draw(t, "numbers")
		for _, n := range numbers {
			n >>= rapid.IntRange(0, 38).Draw(t, "shift")
			ours.Record(n)
			_ = theirs.RecordValue(n)
		}
		for _, bar := range theirs.Distribution() {
			if bar.Count > 0 && ours[bar.From] != bar.Count {
				t.Fatalf("%d in the bucket from %d, want %d", ours[bar.From], bar.From, bar.Count)
			}
		}
		if ours.Count() != theirs.TotalCount() {
			t.Fatalf("%d numbers, want %d", ours.Count(), theirs.TotalCount())
		}
		for _, q := range []float64{0.01, 0.5, 0.99, 1} {
			if got, want := ours.Quantile(q), bucket(theirs.ValueAtQuantile(100*q)); got != want {
				t.Fatalf("quantile %v is %d, want %d", q, got, want)
			}
		}
	})
}

// What a fleet of the built-in recordings says is what a comparison says.
func TestAgreesWithCompare(t *testing.T) {
	p := testPlan()
	p.Limits = []string{"1.25x", "2x"}
	m := newMapper(t, p)
	names := []string{"mlp", "gnn", "burst"}
	sum := new(Partial)
	g, err := p.grid()
	if err != nil {
		t.Fatal(err)
	}
	for i, tr := range bases(t, names...) {
		sum.Merge(m.Map(names[i], record(t, tr)))
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil {
			t.Fatal(err)
		}
		g.Workloads = append(g.Workloads, w)
	}
	if err := g.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	total := sum.Total()
	if total.Jobs != 3 || len(m.Plan.Cells()) != m.Len() {
		t.Fatalf("%d jobs, %d cells", total.Jobs, m.Len())
	}
	for i, cell := range m.Plan.Cells() {
		limit, cost, policy := m.split(i)
		tally := &total.Cells[i]
		var exposed, busy int64
		for _, o := range g.Select(policy, func(c experiment.Cell) bool { return c.Limit == limit && c.Cost == cost }) {
			exposed += int64(o.ExposedPause)
			busy += int64(o.GCBusy)
		}
		if tally.Runs != 3 || tally.Exposed.Float() != float64(exposed) || tally.Busy.Float() != float64(busy) {
			t.Errorf("%v: exposed %v and busy %v in %d runs, want %d and %d", cell, tally.Exposed, tally.Busy, tally.Runs, exposed, busy)
		}
		if want := g.Lost(cost, policy, limit); math.Abs(tally.Lost()-want) > 1e-6 {
			t.Errorf("%v: time lost %v, want %v", cell, tally.Lost(), want)
		}
	}
}

// A local run gives the bytes of the model, with any number of workers, with a cache that
// is empty, full, shared, damaged, or cannot be written.
func TestLocal(t *testing.T) {
	dir := writeFleet(t, 12, 120)
	broken := filepath.Join(dir, "broken.arrows")
	if err := os.WriteFile(broken, []byte("not a recording"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := newMapper(t, testPlan())
	want := new(Partial)
	for _, s := range sources(t, dir) {
		if rec, err := s.read(0); err != nil {
			want.Merge(m.Fault(s.Name, err))
		} else {
			want.Merge(m.Map(s.Name, rec))
		}
	}
	if want.Broken.Count != 1 || want.Broken.Named[0].Name != "broken.arrows" {
		t.Fatalf("broken: %+v", want.Broken)
	}
	text := encode(t, m, want)
	cache := t.TempDir()
	var last Progress
	run := func(how string, l Local) {
		t.Helper()
		l.Mapper, l.Each = m, func(p Progress) { last = p }
		got, err := l.Run(t.Context(), sources(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		if encode(t, m, got) != text {
			t.Errorf("%s: another answer", how)
		}
	}
	run("one worker", Local{Workers: 1})
	run("many workers, one file at a time", Local{Workers: 8, Memory: 1})
	run("empty cache", Local{Cache: NewCache(Folder(cache))})
	run("full cache", Local{Cache: NewCache(Folder(cache))})
	if last.Cached != 12 || last.Jobs != 13 || last.Broken != 1 {
		t.Errorf("progress %+v", last)
	}
	pages, _ := filepath.Glob(filepath.Join(cache, "*", "*", "*"))
	for i, p := range pages {
		damage(t, p, i)
	}
	run("damaged cache", Local{Cache: NewCache(Folder(cache))})
	if last.Cached != 0 {
		t.Errorf("%d damaged pages were believed", last.Cached)
	}
	run("full disk", Local{Cache: NewCache(full{})})
	if last.Unkept != 12 || last.Error == nil {
		t.Errorf("progress on a full disk %+v", last)
	}
}

func damage(t *testing.T, path string, how int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch how % 3 {
	case 0:
		data = data[:len(data)/2]
	case 1:
		data[len(data)/2] ^= 1
	case 2:
		data = nil
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// full is a disk on which there is no room.
type full struct{}

func (full) List(context.Context, string) ([]string, error) { return nil, nil }
func (full) Read(context.Context, string) ([]byte, error)   { return nil, os.ErrNotExist }
func (full) Write(context.Context, string, []byte) error {
	return errors.New("no space left on device")
}

// What is known of one policy serves a plan with more of them, and a cell whose settings
// differ does not.
func TestCacheByContent(t *testing.T) {
	dir, cache := writeFleet(t, 3, 60), NewCache(Folder(t.TempDir()))
	replayed := func(p Plan) (n int) {
		m := newMapper(t, p)
		l := Local{Mapper: m, Cache: cache}
		for _, s := range sources(t, dir) {
			o, err := m.prepare(t.Context(), cache, s, 0, 0, m.Len())
			if err != nil {
				t.Fatal(err)
			}
			n += len(o.missing)
		}
		if _, err := l.Run(t.Context(), sources(t, dir)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	p := Plan{Policies: []string{"never"}, Limits: []string{"2x"}, Cycles: []time.Duration{time.Millisecond}, Ladder: "2x"}
	steps := []struct {
		change func()
		want   int
	}{
		{func() {}, 3}, {func() {}, 0},
		{func() { p.Policies = append(p.Policies, "cudajl") }, 3},
		{func() { p.Limits = []string{"3x", "2x"} }, 6},
		{func() { slices.Reverse(p.Policies) }, 0},
		{func() { p.Ladder = "3x" }, 12},
		{func() { p.Machine = sim.MachineOf(sim.Fixed(time.Millisecond), sim.Ladder{Factor: 2}) }, 12},
		{func() { p.Seed = 2 }, 12},
	}
	for i, s := range steps {
		if s.change(); replayed(p) != s.want && i >= 0 {
			t.Errorf("step %d: not %d cells to replay", i, s.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "again.arrows"), read(t, filepath.Join(dir, "job-000000.arrows")), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := replayed(p); n != 0 {
		t.Errorf("%d cells of a copy were replayed", n)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A run that is ended goes on where it was.
func TestStopAndGoOn(t *testing.T) {
	dir := writeFleet(t, 10, 120)
	m := newMapper(t, testPlan())
	whole, err := (&Local{Mapper: m}).Run(t.Context(), sources(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	cache := NewCache(Folder(t.TempDir()))
	var cached, runs int
	for {
		ctx, stop := context.WithCancel(t.Context())
		l := Local{Mapper: m, Cache: cache, Each: func(p Progress) {
			if cached = p.Cached; p.Jobs-p.Cached == 2 {
				stop()
			}
		}}
		got, err := l.Run(ctx, sources(t, dir))
		stop()
		if runs++; err == nil {
			if encode(t, m, got) != encode(t, m, whole) {
				t.Error("another answer")
			}
			break
		}
		if runs > 20 {
			t.Fatal("it does not come to an end")
		}
	}
	if runs < 3 || cached < 6 {
		t.Errorf("%d runs, %d jobs cached in the last", runs, cached)
	}
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("fleet/b/1.arrows", "12345")
	write("fleet/a.arrows", "1")
	write("fleet/.cache/x", "")
	write("fleet/c.arrows.partial", "")
	list := write("list.txt", "# the fleet\nfleet/b/1.arrows\n\nnone.arrows\n")
	for path, want := range map[string]string{filepath.Join(dir, "fleet"): "a.arrows 1, b/1.arrows 5", list: "fleet/b/1.arrows 5, none.arrows 0"} {
		var got []string
		for _, s := range sources(t, path) {
			got = append(got, fmt.Sprintf("%s %d", s.Name, s.Bytes))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	none := sources(t, list)[1]
	if _, err := none.open(); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("of a file that is not there: %v", err)
	}
	for text, want := range map[string]string{"a\nb\na\n": ":3: a is in line 1, too", "\x00\x01": ":1: want a list"} {
		if _, err := Sources(write("bad.txt", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An answer reads back as it was; what is no answer is refused with its place.
func TestAnswer(t *testing.T) {
	m := newMapper(t, testPlan())
	text := encode(t, m, Merge(m.Map("a", record(t, (&Generator{Seed: 1, Events: 50, Bases: bases(t, "gnn")}).Trace(0))), m.Fault("b", io.ErrUnexpectedEOF)))
	a, err := Decode(strings.NewReader(text))
	if err != nil || !strings.HasPrefix(text, Magic) {
		t.Fatal(err)
	}
	if again := encode(t, m, a.Partial); again != text || !reflect.DeepEqual(a.Plan, m.Plan) {
		t.Error("another answer")
	}
	for _, bad := range []string{
		"", "{}", `{"fleet":2}`, text[:len(text)/2], strings.Replace(text, `"limits":["1.25x"`, `"limits":["1.3x"`, 1),
		strings.Replace(text, `"worst":[[`, `"worst":[[],[`, 1), strings.Replace(text, `"jobs":1`, `"jobs":"1"`, 1),
	} {
		if _, err := Decode(strings.NewReader(bad)); err == nil {
			t.Errorf("%.60q is an answer", bad)
		}
	}
}

func TestPlanIsRefused(t *testing.T) {
	for _, change := range []func(*Plan){
		func(p *Plan) { p.Policies = []string{"nobody"} }, func(p *Plan) { p.Limits = []string{"x"} }, func(p *Plan) { p.Limits = nil },
		func(p *Plan) { p.Cycles = []time.Duration{-1} }, func(p *Plan) { p.Ladder = "" },
	} {
		p := testPlan()
		if change(&p); true {
			if _, err := NewMapper(p); err == nil {
				t.Errorf("%+v is a plan", p)
			}
		}
	}
}

// The generator's recordings are valid, each is the same each time, and they differ.
func TestGenerator(t *testing.T) {
	g := Generator{Seed: 5, Events: 400, Bases: bases(t, "ppo", "wasm", "burst", "server:1", "idler:1")}
	groups := make(map[string]bool)
	for i := range 60 {
		tr := g.Trace(i)
		if err := tr.Validate(); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if !reflect.DeepEqual(tr, g.Trace(i)) {
			t.Fatalf("%d is another one the second time", i)
		}
		rec := record(t, tr)
		f := featuresOf(rec.Workload)
		groups[f.Group()] = true
		if f.Allocs < 5 || len(tr.Events) > 4000 {
			t.Errorf("%d: %d allocations in %d events", i, f.Allocs, len(tr.Events))
		}
	}
	if len(groups) < 8 {
		t.Errorf("%d groups of 60 jobs: %v", len(groups), groups)
	}
}

// Fleet makes a fleet's jobs one after another: jobs/op is 1.
func BenchmarkMap(b *testing.B) {
	m, err := NewMapper(testPlan())
	if err != nil {
		b.Fatal(err)
	}
	rec := record(b, (&Generator{Seed: 1, Events: 1000, Bases: bases(b, "gnn")}).Trace(0))
	sum := new(Partial)
	b.ReportAllocs()
	for b.Loop() {
		sum.Merge(m.Map("a", rec))
	}
}
