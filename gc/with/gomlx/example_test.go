package gomlx_test

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/eagergc/eagergc/gc/with/gomlx"
)

// The program is as it was, but for an import and the name of its backend, which is as a rule in
// the environment: GOMLX_BACKEND=eager:xla:cuda.
func Example() {
	backend, err := backends.NewWithConfig("eager:go")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()
	norm := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
		return graph.Sqrt(graph.ReduceAllSum(graph.Mul(x, x)))
	})
	for range 3 { // no result is finalized
		fmt.Println(norm.MustExec1([]float32{3, 4}))
	}
	// Output:
	// float32(5)
	// float32(5)
	// float32(5)
}

// A library that names its backend reads no variable of the environment. So the program gives that
// name another constructor, before the library makes its backend.
func Example_library() {
	backends.Register("go", func(config string) (backends.Backend, error) {
		inner, err := simplego.New(config) // for the name xla: xla.New
		if err != nil {
			return nil, err
		}
		return gomlx.Wrap(inner)
	})
	defer backends.Register("go", simplego.New)
	backend, err := backends.NewWithConfig("go") // in the library
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()
	fmt.Println(backend.Description())
	// Output:
	// eager collection over Simple Go Portable Backend
}
