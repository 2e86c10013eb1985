package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
	"github.com/eagergc/eagergc/trace/formats/synthetic"
)

// loadWorkloads reads and compiles files, or the built-in workloads if there are none, side by
// side and in order. It gives those of the same name a number, so that rows of results and
// files of plots are not taken for one another.
func loadWorkloads(files []string) ([]*sim.Workload, error) {
	files = named(files)
	all := make([]*sim.Workload, len(files))
	var g errgroup.Group
	for i, f := range files {
		g.Go(func() (err error) {
			all[i], err = loadWorkload(f)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	seen := make(map[string]int)
	for _, w := range all {
		name := w.Name
		seen[name]++
		if n := seen[name]; n > 1 {
			w.Name = fmt.Sprintf("%s-%d", name, n)
		}
	}
	return all, nil
}

// named returns the built-in workloads if there are no files, and the programs of a
// seed, SHAPE:SEED, for synthetic:SEED.
func named(files []string) []string {
	if len(files) == 0 {
		return append(samples.Names(), samples.Programs()...)
	}
	var all []string
	for _, f := range files {
		seed, ok := strings.CutPrefix(f, "synthetic:")
		if !ok {
			all = append(all, f)
			continue
		}
		for _, shape := range synthetic.Shapes() {
			all = append(all, shape+":"+seed)
		}
	}
	return all
}

// loadWorkload reads a file and compiles the space in which it allocates most.
func loadWorkload(path string) (*sim.Workload, error) {
	t, err := loadTrace(path)
	if err != nil {
		return nil, err
	}
	w, err := experiment.Compile(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// loadTrace reads a file, or the built-in workload or the synthetic program of that
// name if there is no such file.
func loadTrace(path string) (*trace.Trace, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		shape, seed, _ := strings.Cut(path, ":")
		switch {
		case slices.Contains(samples.All(), path):
			return samples.Open(path)
		case slices.Contains(synthetic.Shapes(), shape):
			n, err := strconv.ParseUint(seed, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: want a seed after the colon, such as %s:7", path, shape)
			}
			return synthetic.Open(shape, n)
		}
	}
	t, err := openTrace(path, "")
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == "-":
		err = errors.New("the standard input cannot be read: save it to a file first")
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "://"):
		err = fmt.Errorf("%s is an address: download it to a file first", recording.Plain(path))
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w%s", err, suggestion(path, samples.All()))
	case errors.Is(err, trace.ErrTruncated):
		err = fmt.Errorf("%w (replay import %s --recover -o OUT.arrows takes what is whole)", err, recording.Plain(path))
	}
	return t, err
}

// loadValid reads the same, and checks that its events make sense.
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

// maxMemory is --max-memory: what reading one file may take. 0 is the default.
var maxMemory int64

// openTrace reads a file of a format, or of that found from its content. Its name
// may be shown.
func openTrace(path, from string) (*trace.Trace, error) {
	t, err := formats.Opener{From: from, Memory: maxMemory}.Open(path)
	if t != nil {
		t.Name = recording.Plain(t.Name)
	}
	return t, err
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
