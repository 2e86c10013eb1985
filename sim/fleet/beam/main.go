// Command beam asks a fleet of recordings on Apache Beam.
//
//	go run . --input 'gs://bucket/recordings/*' --output answer.json \
//		--question '{"policies": ["never", "pacer"], "limits": ["1.5x"], "cycles_ns": [1000000], "ladder": "2x"}'
//
// Files are those of Beam's filesystems: gs://, s3:// or local. Beam's own flags say where it
// runs; without them it runs on this machine, in this process. Names that begin with a dot
// are left out. The answer is the same bytes wherever it runs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/eagergc/eagergc/sim/fleet"
)

func init() {
	register.DoFn3x1[context.Context, string, func(string), error](&listFn{})
	register.DoFn3x1[context.Context, string, func([]byte), error](&mapFn{})
	register.Combiner1[[]byte](&mergeFn{})
	register.DoFn2x1[context.Context, []byte, error](&writeFn{})
	register.Emitter1[string]()
	register.Emitter1[[]byte]()
}

func main() {
	input := flag.String("input", "", "pattern of recordings, such as folder/*")
	output := flag.String("output", "", "file for the answer, as JSON")
	question := flag.String("question", "", "what is asked, as JSON")
	flag.Parse()
	beam.Init()
	if err := run(context.Background(), *input, *output, *question); err != nil {
		fmt.Fprintln(os.Stderr, "beam:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, input, output, question string) error {
	var q fleet.Question
	if input == "" || output == "" || question == "" {
		return fmt.Errorf("want --input, --output and --question")
	}
	if err := json.Unmarshal([]byte(question), &q); err != nil {
		return fmt.Errorf("--question: %w", err)
	}
	if err := q.Check(); err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	build(s, q, input, output)
	return beamx.Run(ctx, p)
}

func build(s beam.Scope, q fleet.Question, input, output string) {
	names := beam.ParDo(s.Scope("list"), &listFn{}, beam.Create(s, input))
	answers := beam.ParDo(s.Scope("map"), &mapFn{Question: q, Base: input[:strings.LastIndexByte(input, '/')+1]}, beam.Reshuffle(s, names))
	beam.ParDo0(s.Scope("write"), &writeFn{Output: output}, beam.Combine(s.Scope("merge"), &mergeFn{}, answers))
}

type listFn struct{}

func (*listFn) ProcessElement(ctx context.Context, pattern string, emit func(string)) error {
	files, err := filesystem.New(ctx, pattern)
	if err != nil {
		return err
	}
	defer files.Close()
	names, err := files.List(ctx, pattern)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: no recordings", pattern)
	}
	for _, name := range names {
		if !strings.HasPrefix(path.Base(name), ".") {
			emit(name)
		}
	}
	return err
}

// A mapFn replays a recording. Answers travel as JSON. Where a file is called what Base begins
// with, the answer knows it by the rest of its name, which is the same on every machine.
type mapFn struct {
	Question fleet.Question
	Base     string
}

func (f *mapFn) ProcessElement(ctx context.Context, name string, emit func([]byte)) error {
	files, err := filesystem.New(ctx, name)
	if err != nil {
		return err
	}
	defer files.Close()
	file, err := files.OpenRead(ctx, name)
	if err != nil {
		return err // of the filesystem: the runner tries again
	}
	defer file.Close()
	a, err := f.Question.Map(strings.TrimPrefix(name, f.Base), file)
	if err != nil {
		return err
	}
	text, err := json.Marshal(a)
	emit(text)
	return err
}

type mergeFn struct{}

func (*mergeFn) CreateAccumulator() []byte { return nil }

func (f *mergeFn) AddInput(sum, answer []byte) []byte { return f.MergeAccumulators(sum, answer) }

func (*mergeFn) MergeAccumulators(a, b []byte) []byte {
	var sum fleet.Answer
	for _, text := range [][]byte{a, b} {
		var one fleet.Answer
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &one); err != nil {
			panic(err) // we have written it
		}
		sum.Merge(&one)
	}
	text, err := json.Marshal(&sum)
	if err != nil {
		panic(err)
	}
	return text
}

type writeFn struct{ Output string }

func (f *writeFn) ProcessElement(ctx context.Context, answer []byte) error {
	files, err := filesystem.New(ctx, f.Output)
	if err != nil {
		return err
	}
	defer files.Close()
	return filesystem.Write(ctx, files, f.Output, append(answer, '\n'))
}
