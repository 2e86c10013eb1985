//go:build linux && (amd64 || arm64)

package trim

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/pressure"
)

// iscgo says that the program is linked with C.
//
//go:linkname iscgo runtime.iscgo
var iscgo bool

// cgocall calls a function of C's with one argument. Both names are kept for programs like this
// one: see runtime/cgocall.go.
//
//go:linkname cgocall runtime.cgocall
//go:noescape
func cgocall(function, argument unsafe.Pointer) int32

func init() {
	if !iscgo {
		return
	}
	t := sync.OnceValue(func() *trimmer {
		if pressure.EnvChoice("EAGERGC_TRIM", "on", "off") == "off" {
			return nil
		}
		return &trimmer{libc: &glibc{start: time.Now(), find: sync.OnceValue(func() uintptr {
			maps, _ := os.ReadFile("/proc/self/maps") // without it there is no trim
			return trimFunction(string(maps))
		})}}
	})
	freed.SetTrimmer(func(c freed.Cycle) {
		if t := t(); t != nil {
			t.cycled(c)
		}
	})
}

// A glibc is the C library that the program was linked with when it started. It is found in memory,
// so that this package needs no cgo and programs without C stay as they are.
type glibc struct {
	start time.Time
	find  func() uintptr
}

func (l *glibc) now() time.Duration               { return time.Since(l.start) }
func (l *glibc) later(d time.Duration, do func()) { time.AfterFunc(d, do) }

func (l *glibc) resident() int64 {
	r, _ := pressure.ReadResident()
	return r.Anonymous
}

func (l *glibc) used() usage {
	var all, thread syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &all) != nil || syscall.Getrusage(syscall.RUSAGE_THREAD, &thread) != nil {
		return usage{}
	}
	total := func(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
	return usage{all: total(all), thread: total(thread)}
}

// page returns the median of three measurements, because another thread may take the processor.
func (l *glibc) page() time.Duration {
	const pages = 64
	var each [3]time.Duration
	for i := range each {
		memory, err := syscall.Mmap(-1, 0, pages*os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return 0
		}
		begin := time.Now()
		for at := 0; at < len(memory); at += os.Getpagesize() {
			memory[at] = 1
		}
		each[i] = time.Since(begin) / pages
		_ = syscall.Munmap(memory)
	}
	slices.Sort(each[:])
	return each[1]
}

// trim calls malloc_trim(0), which gives back each whole page that is free (glibc 2.8).
func (l *glibc) trim() bool {
	at := l.find()
	if at == 0 {
		return false
	}
	cgocall(*(*unsafe.Pointer)(unsafe.Pointer(&at)), nil)
	return true
}

// trimFunction returns the address of malloc_trim in a process that has these mappings; 0 if its
// libc is not glibc, or if another file defines malloc, too: then glibc's arenas are not in use.
func trimFunction(maps string) uintptr {
	var at uint64
	var found uintptr
	seen := map[string]bool{}
	for line := range strings.Lines(maps) { // from-to rwxp offset device inode file
		f := strings.Fields(line)
		if len(f) != 6 || f[5][0] != '/' {
			continue
		}
		file, name := f[5], filepath.Base(f[5])
		low, high, _ := strings.Cut(f[0], "-")
		from, _ := strconv.ParseUint(low, 16, 64)
		to, _ := strconv.ParseUint(high, 16, 64)
		first := !seen[file]
		seen[file] = true
		switch {
		case name == "libc.so.6" || strings.HasPrefix(name, "libc-2."):
			if first {
				offset, ok := symbolIn(file, "malloc_trim")
				if !ok {
					return 0
				}
				at = from + offset
			}
			if f[1][2] == 'x' && from <= at && at < to {
				found = uintptr(at)
			}
		case strings.HasPrefix(name, "ld-"): // has a malloc of its own, for the time before libc is there
		case first:
			if _, other := symbolIn(file, "malloc"); other {
				return 0
			}
		}
	}
	return found
}

// symbolIn returns the offset of a function that a 64-bit shared object defines, and whether it
// does. (System V ABI, chapters 4 and 5. The reader of debug/elf would make each program larger by
// 0.4 MB.)
func symbolIn(file, name string) (offset uint64, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	read := func(v any, at, size uint64) bool {
		return binary.Read(io.NewSectionReader(f, int64(at), int64(size)), binary.LittleEndian, v) == nil
	}
	part := func(s elf.Section64) []byte {
		b := make([]byte, min(s.Size, 1<<20))
		if !read(b, s.Off, uint64(len(b))) {
			return nil
		}
		return b
	}
	var head elf.Header64
	if !read(&head, 0, 64) || string(head.Ident[:5]) != elf.ELFMAG+"\x02" {
		return 0, false
	}
	sections := make([]elf.Section64, head.Shnum)
	if !read(sections, head.Shoff, 64*uint64(head.Shnum)) {
		return 0, false
	}
	i := slices.IndexFunc(sections, func(s elf.Section64) bool { return s.Type == uint32(elf.SHT_DYNSYM) && s.Link < uint32(head.Shnum) })
	if i < 0 {
		return 0, false
	}
	symbols, names := part(sections[i]), part(sections[sections[i].Link])
	for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
		at, section, value := binary.LittleEndian.Uint32(symbols), binary.LittleEndian.Uint16(symbols[6:]), binary.LittleEndian.Uint64(symbols[8:])
		if section != uint16(elf.SHN_UNDEF) && int(at) < len(names) && bytes.HasPrefix(names[at:], []byte(name+"\x00")) {
			return value, true
		}
	}
	return 0, false
}
