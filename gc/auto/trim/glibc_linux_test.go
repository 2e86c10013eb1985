//go:build linux && (amd64 || arm64)

package trim

import (
	"debug/elf"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// The reader finds what debug/elf finds, and nothing in files that are cut off or lie.
func TestSymbolIn(t *testing.T) {
	files, _ := filepath.Glob("/lib/*/lib[cm]*.so.[0-9]")
	for _, file := range files {
		object, err := elf.Open(file)
		if err != nil {
			continue
		}
		defer object.Close()
		symbols, _ := object.DynamicSymbols()
		defined := map[string]uint64{}
		for _, s := range slices.Backward(symbols) { // the first of a name counts
			if s.Section != elf.SHN_UNDEF {
				defined[s.Name] = s.Value
			}
		}
		for _, name := range []string{"malloc_trim", "malloc", "malloc_tri", "alloc_trim2", symbols[len(symbols)-1].Name} {
			value, want := defined[name]
			if at, ok := symbolIn(file, name); at != value || ok != want {
				t.Errorf("%s: %s at %#x, %v, want %#x, %v", file, name, at, ok, value, want)
			}
		}
		whole, err := os.ReadFile(file)
		if err != nil || defined["malloc"] == 0 {
			continue
		}
		forged := filepath.Join(t.TempDir(), "forged")
		flip := func(at int, with byte) []byte {
			data := append([]byte(nil), whole...)
			data[at] ^= with
			return data
		}
		for name, data := range map[string][]byte{
			"empty": nil, "a part of a header": whole[:63], "a header": whole[:64], "a half": whole[:len(whole)/2], "all but a byte": whole[:len(whole)-1],
			"another magic": flip(0, 1), "of 32 bits": flip(4, 3), "sections elsewhere": flip(0x2b, 0xff),
		} {
			if err := os.WriteFile(forged, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if at, ok := symbolIn(forged, "malloc"); ok {
				t.Errorf("%s: found at %#x", name, at)
			}
		}
	}
}

// The function is looked for in what is mapped of glibc, where that may be run, unless another file defines malloc.
func TestTrimFunction(t *testing.T) {
	libc, _ := filepath.Glob("/lib/*/libc.so.6")
	if len(libc) == 0 {
		t.Skip("no glibc on this machine")
	}
	file := libc[0]
	offset, _ := symbolIn(file, "malloc_trim")
	const base = 0x7f0000000000
	copied := func(name string) string {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, other, loader := copied("libc-2.31.so"), copied("libjemalloc.so.2"), copied("ld-2.31.so")
	part := func(from, to uint64, may, file string) string {
		return fmt.Sprintf("%x-%x %s 00000000 fe:00 123    %s\n", base+from, base+to, may, file)
	}
	loaded := part(0, offset, "r--p", file) + part(offset, offset+1, "r-xp", file) + part(offset+1, offset+2, "rw-p", file)
	for name, c := range map[string]struct {
		maps string
		want uint64
	}{
		"as it is loaded":           {"400000-500000 r-xp 00000000 fe:00 1 /bin/x\n" + loaded + "7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]\n", base + offset},
		"of an older name":          {part(0, 1, "r--p", old) + part(1, offset+1, "r-xp", old), base + offset},
		"with its loader":           {part(0, 9, "r-xp", loader) + loaded, base + offset},
		"another malloc before it":  {part(0, 9, "r-xp", other) + loaded, 0},
		"another malloc behind it":  {loaded + part(0, 9, "r-xp", other), 0},
		"not to be run":             {part(0, offset+9, "r--p", file), 0},
		"too short":                 {part(0, offset, "r-xp", file), 0},
		"begins behind it":          {part(0, 1, "r--p", file) + part(offset+1, offset+9, "r-xp", file), 0},
		"replaced on disk":          {part(0, offset+9, "r-xp", file+" (deleted)"), 0},
		"gone":                      {part(0, offset+9, "r-xp", filepath.Join(t.TempDir(), "libc-2.32.so")), 0},
		"musl":                      {part(0, offset+9, "r-xp", "/lib/ld-musl-x86_64.so.1"), 0},
		"linked statically, no ELF": {part(0, offset+9, "r-xp", "/lib/x.so"), 0},
	} {
		if got := trimFunction(c.maps); got != uintptr(c.want) {
			t.Errorf("%s: %#x, want %#x", name, got, c.want)
		}
	}
}

// A process uses what all its threads use, and it and a thread that waits are told apart.
func TestUsed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	libc := &glibc{start: time.Now().Add(-time.Hour), find: func() uintptr { return 0 }}
	begin := libc.used()
	var works usage // a goroutine on another thread
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // which ends with it
		own := libc.used()
		for works = own; works.thread-own.thread < 100*ms; works = libc.used() {
			for x := 1.0; x < 1e5; x++ {
				_ = math.Sqrt(x)
			}
		}
		done <- true
	}()
	<-done
	waits := libc.used()
	if waits.thread-begin.thread > 50*ms || waits.all-begin.all < 100*ms {
		t.Errorf("at first %+v, after the work of another thread (%+v) %+v", begin, works, waits)
	}
	if page := libc.page(); page < 50*time.Nanosecond || page > time.Second {
		t.Errorf("a page fault takes %v", page)
	}
	if r, err := pressure.ReadResident(); err == nil && (libc.resident() < r.Anonymous/2 || libc.resident() > 2*r.Anonymous) {
		t.Errorf("resident: %d bytes, want %d", libc.resident(), r.Anonymous)
	}
	if libc.now() < time.Hour || libc.trim() {
		t.Errorf("it began %v ago, and it trims without the function", libc.now())
	}
	libc.later(ms, func() { done <- true })
	<-done
}
