package pressure

import (
	"fmt"
	"os"
	"sync"
)

// statm stays open: opening it takes longer than reading it.
var statm = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/statm") })

func readResident() (Resident, error) {
	file, err := statm()
	if err != nil {
		return Resident{}, fmt.Errorf("pressure: resident memory: %w", err)
	}
	var line [128]byte
	n, err := file.ReadAt(line[:], 0)
	if n == 0 {
		return Resident{}, fmt.Errorf("pressure: resident memory: %w", err)
	}
	return parseStatm(string(line[:n]), int64(os.Getpagesize()))
}
