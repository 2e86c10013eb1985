//go:build !linux && !darwin

package pressure

import (
	"errors"
	"runtime"
)

func hostMemory() (Info, error) {
	return Info{}, errors.New("pressure: host memory is not known on " + runtime.GOOS)
}

// HostStalls returns an error: only Linux has pressure stall information.
func HostStalls() (float64, error) {
	return 0, errors.New("pressure: no pressure stall information on this system")
}

func readResident() (Resident, error) {
	return Resident{}, errors.New("pressure: resident memory is not known on " + runtime.GOOS)
}

func containerLimit() int64 { return 0 }
