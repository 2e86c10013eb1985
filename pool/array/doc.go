// Package array has typed arrays in the memory of a [pool.Pool]: to make, fill,
// copy, print and reshape them, to move structures of them from one memory to
// another ([Adapt]), and to feed data in batches ([Batches]).
//
//	p, err := pool.New(pool.Config{})
//	a, err := array.From(p, []float32{1, 2, 3})
//	fmt.Println(a) // float32[3] in host memory: 1 2 3
//
// An array that the program can no longer reach goes back to its pool at the next
// cycle of the pool's collector. Free gives it back at once.
//
// The processor reads and writes elements of host and of managed memory. For the
// memory of a device, which it cannot address, there are copies and kernels: see
// pool/cuda.
package array
