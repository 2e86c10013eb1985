package pool

import "github.com/eagergc/eagergc/pressure"

// Host is the [Upstream] of this machine's memory, outside the Go heap. It uses
// mmap on Linux, macOS and the BSDs. New memory reads as zero and takes no physical
// memory until it is touched. On other systems Allocate returns an error that
// wraps errors.ErrUnsupported. The zero value is ready to use.
type Host struct{}

// Info returns how much memory this process may use: see [pressure.HostMemory].
func (Host) Info() (pressure.Info, error) { return pressure.HostMemory() }
