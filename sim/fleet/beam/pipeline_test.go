package beam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/synthetic"
)

func TestMain(m *testing.M) {
	beam.Init() // registers what a worker needs; the runner starts workers in this process
	os.Exit(m.Run())
}

// writeFleet makes n recordings, and one file that is none.
func writeFleet(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	base, err := synthetic.Open("decoder", 1)
	if err != nil {
		t.Fatal(err)
	}
	g := fleet.Generator{Seed: 3, Events: 100, Bases: []*trace.Trace{base}}
	for i := range n {
		tr := g.Trace(i)
		if err := arrowfile.WriteFile(filepath.Join(dir, tr.Name+".arrows"), tr); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "broken"), []byte("no recording"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func plan() fleet.Plan {
	return fleet.Plan{
		Policies: []string{"never", "cudajl", "pacer", "optimum-overlap"}, Limits: []string{"1.25x", "2x"},
		Cycles: []time.Duration{time.Millisecond}, Ladder: "2x",
	}
}

// onOneMachine is the answer of fleet.Local.
func onOneMachine(t *testing.T, dir string) []byte {
	t.Helper()
	m, err := fleet.NewMapper(plan())
	if err != nil {
		t.Fatal(err)
	}
	sources, err := fleet.Sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := (&fleet.Local{Mapper: m}).Run(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := (&fleet.Answer{Plan: m.Plan, Partial: sum}).Encode(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func onPrism(t *testing.T, o Options) ([]byte, error) {
	t.Helper()
	p, s := beam.NewPipelineWithRoot()
	o.Plan, o.Output = plan(), t.TempDir()
	Build(s, o)
	if _, err := prism.Execute(t.Context(), p); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(o.Output)
	if err != nil || len(files) != 2 {
		t.Fatalf("output %v: %v", files, err)
	}
	var texts [2][]byte
	for i, f := range files {
		if texts[i], err = os.ReadFile(filepath.Join(o.Output, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the answer by its name and by its hash differ")
	}
	return texts[0], nil
}

// Prism's answer has the bytes of one machine's: with whole files, with files in parts,
// without, with an empty and with a full cache.
func TestPrismSaysWhatOneMachineSays(t *testing.T) {
	const jobs = 200
	dir := writeFleet(t, jobs)
	want := onOneMachine(t, dir)
	cache := t.TempDir()
	for name, o := range map[string]Options{
		"whole files": {Input: dir}, "a pattern, in parts": {Input: filepath.Join(dir, "*"), Large: 700, Cache: cache},
	} {
		got, err := onPrism(t, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: another answer, of %d bytes for %d", name, len(got), len(want))
		}
	}
	pages, _ := filepath.Glob(filepath.Join(cache, "*", "*", "*"))
	if len(pages) <= jobs {
		t.Errorf("%d pages in the cache of %d jobs in parts", len(pages), jobs)
	}
	if got, err := onPrism(t, Options{Input: dir, Cache: cache}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("full cache: %v", err)
	}
	if after, _ := filepath.Glob(filepath.Join(cache, "*", "*", "*")); len(after) != len(pages) {
		t.Errorf("%d pages became %d: what was known was replayed", len(pages), len(after))
	}
}

// An element that is replayed twice, as a runner may after a worker is lost, changes
// neither the cache nor what is said.
func TestBundleTwice(t *testing.T) {
	dir, cache := writeFleet(t, 3), t.TempDir()
	f := &replayFn{Plan: plan(), Base: dir + "/", Cache: cache}
	if err := f.Setup(); err != nil {
		t.Fatal(err)
	}
	said := func() (all []string) {
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range names {
			for _, p := range cut(name, 2500, 1000, 8) {
				if err := f.ProcessElement(t.Context(), p, func(p fleet.Partial) {
					b, err := p.MarshalBinary()
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, string(b))
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		return all
	}
	first := said()
	files := tree(t, cache)
	if second := said(); !slices.Equal(first, second) {
		t.Error("the second time it says something else")
	}
	if again := tree(t, cache); !slices.Equal(files, again) {
		t.Errorf("the cache has changed from %v to %v", files, again)
	}
}

func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", name, data))
	}
	return all
}

// A shaky storage loses its connection at every few reads. That is no fault of a
// recording: the element fails, and a later try gives the right answer.
func TestStorageThatFails(t *testing.T) {
	dir := writeFleet(t, 2)
	f := &replayFn{Plan: plan(), Base: "shaky://" + dir + "/"}
	if err := f.Setup(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "job*"))
	var failed int
	for _, name := range names {
		var said []fleet.Partial
		for len(said) == 0 {
			err := f.ProcessElement(t.Context(), part{"shaky://" + name, 0, 8}, func(p fleet.Partial) { said = append(said, p) })
			if err != nil {
				failed++
			}
			if failed > 100 {
				t.Fatal(err)
			}
		}
		if said[0].Broken.Count != 0 {
			t.Errorf("%s: a lost connection is told as %+v", name, said[0].Broken)
		}
	}
	if failed == 0 {
		t.Error("the storage did not fail")
	}
}

type shaky struct{ filesystem.Interface }

var shakes atomic.Int64

func init() {
	filesystem.Register("shaky", func(ctx context.Context) filesystem.Interface { return shaky{local.New(ctx)} })
}

func (s shaky) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	if shakes.Add(1)%3 == 0 {
		return nil, errors.New("no route to the storage")
	}
	f, err := s.Interface.OpenRead(ctx, name[len("shaky://"):])
	if shakes.Load()%3 == 1 {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(f, 100), &lost{}), f}, err
	}
	return f, err
}

type lost struct{}

func (*lost) Read([]byte) (int, error) { return 0, errors.New("connection lost") }

func TestNames(t *testing.T) {
	for input, want := range map[string]string{
		"gs://b/run": "gs://b/run/* gs://b/run/", "gs://b/run/": "gs://b/run/* gs://b/run/",
		"s3://b/*/x-?.arrows": "s3://b/*/x-?.arrows s3://b/", "a/b*": "a/b* a/",
	} {
		if got := patternOf(input) + " " + baseOf(patternOf(input)); got != want {
			t.Errorf("%s: %s, want %s", input, got, want)
		}
	}
	if !hidden("a/.x") || !hidden("a/x.partial") || hidden("a.b/x.arrows") {
		t.Error("hidden")
	}
}

// Parts have all cells, each once.
func TestCut(t *testing.T) {
	for size := range int64(60) {
		for cells := 1; cells < 12; cells++ {
			next := 0
			for _, p := range cut("x", size, 5, cells) {
				if p.From != next || p.To <= p.From {
					t.Fatalf("%d bytes, %d cells: %v", size, cells, p)
				}
				next = p.To
			}
			if next != cells {
				t.Fatalf("%d bytes: %d of %d cells", size, next, cells)
			}
		}
	}
}
