package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/trace"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.arrows")
	for _, n := range []int{10, 20} { // the second replaces the first
		tr := steady(n)
		tr.Name = ""
		if err := trace.WriteFile(path, tr); err != nil {
			t.Fatal(err)
		}
		got, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Events) != n || got.Name != "run" {
			t.Errorf("read %d events of %q", len(got.Events), got.Name)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"run.arrows"}) {
		t.Errorf("left behind: %v", got)
	}
}

// TestCreate: nothing under the final name before Close, and a partial file of
// an earlier run stays.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.arrows")
	if err := os.WriteFile(path+".partial", []byte("of an earlier run"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr := steady(20)
	f, err := trace.Create(path, tr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteBatch(tr.Events, tr.Labels); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{"run.arrows.2.partial", "run.arrows.partial"}; !slices.Equal(got, want) {
		t.Errorf("before Close: %v, want %v", got, want)
	}
	got, err := trace.ReadFile(path + ".2.partial")
	if !errors.Is(err, trace.ErrTruncated) || len(got.Events) != 20 {
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
}

func TestLinkIsReplaced(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.arrows")
	for _, link := range []string{path, path + ".partial"} {
		if err := os.Symlink(outside, link); err != nil {
			t.Skipf("needs symbolic links: %v", err)
		}
	}
	if err := trace.WriteFile(path, steady(5)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "precious" {
		t.Errorf("the link was followed: %q, %v", b, err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

func TestWriteFileErrors(t *testing.T) {
	dir := t.TempDir()
	if err := trace.WriteFile(dir, steady(1)); err == nil {
		t.Error("no error of writing over a folder")
	}
	if err := trace.WriteFile(filepath.Join(dir, "no", "run.arrows"), steady(1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	if runtime.GOOS == "linux" {
		if _, err := trace.NewWriter(full(t), &trace.Trace{}); err == nil {
			t.Error("no error of a full disk")
		}
	}
}

// TestErrorsNameTheFile: of what is not there, is no trace, cannot be created, or was renamed while it was written.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.b.arrows")
	is := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	_, err := trace.ReadFile(path)
	is("not there", err, "trace: open "+path+": ")
	if err := os.WriteFile(path, []byte("id,time,size\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.ReadFile(path)
	if is("no trace", err, path+": trace: byte 0: "); tr != nil {
		t.Error("a trace of no trace")
	}
	_, err = trace.Create(dir, steady(1))
	is("a folder", err, "trace: create "+dir+": is a directory")
	f, err := trace.Create(path, steady(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteBatch(steady(1).Events, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".partial", path); err != nil {
		t.Fatal(err)
	}
	is("renamed", f.Close(), "trace: "+path+".partial: rename ")
	if tr, err = trace.ReadFile(path); err != nil || tr.Name != "steady" {
		t.Errorf("its own name: %v", err)
	}
	if err := os.WriteFile(path, bytesOf(t, &trace.Trace{}), 0o644); err != nil {
		t.Fatal(err)
	}
	if tr, err = trace.ReadFile(path); err != nil || tr.Name != "a.b" {
		t.Errorf("the name of its file: %v", err)
	}
}

// TestTruncatedError: what a cut file tells, in words and for programs.
func TestTruncatedError(t *testing.T) {
	file := bytesOf(t, steady(3000))
	_, err := trace.Read(bytes.NewReader(file[:len(file)-8]))
	var cut *trace.TruncatedError
	if !errors.As(err, &cut) || cut.Batches != 2 || cut.Events != 3000 || cut.Offset != int64(len(file)-8) {
		t.Fatalf("%+v", err)
	}
	if want := fmt.Sprintf("trace: cut off at byte %d, after 2 whole batches with 3000 events: no end-of-stream mark", len(file)-8); err.Error() != want || errors.Is(err, io.EOF) {
		t.Errorf("%v, want %s", err, want)
	}
	tr, err := trace.Read(bytes.NewReader(file[:100]))
	if !errors.Is(err, io.ErrUnexpectedEOF) || tr != nil {
		t.Errorf("%v, %v", tr, err)
	}
}

// TestWriteToAPipe: what is no regular file is written to as it is, and stays.
func TestWriteToAPipe(t *testing.T) {
	path := makePipe(t)
	read := make(chan error)
	go func() {
		tr, err := trace.ReadFile(path)
		if err == nil && len(tr.Events) != 20 {
			err = fmt.Errorf("%d events", len(tr.Events))
		}
		read <- err
	}()
	if err := trace.WriteFile(path, steady(20)); err != nil {
		t.Error(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{filepath.Base(path)}) {
		t.Errorf("beside the pipe: %v", got)
	}
	if runtime.GOOS == "linux" { // a link to a regular file is written through below /dev and /proc
		if err := trace.WriteFile("/dev/full", steady(1)); err == nil || !strings.HasSuffix(err.Error(), "(/dev/full)") {
			t.Errorf("a full disk: %v", err)
		}
		plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		if err := trace.WriteFile(fmt.Sprintf("/proc/self/fd/%d", plain.Fd()), steady(30)); err != nil {
			t.Error(err)
		}
		if tr, err := trace.ReadFile(plain.Name()); err != nil || len(tr.Events) != 30 {
			t.Errorf("through a link of the system: %v", err)
		}
	}
}

// TestNothingIsLeftBehind: a file that could not be written whole is not there.
func TestNothingIsLeftBehind(t *testing.T) {
	if !canLimitFileSize {
		t.Skip("needs a limit on the size of files: not on this system")
	}
	path := filepath.Join(t.TempDir(), "run.arrows")
	if said := run(t, path, envLimit+"=10"); !strings.HasPrefix(said, "trace: write at event 0: write "+path+".partial: ") || !strings.HasSuffix(said, "("+path+")") {
		t.Errorf("of 10 bytes: %q", said)
	}
	if said := run(t, path, envLimit+"=20000", envWhole+"=1"); !strings.Contains(said, "trace: write at event ") {
		t.Errorf("of 20,000 bytes: %q", said)
	}
	if got := names(t, filepath.Dir(path)); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func full(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
