//go:build unix

package wholefile

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A named pipe is written through: its reader gets the bytes, and it stays a pipe.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	got := make(chan string)
	go func() {
		file, err := os.Open(path)
		if err != nil {
			got <- err.Error()
			return
		}
		defer file.Close()
		b, _ := io.ReadAll(file)
		got <- string(b)
	}()
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if b := <-got; b != "new" {
		t.Errorf("the reader got %q", b)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v, %v", info, err)
	}
}
