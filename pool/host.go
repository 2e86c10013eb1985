package pool

import "github.com/eagergc/eagergc/pressure"

// Host is the [Upstream] of anonymous memory of this machine, outside the Go
// heap: mmap on Linux, macOS and the BSDs. Fresh memory reads as zero and costs
// nothing until it is touched. Elsewhere Allocate returns an error that wraps
// errors.ErrUnsupported. The zero value is ready to use.
type Host struct{}

// Info returns the memory that this process may use: see [pressure.HostMemory].
func (Host) Info() (pressure.Info, error) { return pressure.HostMemory() }
