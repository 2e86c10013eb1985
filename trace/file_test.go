package trace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

func full(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
