package beam

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/eagergc/eagergc/sim/fleet"
)

type beamContext = context.Context

// A listFn lists the files of a pattern. One call of the filesystem lists them all.
type listFn struct{}

func (*listFn) ProcessElement(ctx beamContext, pattern string, emit func(string)) error {
	files, err := filesystem.New(ctx, pattern)
	if err != nil {
		return err
	}
	defer files.Close()
	names, err := files.List(ctx, pattern)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no recordings", pattern)
	}
	for _, name := range names {
		if !hidden(name) {
			emit(name)
		}
	}
	return nil
}

// A cutFn cuts large files into parts. Their sizes are asked for in parallel.
type cutFn struct {
	Cells int
	Large int64
}

func (f *cutFn) ProcessElement(ctx beamContext, name string, emit func(part)) error {
	files, err := filesystem.New(ctx, name)
	if err != nil {
		return err
	}
	defer files.Close()
	size, err := files.Size(ctx, name)
	if err != nil {
		return err
	}
	for _, p := range cut(name, size, f.Large, f.Cells) {
		emit(p)
	}
	return nil
}

// A replayFn replays a part of a file: the Map.
type replayFn struct {
	Plan        fleet.Plan
	Base, Cache string

	mapper *fleet.Mapper
}

// Setup reads the plan, once for each worker.
func (f *replayFn) Setup() (err error) {
	f.mapper, err = fleet.NewMapper(f.Plan)
	return err
}

func (f *replayFn) ProcessElement(ctx beamContext, p part, emit func(fleet.Partial)) error {
	name := strings.TrimPrefix(p.Path, f.Base)
	job, err := f.job(ctx, p)
	switch {
	case err == nil:
		emit(*f.mapper.Partial(name, job, p.From, p.To))
	case ctx.Err() != nil || !fleet.IsRecording(err):
		return err // of the filesystem: the runner tries again
	case p.From == 0: // the other parts of the file say the same
		emit(*f.mapper.Fault(name, err))
	}
	return nil
}

// job returns a job with the outcomes of a part, from the cache or replayed.
func (f *replayFn) job(ctx context.Context, p part) (*fleet.Job, error) {
	files, err := filesystem.New(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	var cache *fleet.Cache
	if f.Cache != "" {
		kept, err := filesystem.New(ctx, f.Cache)
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		cache = fleet.NewCache(&folder{kept, strings.TrimSuffix(f.Cache, "/")})
	}
	source := fleet.Source{Name: p.Path, Open: func() (fleet.File, error) { return files.OpenRead(ctx, p.Path) }}
	return f.mapper.Complete(ctx, cache, source, 0, p.From, p.To)
}

// A mergeFn adds partials up: the Merge.
type mergeFn struct{}

func (*mergeFn) CreateAccumulator() fleet.Partial { return fleet.Partial{} }

func (*mergeFn) AddInput(sum, p fleet.Partial) fleet.Partial {
	sum.Merge(&p)
	return sum
}

func (*mergeFn) MergeAccumulators(a, b fleet.Partial) fleet.Partial {
	a.Merge(&b)
	return a
}

// A writeFn writes the answer.
type writeFn struct {
	Plan   fleet.Plan
	Output string
}

func (f *writeFn) ProcessElement(ctx beamContext, sum fleet.Partial) error {
	var text bytes.Buffer
	if err := (&fleet.Answer{Plan: f.Plan, Partial: &sum}).Encode(&text); err != nil {
		return err
	}
	files, err := filesystem.New(ctx, f.Output)
	if err != nil {
		return err
	}
	defer files.Close()
	hash := sha256.Sum256(text.Bytes())
	out := &folder{files, strings.TrimSuffix(f.Output, "/")}
	for _, name := range []string{"fleet-" + hex.EncodeToString(hash[:8]) + ".json", "fleet.json"} {
		if err := out.Write(ctx, name, text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// A folder is the fleet.Files of a folder in a filesystem of Beam.
type folder struct {
	files filesystem.Interface
	path  string
}

// List implements fleet.Files. A folder that is not there is empty.
func (f *folder) List(ctx context.Context, name string) ([]string, error) {
	full, err := f.files.List(ctx, f.path+"/"+name+"/*")
	names := make([]string, 0, len(full))
	for _, n := range full {
		if !hidden(n) {
			names = append(names, strings.TrimPrefix(n, f.path+"/"))
		}
	}
	return names, err
}

// Read implements fleet.Files.
func (f *folder) Read(ctx context.Context, name string) ([]byte, error) {
	return filesystem.Read(ctx, f.files, f.path+"/"+name)
}

// Write implements fleet.Files.
func (f *folder) Write(ctx context.Context, name string, data []byte) error {
	return filesystem.Write(ctx, f.files, f.path+"/"+name, data)
}
