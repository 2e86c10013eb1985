//go:build linux && (amd64 || arm64)

package gc

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// iscgo says that the program is linked with C.
//
//go:linkname iscgo runtime.iscgo
var iscgo bool

// cgocall calls a function of C's with one argument. Both names are kept for programs like this one: see runtime/cgocall.go.
//
//go:linkname cgocall runtime.cgocall
//go:noescape
func cgocall(function, argument unsafe.Pointer) int32

// processTrimmer returns the trimmer of the process, which has no libc where that is not linked with C, or is to be left alone.
var processTrimmer = sync.OnceValue(func() *trimmer {
	if !iscgo || pressure.EnvChoice("EAGERGC_TRIM", "on", "off") == "off" {
		return new(trimmer)
	}
	return &trimmer{libc: &glibc{start: time.Now(), find: sync.OnceValue(func() uintptr {
		maps, _ := os.ReadFile("/proc/self/maps") // without it there is no trim
		return symbol(string(maps), "malloc_trim")
	})}}
})

// A glibc is the C library that the program is linked to when it starts. This package finds it then, so that it needs no cgo, and programs
// without C stay as they are.
type glibc struct {
	start time.Time
	find  func() uintptr
}

func (l *glibc) now() time.Duration               { return time.Since(l.start) }
func (l *glibc) later(d time.Duration, do func()) { time.AfterFunc(d, do) }
func (l *glibc) waiting() bool                    { return readPending().waiting() }

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
	return usage{faults: all.Minflt, system: time.Duration(all.Stime.Nano()), all: total(all), thread: total(thread)}
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

// symbol returns where a function of the libc begins that a process has mapped; 0 if there is none: the program is linked statically, or its libc is another one.
func symbol(maps, name string) uintptr {
	var at uint64
	for line := range strings.Lines(maps) { // from-to rwxp offset device inode file
		f := strings.Fields(line)
		if len(f) != 6 || !strings.Contains(f[5], "/libc.so.6") && !strings.Contains(f[5], "/libc-2.") {
			continue
		}
		low, high, _ := strings.Cut(f[0], "-")
		from, _ := strconv.ParseUint(low, 16, 64)
		to, _ := strconv.ParseUint(high, 16, 64)
		if at == 0 { // its first part
			offset, ok := symbolIn(f[5], name)
			if !ok {
				return 0
			}
			at = from + offset
		}
		if f[1][2] == 'x' && from <= at && at < to {
			return uintptr(at)
		}
	}
	return 0
}

// symbolIn returns the place of a function in a shared object, and whether that has it. (System V ABI, chapters 4 and 5; debug/elf
// reads the same, and would make each program larger by 0.3 MB.)
func symbolIn(file, name string) (offset uint64, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	read := func(v any, at, size uint64) bool {
		return binary.Read(io.NewSectionReader(f, int64(at), int64(size)), binary.LittleEndian, v) == nil
	}
	part := func(s section) []byte {
		b := make([]byte, min(s.Size, 1<<20))
		if !read(b, s.Offset, uint64(len(b))) {
			return nil
		}
		return b
	}
	var head struct {
		Magic    [16]byte
		_        [24]byte
		Sections uint64
		_        [12]byte
		N, _     uint16
	}
	if !read(&head, 0, 64) || string(head.Magic[:4]) != "\x7fELF" {
		return 0, false
	}
	sections := make([]section, head.N)
	if !read(sections, head.Sections, 64*uint64(head.N)) {
		return 0, false
	}
	i := slices.IndexFunc(sections, func(s section) bool { return s.Type == 11 /* SHT_DYNSYM */ && s.Link < uint32(head.N) })
	if i < 0 {
		return 0, false
	}
	symbols, names := part(sections[i]), part(sections[sections[i].Link])
	for ; len(symbols) >= 24; symbols = symbols[24:] {
		at, value := binary.LittleEndian.Uint32(symbols), binary.LittleEndian.Uint64(symbols[8:])
		if value != 0 && int(at) < len(names) && bytes.HasPrefix(names[at:], []byte(name+"\x00")) {
			return value, true
		}
	}
	return 0, false
}

// A section is a section header of a 64-bit object.
type section struct {
	Name, Type             uint32
	Flags, Address         uint64
	Offset, Size           uint64
	Link, Info             uint32
	Alignment, EntriesEach uint64
}
