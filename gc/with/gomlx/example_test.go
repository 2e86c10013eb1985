package gomlx_test

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"

	_ "github.com/eagergc/eagergc/gc/with/gomlx"
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
