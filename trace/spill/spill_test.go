package spill

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A list in a file holds what a list in memory does.
func TestList(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	defer UseFiles(false)
	for i, s := range []*Store{nil, {}, {}} {
		UseFiles(i == 2)
		l := New[int64](s, 0)
		const n = inMemory/8*5 + 3
		for i := range int64(n) {
			l.Append(i)
		}
		copy(l.Grow(3), []int64{n, n + 1, n + 2})
		items := l.Items()
		if len(items) != n+3 {
			t.Fatalf("%d items, want %d", len(items), n+3)
		}
		for k, v := range items {
			if v != int64(k) {
				t.Fatalf("item %d is %d", k, v)
			}
		}
		if (l.file != nil) != (i == 2 && canMap) {
			t.Errorf("list %d: in a file: %v", i, l.file != nil)
		}
		if s != nil && s.held != (n+3)*8 {
			t.Errorf("holds %d bytes, want %d", s.held, (n+3)*8)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 { // what is killed leaves nothing behind
			t.Errorf("the file has a name: %v", left)
		}
		mapped := l.file
		l.Free()
		if mapped != nil && !isClosed(mapped) {
			t.Error("the file is open after Free")
		}
		if s != nil && s.held != 0 {
			t.Errorf("holds %d bytes after Free", s.held)
		}
	}
}

func TestNoRoomForFiles(t *testing.T) {
	if !canMap {
		t.Skip("no files here")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	UseFiles(true)
	defer UseFiles(false)
	s := &Store{}
	l := New[int64](s, 0)
	for i := range int64(inMemory/8 + 2048) {
		l.Append(i)
	}
	if err := s.Err(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if len(l.Items()) > inMemory/8 {
		t.Errorf("%d items in memory", len(l.Items()))
	}
}

func TestBound(t *testing.T) {
	s := &Store{}
	s.Read(1 << 20)
	s.Hold(94 << 20)
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	s.Hold(1)
	if err := s.Err(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	s.Memory = 100 << 20
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// Who has only the items of a list can free its file.
func TestFreeItems(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	UseFiles(true)
	defer UseFiles(false)
	items, _ := Slice[int64](inMemory)
	small, _ := Slice[int64](8)
	before := openFiles(t)
	FreeItems(items)
	FreeItems(small)
	if after := openFiles(t); canMap && after != before-1 {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// openFiles counts the temporary files that the process has open.
func openFiles(t *testing.T) (n int) {
	all, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range all {
		if at, err := os.Readlink(name); err == nil && strings.Contains(at, "/eagergc-") {
			n++
		}
	}
	return n
}
