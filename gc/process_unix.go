//go:build unix

package gc

import (
	"syscall"
	"time"
)

// processTime is the processor time that the process has got so far; 0 if that is not known.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
