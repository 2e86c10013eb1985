package pressure

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
)

// hostMemory: macOS reports free pages, not reclaimable ones, so Free is a lower bound.
func hostMemory() (Info, error) {
	total, err := syscall.Sysctl("hw.memsize") // the eight bytes of a number, less a last one that is 0
	if err != nil {
		return Info{}, err
	}
	pages, err := syscall.SysctlUint32("vm.page_free_count")
	if err != nil {
		return Info{}, err
	}
	var number [8]byte
	copy(number[:], total)
	return Info{Free: int64(pages) * int64(os.Getpagesize()), Total: int64(binary.LittleEndian.Uint64(number[:]))}, nil
}

// HostStalls returns an error: macOS has no pressure stall information.
func HostStalls() (float64, error) {
	return 0, errors.New("pressure: no pressure stall information on this system")
}

func readResident() (Resident, error) {
	return Resident{}, errors.New("pressure: resident memory is not known on darwin")
}

func containerLimit() int64 { return 0 }
