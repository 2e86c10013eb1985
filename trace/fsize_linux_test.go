package trace_test

import (
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

const canLimitFileSize = true

// limitFileSize makes writes past the size fail with EFBIG.
func limitFileSize(bytes uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		panic(err)
	}
}

// makePipe returns the path of a pipe in a folder of its own.
func makePipe(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "pipe.arrows")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Skipf("needs pipes with a name: %v", err)
	}
	return path
}
