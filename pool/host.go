package pool

import "github.com/eagergc/eagergc/pressure"

// Host is the [Upstream] of this machine's memory, outside the Go heap. It uses
// mmap on Linux, macOS and the BSDs. New memory reads as zero and takes no physical
// memory until it is touched. On other systems Allocate returns an error that
// wraps errors.ErrUnsupported. The zero value is ready to use.
type Host struct{}

// Part returns the part between multiples of 64 KiB, if that is 1 MiB or more.
// Each part that is given back splits a mapping in two, and systems allow some ten
// thousand mappings.
func (Host) Part(addr uintptr, bytes int64) (part uintptr, size int64) {
	const unit = tightRound
	part = (addr + unit - 1) / unit * unit
	size = int64((addr+uintptr(bytes))/unit*unit) - int64(part)
	if size < 1<<20 {
		return 0, 0
	}
	return part, size
}

// Info returns how much memory this process may use: see [pressure.HostMemory].
func (Host) Info() (pressure.Info, error) { return pressure.HostMemory() }
