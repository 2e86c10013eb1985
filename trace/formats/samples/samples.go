// Package samples holds recordings for comparisons, benchmarks and notebooks. [About] describes the
// program of each.
//
//   - [Names]: eleven PyTorch programs on one H200. Each recording is a memory snapshot, merged with
//     the waits of a profile.
//   - [Programs]: five Go programs with memory outside the Go heap (cmd/clients). Package gc recorded
//     them on two idle cores while they freed all memory by hand.
//   - [GoMLX]: four Go programs with arrays on one H100 (gc/with/gomlx/internal/measure).
//
// PyTorch counts references, and the five programs free each object when they are done with it. So
// objects end when they become unreachable. A gauge has no objects, and each rise of it counts as one.
//
// The backend recorded the programs of GoMLX with a cycle at every wait. Their arrays end when a
// cycle found them, which is later than in truth by up to a wait. The time for which cycles held the
// program is taken out. Work beside the cycles took longer than alone: steps last 1.1 (conv) to 8
// (dense) times as long as live.
package samples

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/trace"
	_ "github.com/eagergc/eagergc/trace/formats/zstd" // the recordings are packed with it
)

//go:generate ./generate.sh

//go:embed *.arrows
var files embed.FS

// A sample is the name of a recording and a description of its program.
type sample struct{ name, about string }

var torch = []sample{ // in the order in which they were recorded
	{"mlp", "linear model with Adam: the toy model of CUDA.jl's 5.4 post"},
	{"resnet", "ResNet-50 with SGD, input copied to the device each step"},
	{"gpt2", "GPT-2 small with AdamW, sequences of any length"},
	{"vit", "ViT-S/16 under bf16, every tenth step an evaluation"},
	{"gp", "exact Gaussian process on 24,000 points"},
	{"gnn", "graph network, every batch of another shape"},
	{"burst", "bursts of inference with idle time between"},
	{"rcnn", "Faster R-CNN, images of many sizes, many short waits"},
	{"ppo", "PPO: rollouts of 8,192 environments, then updates, in turn"},
	{"serve", "inference of three models, batches of 1 to 64"},
	{"spectral", "Navier-Stokes by Runge-Kutta, all temporaries from Python"},
}

var golang = []sample{
	{"thumb", "image service over libvips: a gauge of what libvips has allocated"},
	{"matrix", "matrices of 1 MiB in memory of C's malloc: account"},
	{"wasm", "plugins under wazero, each with 16 MiB of its own: own"},
	{"arrow", "record batches of Apache Arrow, with its allocator over malloc: own"},
	{"query", "databases in memory: a gauge of what SQLite has allocated"},
}

var goMLX = []sample{
	{"array", "a product of 4096 x 4096, tanh, scale, add: four arrays of 64 MiB a step"},
	{"dense", "two layers and their gradients, operation by operation, with momentum"},
	{"conv", "a convolutional network in GoMLX's own trainer, batches of 48 MiB"},
	{"infer", "inference for four clients at once, requests of 1 to 32 pictures"},
}

func namesOf(all []sample) (names []string) {
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

// Names returns the names of the PyTorch programs, in the order in which they were
// recorded. The result is the caller's.
func Names() []string { return namesOf(torch) }

// GoMLX returns the names of the Go programs with GPU memory. The result is the caller's.
func GoMLX() []string { return namesOf(goMLX) }

// Programs returns the names of the Go programs with host memory. The result is the caller's.
func Programs() []string { return namesOf(golang) }

// About describes the program of a name in a few words. It is empty for other names.
func About(name string) string {
	for _, s := range slices.Concat(torch, golang, goMLX) {
		if s.name == name {
			return s.about
		}
	}
	return ""
}

// All returns all names: of PyTorch's programs, of Go's, and of GoMLX's.
func All() []string { return slices.Concat(Names(), Programs(), GoMLX()) }

// Open decodes a workload. The caller owns the trace. An unknown name is an error.
// Open is safe for concurrent use.
func Open(name string) (*trace.Trace, error) {
	data, err := File(name)
	if err != nil {
		return nil, err
	}
	t, err := trace.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("samples: %s: %w", name, err)
	}
	return t, nil
}

// File returns the native trace of a workload, as a file has it. The bytes are the
// caller's.
func File(name string) ([]byte, error) {
	if !slices.Contains(All(), name) {
		return nil, fmt.Errorf("samples: no workload %q (there are %s)", name, strings.Join(All(), ", "))
	}
	data, err := files.ReadFile(name + ".arrows")
	if err != nil {
		panic(err) // it is embedded: a test opens every name
	}
	return data, nil
}
