// Package array has typed arrays in the memory of a [pool.Pool]. They can be made, filled, copied
// and printed. [Adapt] moves structures of arrays from one memory to another, and
// [Batches] feeds a loop with data.
//
//	p, err := pool.New(pool.Config{})
//	a, err := array.From(p, []float32{1, 2, 3})
//	fmt.Println(a) // float32[3] in host memory: 1 2 3
//
// An array that the program can no longer reach goes back to its pool at the next cycle of the
// pool's collector. Free gives it back at once.
//
// The processor reads and writes elements of host, pinned and managed memory. It cannot address the
// memory of a device; for that there are copies and kernels: see pool/cuda.
package array
