package trace_test

import (
	"os/signal"
	"syscall"
)

const canLimitFileSize = true

// limitFileSize makes writes past the size fail with EFBIG.
func limitFileSize(bytes uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		panic(err)
	}
}
