package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A failed overwrite leaves the old file and nothing else.
func TestFailedOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.arrows")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no more room")
	flush = func(*os.File) error { return broken }
	defer func() { flush = (*os.File).Sync }()
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new")
	if err := f.Close(); !errors.Is(err, broken) {
		t.Errorf("Close says %v", err)
	}
	f.Discard()
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the old file is now %q", got)
	}
	if all, _ := filepath.Glob(path + "*"); len(all) != 1 {
		t.Errorf("left behind: %q", all)
	}
}

// The disk has a file before it gets its name.
func TestSyncComesBeforeRename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.arrows")
	synced := ""
	flush = func(f *os.File) error {
		if _, err := os.Lstat(path); err == nil {
			t.Error("renamed before the sync")
		}
		synced = f.Name()
		return f.Sync()
	}
	defer func() { flush = (*os.File).Sync }()
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if synced != path+".partial" {
		t.Errorf("synced %q", synced)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("the file is %q", got)
	}
}

// Devices, and what a link in /dev leads to, are written through.
func TestDevice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no /dev")
	}
	before, err := os.Lstat(os.DevNull)
	if err != nil {
		t.Skip(err)
	}
	f, err := Create(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	f.Discard()
	if after, err := os.Lstat(os.DevNull); err != nil || after.Mode() != before.Mode() {
		t.Fatalf("%s is now %v, %v", os.DevNull, after.Mode(), err)
	}
}
