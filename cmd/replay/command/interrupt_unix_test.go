//go:build unix

package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ctrl-C ends a command that waits for a file, or is busy, with status 130 and without a partial
// file. The message promises nothing. The test does not check how soon: it waits for a busy
// machine.
func TestInterrupt(t *testing.T) {
	for name, c := range map[string]struct {
		line string // in a folder with a pipe
		feed func(io.Writer)
	}{
		"waits for a pipe":     {"info pipe", nil},
		"waits for more of it": {"info pipe", func(w io.Writer) { io.WriteString(w, "eagergc trace 1\n0 alloc id=1") }},
		"reads without end": {"import pipe --max-memory 16GiB -o out.arrows", func(w io.Writer) {
			io.WriteString(w, "eagergc trace 1\n")
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, "# nothing, again and again and again\n")
			}
		}},
		"compares": {"compare --policies all --cycle 1us,10us,100us,1ms,10ms,100ms -o out", nil},
		"runs":     {"live gpt2 --scale 65536 --ballast 0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			cmd := exec.Command("replay", wordsOf(c.line)...)
			cmd.Dir, cmd.Stderr = t.TempDir(), &stderr
			pipe := filepath.Join(cmd.Dir, "pipe")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Skip(err)
			}
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
			cmd.Process.Signal(os.Interrupt)
			stuck := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
			err := cmd.Wait()
			var status *exec.ExitError
			switch {
			case !stuck.Stop():
				t.Fatal("goes on after Ctrl-C")
			case errors.As(err, &status) && status.ExitCode() < 0:
				t.Skip("the machine is too busy: it had not begun")
			case status == nil || status.ExitCode() != interrupted || !bytes.HasSuffix(stderr.Bytes(), []byte("\nreplay: interrupted\n")):
				t.Errorf("ended with %v: %s", err, &stderr)
			}
			if left, _ := filepath.Glob(filepath.Join(cmd.Dir, "out*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
