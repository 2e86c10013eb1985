//go:build linux && (amd64 || arm64)

package gc

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// sharedObjects are those of the C library that this machine has.
func sharedObjects(t *testing.T) (all []string) {
	for _, pattern := range []string{"/lib/*/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// What the reader finds is what debug/elf finds.
func TestSymbolIn(t *testing.T) {
	for _, file := range sharedObjects(t) {
		object, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer object.Close()
		symbols, err := object.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, s := range symbols {
			if s.Name == "malloc_trim" || s.Name == "mallinfo2" || s.Name == "free" {
				found++
				if at, ok := symbolIn(file, s.Name); !ok || at != s.Value {
					t.Errorf("%s: %s at %#x, want %#x", file, s.Name, at, s.Value)
				}
			}
		}
		if found < 2 {
			t.Errorf("%s has %d of them", file, found)
		}
		for _, name := range []string{"no_such_function", "malloc_tri", "alloc_trim2", ""} {
			if at, ok := symbolIn(file, name); ok {
				t.Errorf("%s: %q at %#x", file, name, at)
			}
		}
	}
}

// A function is looked for in what is mapped of glibc, where that may be run.
func TestSymbol(t *testing.T) {
	for _, file := range sharedObjects(t) {
		offset, _ := symbolIn(file, "malloc_trim")
		const base = 0x7f0000000000
		old := filepath.Join(t.TempDir(), "libc-2.31.so")
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(old, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		none := filepath.Join(t.TempDir(), "libc-2.32.so")
		part := func(from, to uint64, may, file string) string {
			return fmt.Sprintf("%x-%x %s 00000000 fe:00 123    %s\n", base+from, base+to, may, file)
		}
		for name, c := range map[string]struct {
			maps string
			want uint64
		}{
			"as it is loaded":   {"400000-500000 r-xp 00000000 fe:00 1 /bin/x\n" + part(0, offset, "r--p", file) + part(offset, offset+1, "r-xp", file) + part(offset+1, offset+2, "rw-p", file), base + offset},
			"of an older name":  {part(0, 1, "r--p", old) + part(1, offset+1, "r-xp", old), base + offset},
			"in one part":       {part(0, offset+1, "r-xp", file), base + offset},
			"not to be run":     {part(0, offset+9, "r--p", file), 0},
			"too short":         {part(0, offset, "r-xp", file), 0},
			"begins behind it":  {part(0, 1, "r--p", file) + part(offset+1, offset+9, "r-xp", file), 0},
			"replaced on disk":  {part(0, offset+9, "r-xp", file+" (deleted)"), 0},
			"gone":              {part(0, offset+9, "r-xp", none), 0},
			"another library":   {part(0, offset+9, "r-xp", "/lib/libcairo.so.2"), 0},
			"nothing is mapped": {"7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]\n", 0},
		} {
			if got := symbol(c.maps, "malloc_trim"); got != uintptr(c.want) {
				t.Errorf("%s: %#x, want %#x", name, got, c.want)
			}
		}
	}
}

// What a trimmer reads of this process.
func TestGlibcOfThisProcess(t *testing.T) {
	l := &glibc{start: time.Now(), find: func() uintptr { return 0 }}
	if l.trim() {
		t.Error("trimmed without the function")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, resident := l.used(), l.resident()
	data, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(data)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); { // work
	}
	after := l.used()
	if after.faults <= before.faults || after.thread <= before.thread || after.all < after.thread || after.all < after.system || l.resident() < resident+32<<20 || l.now() < 20*time.Millisecond {
		t.Errorf("before %+v, %d resident; after %+v, %d resident", before, resident, after, l.resident())
	}
	done := make(chan bool)
	began := time.Now()
	l.later(2*time.Millisecond, func() { done <- true })
	if <-done; time.Since(began) < 2*time.Millisecond {
		t.Error("too early")
	}
}

// Files that are cut off, or lie, have no function, and break nothing.
func TestSymbolInForgedFiles(t *testing.T) {
	if _, ok := symbolIn(filepath.Join(t.TempDir(), "none"), "free"); ok {
		t.Error("found in no file")
	}
	for _, file := range sharedObjects(t) {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		forged := filepath.Join(t.TempDir(), "forged")
		try := func(name string, data []byte) {
			if err := os.WriteFile(forged, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if at, ok := symbolIn(forged, "malloc_trim"); ok {
				t.Errorf("%s: found at %#x", name, at)
			}
		}
		for _, n := range []int{0, 3, 63, 64, len(whole) / 2, len(whole) - 1} {
			try("cut off", whole[:n])
		}
		for name, at := range map[string]int{"another magic": 0, "sections elsewhere": 0x2b, "no sections": 0x3c} {
			data := append([]byte(nil), whole...)
			data[at] ^= 0xff
			if name == "no sections" {
				data[at], data[at+1] = 0, 0
			}
			try(name, data)
		}
	}
}
