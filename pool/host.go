package pool

import "github.com/eagergc/eagergc/pressure"

// Host is the [Upstream] of anonymous memory of this machine, outside the Go
// heap: mmap on Linux, macOS and the BSDs. Fresh memory reads as zero and costs
// nothing until it is touched. Elsewhere Allocate returns an error that wraps
// errors.ErrUnsupported. The zero value is ready to use.
type Host struct{}

// Part returns what lies between multiples of 64 KiB, if that is 1 MiB or more:
// each part that is given back is a mapping more, of which systems allow some
// ten thousand.
func (Host) Part(addr uintptr, bytes int64) (part uintptr, size int64) {
	const unit = tightRound
	part = (addr + unit - 1) / unit * unit
	size = int64((addr+uintptr(bytes))/unit*unit) - int64(part)
	if size < 1<<20 {
		return 0, 0
	}
	return part, size
}

// Info returns the memory that this process may use: see [pressure.HostMemory].
func (Host) Info() (pressure.Info, error) { return pressure.HostMemory() }
