package goruntime

import "runtime"

// Set sets the number of cores, and the share of them from which a program is busy, until restore is
// called.
func Set(n int, share float64) (restore func()) {
	old := busy
	cores, busy = func() int { return n }, share
	return func() { cores, busy = runtime.NumCPU, old }
}
