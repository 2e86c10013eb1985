package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A file that cannot be made leaves what was there, and nothing half-written.
func TestFolderWritesWholeFilesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder")
	f, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.write("a.txt", func(w io.Writer) error { _, err := fmt.Fprint(w, "first"); return err }); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err = f.write("a.txt", func(w io.Writer) error { fmt.Fprint(w, "sec"); return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := f.write("../out.txt", func(io.Writer) error { return nil }); err == nil {
		t.Error("a file outside the folder was written")
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if text, err := os.ReadFile(filepath.Join(path, "a.txt")); string(text) != "first" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
