package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// loadWorkloads reads and compiles files concurrently, in order, or the built-in recordings
// without files. Workloads with the same name get numbers, so that their results and plots have
// different names. The origins are for advice.
func loadWorkloads(files []string, advise bool) ([]*sim.Workload, []origin, error) {
	if len(files) == 0 {
		files = append(samples.Names(), samples.Programs()...)
	}
	all, origins := make([]*sim.Workload, len(files)), make([]origin, len(files))
	var g errgroup.Group
	for i, f := range files {
		g.Go(func() (err error) {
			all[i], origins[i], err = loadWorkload(f, advise)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	seen := make(map[string]bool) // parts of file names
	for _, w := range all {
		for name, n := w.Name, 2; seen[chart.Stem(w.Name)]; n++ {
			w.Name = fmt.Sprintf("%s-%d", name, n)
		}
		seen[chart.Stem(w.Name)] = true
	}
	return all, origins, nil
}

// An origin describes the program that made a recording.
type origin struct {
	had    int64    // see experiment.Had; 0 without advice
	torch  bool     // PyTorch made it
	lost   string   // see trace.Trace.Lost
	others []string // other spaces that have allocations
}

// notes returns the reasons why the figures of a workload may not be those of its program.
func (o *origin) notes(w *sim.Workload) (notes []string) {
	if len(o.others) > 0 {
		notes = append(notes, fmt.Sprintf("Only %v memory is replayed, in which the most bytes are allocated. The recording also has %s memory.", w.Space, strings.Join(o.others, ", ")))
	}
	if w.SeenDeaths > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s deaths are known only from the cycle that found them. So less was reachable than is shown, and a lower limit may be enough. The policy always dates them to within one step.", pressure.Count(w.SeenDeaths), pressure.Count(w.Drops)))
	}
	if o.lost != "" {
		notes = append(notes, "The figures are not those of the program"+o.lost+".")
	}
	return notes
}

// loadWorkload reads a file and compiles the space with the most allocated bytes.
func loadWorkload(path string, advise bool) (*sim.Workload, origin, error) {
	t, err := loadTrace(path)
	if err != nil {
		return nil, origin{}, err
	}
	w, err := experiment.Compile(t)
	if err != nil {
		return nil, origin{}, fmt.Errorf("%s: %w", path, err)
	}
	var from origin
	from.torch = slices.Contains(samples.Names(), path) || strings.Contains(strings.ToLower(t.Meta["source"]), "torch")
	from.lost = t.Lost()
	var has [256]bool
	for _, e := range t.Events {
		if e.Kind == trace.Alloc && e.Space != w.Space && !has[e.Space] {
			has[e.Space] = true
			from.others = append(from.others, e.Space.String())
		}
	}
	if advise {
		from.had = experiment.Had(t)
	}
	return w, from, nil
}

// loadTrace reads a file, or the built-in recording of that name if there is no such file.
func loadTrace(path string) (*trace.Trace, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if slices.Contains(samples.All(), path) {
			return samples.Open(path)
		}
	}
	t, err := openTrace(path, "", nil)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == "-":
		err = errors.New("the standard input cannot be read: save it to a file first")
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "://"):
		err = fmt.Errorf("%s is an address: download it to a file first", recording.Plain(path))
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w%s", err, suggestion(path, samples.All()))
	case errors.Is(err, trace.ErrTruncated):
		err = fmt.Errorf("%w (replay import %s --recover -o OUT.arrows reads the whole part)", err, recording.Plain(path))
	}
	return t, err
}

// loadValid is loadTrace, and checks that the events are valid.
func loadValid(path string) (*trace.Trace, error) {
	t, err := loadTrace(path)
	if err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// maxMemory is --max-memory: the memory of the reader of one file. 0 is the default.
var maxMemory int64

// openTrace reads a file of a format; "" detects the format. A trace without a name gets the
// name of the file. Control characters of names are escaped. Progress, if it is not nil,
// receives the share of the file that has been read.
func openTrace(path, from string, progress func(share float64)) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if info, err := f.Stat(); progress != nil && err == nil && info.Mode().IsRegular() {
		r = &followed{Reader: f, size: info.Size(), progress: progress}
	}
	t, err := formats.Opener{From: from, Memory: maxMemory}.Read(r)
	if t != nil {
		t.Name = recording.Plain(cmp.Or(t.Name, recording.Stem(path)))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, err
}

// A followed reader reports the share of a file that has been read.
type followed struct {
	io.Reader
	read, size int64
	progress   func(share float64)
}

func (f *followed) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.read += int64(n)
	f.progress(float64(f.read) / float64(max(1, f.size)))
	return n, err
}

// A sizeFlag is a flag with a number of bytes, which may be 0.
type sizeFlag int64

func (f *sizeFlag) Set(text string) (err error) {
	var n int64
	if text != "0" {
		n, err = experiment.ParseBytes(text)
	}
	*f = sizeFlag(n)
	return err
}

func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return pressure.Limit{Bytes: int64(*f)}.String()
}

func (*sizeFlag) Type() string { return "bytes" }
