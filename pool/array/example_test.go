package array_test

import (
	"fmt"
	"log"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// An array is memory of a pool. Once the program cannot reach it, a cycle frees it.
func ExampleArray() {
	memory, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
	if err != nil {
		log.Fatal(err)
	}
	defer memory.Close()

	a, err := array.From(memory, []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	values, err := a.ToSlice()
	fmt.Println(a.Len(), values, err)

	for range 1000 { // 4 GB in all
		if _, err := array.New[float32](memory, 1e6); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("within the limit:", memory.Stats().LivePeak <= 64<<20)
	// Output:
	// 3 [1 2 3] <nil>
	// within the limit: true
}
