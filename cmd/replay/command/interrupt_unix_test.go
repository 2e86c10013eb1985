//go:build unix

package command

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ctrl-C ends a command that waits for a file, or is busy with one, with status
// 130 and no partial file. How soon is in results/: a test waits for a busy machine.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	pipe, out := filepath.Join(dir, "pipe"), filepath.Join(dir, "out.arrows")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for name, c := range map[string]struct {
		args []string
		feed func(io.Writer)
	}{
		"waits for a pipe":     {[]string{"info", pipe}, nil},
		"waits for more of it": {[]string{"info", pipe}, func(w io.Writer) { io.WriteString(w, "eagergc trace 1\n0 alloc id=1") }},
		"reads without end": {[]string{"import", pipe, "--max-memory", "16GiB", "-o", out}, func(w io.Writer) {
			line := []byte("# nothing, again and again and again\n")
			io.WriteString(w, "eagergc trace 1\n")
			for err := error(nil); err == nil; {
				_, err = w.Write(line)
			}
		}},
		"writes a sweep": {[]string{"sweep", "ppo", "--policies", "periodic:{1..9/1000}ms", "--limits", "1.5x,2x,3x,4x", "-o", filepath.Join(dir, "sweep")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("replay", c.args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.feed != nil {
				w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				go c.feed(w)
			}
			time.Sleep(300 * time.Millisecond) // so that it is at it; earlier is as good
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			cmd.Process.Signal(os.Interrupt)
			select {
			case err := <-done:
				var status *exec.ExitError
				if errors.As(err, &status) && status.ExitCode() < 0 {
					t.Skip("the machine is too busy: it had not begun")
				}
				if !errors.As(err, &status) || status.ExitCode() != interrupted {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(2 * time.Minute):
				cmd.Process.Kill()
				t.Fatal("goes on after Ctrl-C")
			}
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
