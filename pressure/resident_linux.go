package pressure

import (
	"fmt"
	"os"
	"sync"
)

// statm stays open: opening it takes longer than reading it.
var statm struct {
	sync.Mutex
	file *os.File
}

func openStatm() (*os.File, error) {
	statm.Lock()
	defer statm.Unlock()
	var err error
	if statm.file == nil { // a process without a free descriptor may have one later
		statm.file, err = os.Open("/proc/self/statm")
	}
	return statm.file, err
}

func readResident() (Resident, error) {
	file, err := openStatm()
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
