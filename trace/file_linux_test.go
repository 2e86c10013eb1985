package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// withRoom runs f with so many bytes of room in each file.
func withRoom(t *testing.T, bytes uint64, f func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // writes past the size fail with EFBIG
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	f()
}

// TestDiskFull: where no more can be written the program goes on, is told once, with the
// system's error, and what was written is read. No event is counted twice or not at all.
func TestDiskFull(t *testing.T) {
	var said bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	path, recorded := filepath.Join(t.TempDir(), "run.arrows"), 0
	var r *trace.Recorder
	withRoom(t, 2_000_000, func() { // for several batches
		var err error
		if r, err = trace.Record(path, &trace.Trace{Name: "full"}, trace.RecorderConfig{Interval: time.Hour}); err != nil {
			t.Fatal(err)
		}
		for ; recorded < 100_000; recorded++ {
			record(r, trace.Event{Kind: trace.Alloc})
			if recorded%10_000 == 0 {
				r.Flush()
			}
		}
		if err := r.Close(); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "trace: write at event ") {
			t.Errorf("the program is told %v", err)
		}
	})
	tr, err := trace.ReadFile(path + ".partial")
	if !errors.Is(err, trace.ErrTruncated) || len(tr.Events) == 0 || tr.Name != "full" {
		t.Fatalf("%v", err)
	}
	if n := strings.Count(said.String(), "the recording has failed"); n != 1 {
		t.Errorf("the log has it %d times: %q", n, &said)
	}
	kept := 0
	for _, e := range tr.Events {
		if e.Kind != trace.Mark { // of what a busy machine has lost before
			kept++
		}
	}
	if kept+int(r.Lost()) != recorded {
		t.Errorf("%d events were recorded, %d are read and %d are lost", recorded, kept, r.Lost())
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a recording that failed is at its final name: %v", err)
	}
}

// TestFiles: nothing is under the final name before Close, a partial file of an earlier run stays, and a link is replaced.
func TestFiles(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	path := filepath.Join(dir, "run.arrows")
	if err := errors.Join(os.WriteFile(path+".partial", []byte("of an earlier run"), 0o644), os.WriteFile(outside, []byte("precious"), 0o644), os.Symlink(outside, path)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{10, 20} { // the second replaces the first
		tr := steady(n)
		tr.Name = ""
		f, err := trace.Create(path, tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteBatch(tr.Events, tr.Labels); err != nil {
			t.Fatal(err)
		}
		if got, want := names(t, dir), []string{"run.arrows", "run.arrows.2.partial", "run.arrows.partial"}; !slices.Equal(got, want) {
			t.Errorf("before Close: %v, want %v", got, want)
		}
		if got, err := trace.ReadFile(path + ".2.partial"); !errors.Is(err, trace.ErrTruncated) || len(got.Events) != n {
			t.Errorf("partial file: %v", err)
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := names(t, dir), []string{"run.arrows", "run.arrows.partial"}; !slices.Equal(got, want) {
			t.Errorf("after Close: %v, want %v", got, want)
		}
		if got, err := trace.ReadFile(path); err != nil || len(got.Events) != n || got.Name != "run" {
			t.Errorf("%v", err)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "precious" {
		t.Errorf("the link was followed: %q, %v", b, err)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestErrorsNameTheFile: a file that is not there, is no trace, cannot be created, or was renamed while it was written. A file that could not be
// written whole is not there.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.b.arrows")
	is := func(err error, want string, kind error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), path[:len(dir)]) && kind == nil || kind != nil && !errors.Is(err, kind) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := trace.ReadFile(path)
	is(err, "trace: open "+path+": ", fs.ErrNotExist)
	is(trace.WriteFile(filepath.Join(dir, "no", "run.arrows"), steady(1)), "trace: open ", fs.ErrNotExist)
	is(trace.WriteFile(dir, steady(1)), "trace: create "+dir+": is a directory", nil)
	r, err := trace.Record("/proc/none/run.arrows", &trace.Trace{}, trace.RecorderConfig{})
	is(err, "trace: open /proc/none/run.arrows", fs.ErrNotExist)
	r.Record(trace.Event{})                     // r is nil: the program goes on without
	for _, room := range []uint64{10, 20_000} { // for a part of the schema, and of the events
		withRoom(t, room, func() { is(trace.WriteFile(path, steady(10_000)), "trace: write at event ", syscall.EFBIG) })
	}
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	if err := os.WriteFile(path, []byte("id,time,size\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = trace.ReadFile(path)
	is(err, path+": trace: byte 0: ", nil)
	f, err := trace.Create(path, steady(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".partial", path); err != nil {
		t.Fatal(err)
	}
	is(f.Close(), "trace: "+path+".partial: rename ", fs.ErrNotExist)
	if tr, err := trace.ReadFile(path); err != nil || tr.Name != "steady" {
		t.Errorf("a name of its own: %v", err)
	}
}

// TestWhatIsNoRegularFile is written to as it is, and stays: a pipe, a device, and a link to a file below /proc.
func TestWhatIsNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, plain := filepath.Join(dir, "pipe.arrows"), filepath.Join(dir, "plain")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skipf("needs pipes with a name: %v", err)
	}
	read := make(chan error)
	go func() {
		tr, err := trace.ReadFile(pipe)
		if err == nil && len(tr.Events) != 20 {
			err = fmt.Errorf("%d events", len(tr.Events))
		}
		read <- err
	}()
	if err := trace.WriteFile(pipe, steady(20)); err != nil {
		t.Error(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	file, err := os.Create(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := trace.WriteFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), steady(30)); err != nil {
		t.Error(err)
	}
	if tr, err := trace.ReadFile(plain); err != nil || len(tr.Events) != 30 {
		t.Errorf("through a link of the system: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"pipe.arrows", "plain"}) {
		t.Errorf("beside the pipe: %v", got)
	}
	if err := trace.WriteFile("/dev/full", steady(1)); !errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(), "(/dev/full)") {
		t.Errorf("a full disk: %v", err)
	}
}
