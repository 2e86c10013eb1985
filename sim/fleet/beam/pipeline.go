// Package beam runs a fleet on Apache Beam: the Map and Merge of package fleet as a DoFn
// and a CombineFn. It is a module of its own, so that Beam's modules are nobody else's.
//
// The pipeline lists files, cuts large ones into parts by their cells, replays each part, and
// merges what comes of them. Files are read as Beam's filesystems give them. A runner may
// run a bundle twice: every output is named by its content or has the same bytes again.
//
// Program fleet-beam is this package with the runners and filesystems of Beam. Its answer
// has the bytes of `replay fleet` on the same files.
package beam

import (
	"path"
	"reflect"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/eagergc/eagergc/sim/fleet"
)

func init() {
	beam.RegisterCoder(reflect.TypeFor[fleet.Partial](), encodePartial, decodePartial)
	register.DoFn3x1[beamContext, string, func(string), error](&listFn{})
	register.DoFn3x1[beamContext, string, func(part), error](&cutFn{})
	register.DoFn3x1[beamContext, part, func(fleet.Partial), error](&replayFn{})
	register.Combiner1[fleet.Partial](&mergeFn{})
	register.DoFn2x1[beamContext, fleet.Partial, error](&writeFn{})
	register.Emitter1[string]()
	register.Emitter1[part]()
	register.Emitter1[fleet.Partial]()
}

// Options are what a pipeline is made of.
type Options struct {
	Plan   fleet.Plan
	Input  string // a folder, or a pattern of names as the filesystem matches them
	Output string // folder of the answer
	Cache  string // folder of a fleet.Cache; empty: none
	Large  int64  // bytes from which a file is cut; 0: 256 MiB
}

// Build adds the pipeline to a scope. When it has run, the output has fleet.json, and the
// same bytes under the name of their hash.
func Build(s beam.Scope, o Options) {
	if o.Large == 0 {
		o.Large = 256 << 20
	}
	pattern := patternOf(o.Input)
	names := beam.ParDo(s.Scope("list"), &listFn{}, beam.Create(s, pattern))
	parts := beam.ParDo(s.Scope("cut"), &cutFn{Cells: len(o.Plan.Cells()), Large: o.Large}, beam.Reshuffle(s, names))
	partials := beam.ParDo(s.Scope("replay"), &replayFn{Plan: o.Plan, Base: baseOf(pattern), Cache: o.Cache}, beam.Reshuffle(s, parts))
	sum := beam.Combine(s.Scope("merge"), &mergeFn{}, partials)
	beam.ParDo0(s.Scope("write"), &writeFn{Plan: o.Plan, Output: o.Output}, sum)
}

// patternOf is the pattern of all files in a folder, unless it is a pattern already.
func patternOf(input string) string {
	if strings.ContainsAny(input, "*?[") {
		return input
	}
	return strings.TrimSuffix(input, "/") + "/*"
}

// baseOf is the part of a pattern that is no part of a job's name: up to the last slash
// before the first sign of a pattern.
func baseOf(pattern string) string {
	i := strings.IndexAny(pattern, "*?[")
	return pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
}

// A part is some cells of a file.
type part struct {
	Path     string
	From, To int // cells
}

// cut divides n cells into parts of at most one for each Large bytes.
func cut(name string, size, large int64, cells int) (parts []part) {
	n := int(min(int64(cells), max(1, (size+large-1)/large)))
	for i := range n {
		parts = append(parts, part{name, i * cells / n, (i + 1) * cells / n})
	}
	return parts
}

// hidden reports whether a file is left out, as fleet.Sources does.
func hidden(name string) bool {
	return strings.HasPrefix(path.Base(name), ".") || path.Ext(name) == ".partial"
}

func encodePartial(p fleet.Partial) ([]byte, error) { return p.MarshalBinary() }

func decodePartial(b []byte) (p fleet.Partial, err error) { return p, p.UnmarshalBinary(b) }
