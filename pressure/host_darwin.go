package pressure

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hostMemory: macOS reports free pages, not reclaimable ones, so Free is a
// lower bound.
func hostMemory() (Info, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Info{}, err
	}
	pages, err := unix.SysctlUint32("vm.page_free_count")
	if err != nil {
		return Info{}, err
	}
	return Info{Free: int64(pages) * int64(unix.Getpagesize()), Total: int64(total)}, nil
}

// HostStalls returns an error: macOS has no pressure stall information.
func HostStalls() (Stalls, error) {
	return Stalls{}, errors.New("pressure: no pressure stall information on this system")
}

func readResident() (Resident, error) {
	return Resident{}, errors.New("pressure: resident memory is not known on darwin")
}

func containerLimit() int64 { return 0 }
