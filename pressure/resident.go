package pressure

import (
	"fmt"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Resident is what this process has in physical memory, in bytes.
type Resident struct {
	Anonymous int64 // pages of its own: heaps of Go, C and others, stacks
	Mapped    int64 // pages of files and shared memory, which the kernel can drop or others hold, too
}

// Outside returns the part of the anonymous memory that the Go runtime has not mapped. That is
// memory of C libraries and of the program's own mappings, and memory that their allocators keep.
// It is an estimate: memory that Go has mapped and not touched yet makes it smaller, down to 0.
// goBytes is [GoMemory].
func (r Resident) Outside(goBytes int64) int64 { return max(0, r.Anonymous-goBytes) }

// ReadResident reads the resident memory of this process, which takes some microseconds. The kernel
// counts it to within some dozens of pages per thread. Errors: a system without /proc/self/statm
// (all but Linux).
//
// (Linux, Documentation/filesystems/proc.rst, table 1-3.)
func ReadResident() (Resident, error) { return readResident() }

// parseStatm reads the line of /proc/self/statm, in pages of the given size.
func parseStatm(line string, page int64) (Resident, error) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return Resident{}, fmt.Errorf("pressure: resident memory: bad line %q", line)
	}
	resident, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return Resident{}, fmt.Errorf("pressure: resident memory: %w", err)
	}
	shared, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return Resident{}, fmt.Errorf("pressure: resident memory: %w", err)
	}
	return Resident{Anonymous: (resident - shared) * page, Mapped: shared * page}, nil
}

// GoMemory returns the bytes that the Go runtime has mapped and not given back to the system: heap,
// stacks and its own structures. It takes 0.2 us and does not stop the world.
func GoMemory() int64 {
	s := [...]metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
