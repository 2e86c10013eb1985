//go:build unix

package goruntime

import (
	"syscall"
	"time"
)

// ProcessTime returns the processor time of the process so far; 0 if it is unknown.
func ProcessTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
