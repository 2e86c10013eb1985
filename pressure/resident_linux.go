package pressure

import (
	"fmt"
	"os"
	"sync"
)

// statm stays open: opening it takes longer than reading it.
var statm struct {
	once sync.Once
	file *os.File
	err  error
}

func readResident() (Resident, error) {
	statm.once.Do(func() { statm.file, statm.err = os.Open("/proc/self/statm") })
	if statm.err != nil {
		return Resident{}, fmt.Errorf("pressure: resident memory: %w", statm.err)
	}
	var line [128]byte
	n, err := statm.file.ReadAt(line[:], 0)
	if n == 0 {
		return Resident{}, fmt.Errorf("pressure: resident memory: %w", err)
	}
	return parseStatm(string(line[:n]), int64(os.Getpagesize()))
}
