package spill

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canMap = true

// A mapping is a temporary file without a name, mapped into memory.
type mapping struct {
	file  *os.File
	bytes []byte
}

// newMapping returns an empty mapping. Its file is in $TMPDIR, or else in /var/tmp:
// /tmp is often in memory itself.
func newMapping() (*mapping, error) {
	dir := os.Getenv("TMPDIR")
	if dir == "" {
		dir = "/var/tmp"
	}
	file, err := os.CreateTemp(dir, "eagergc-*")
	if err != nil {
		return nil, err
	}
	os.Remove(file.Name())
	m := &mapping{file: file}
	residents.add(m)
	return m, nil
}

// grow makes the file size bytes long and returns all of it. The disk has room for
// all of it then: a write to a mapping could not report an error.
func (m *mapping) grow(size int64) ([]byte, error) {
	residents.mu.Lock()
	defer residents.mu.Unlock()
	err := unix.Fallocate(int(m.file.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = m.file.Truncate(size)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.file.Name(), err)
	}
	if m.bytes == nil {
		m.bytes, err = unix.Mmap(int(m.file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	} else {
		m.bytes, err = unix.Mremap(m.bytes, int(size), unix.MREMAP_MAYMOVE)
	}
	return m.bytes, err
}

// freeMapping closes the mapping that begins at an address, if there is one.
func freeMapping(at unsafe.Pointer) {
	if m := residents.find(at); m != nil {
		m.close()
	}
}

func (s *mappings) find(at unsafe.Pointer) *mapping {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.all {
		if m.bytes != nil && unsafe.Pointer(unsafe.SliceData(m.bytes)) == at {
			return m
		}
	}
	return nil
}

func (m *mapping) close() {
	residents.mu.Lock()
	defer residents.mu.Unlock()
	delete(residents.all, m)
	if m.bytes != nil {
		unix.Munmap(m.bytes)
	}
	m.file.Close()
}

const (
	resident = 64 << 20             // bytes of mapped files that stay in memory
	look     = 2 * time.Millisecond // between two looks at them
)

// residents are the mappings of the process. The system counts their pages as the
// process's memory, and takes them away only when memory is short. So the process
// gives them back itself, to the cache of files, once they are many.
var residents mappings

type mappings struct {
	mu  sync.Mutex
	all map[*mapping]bool
}

func (r *mappings) add(m *mapping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		r.all = make(map[*mapping]bool)
		go r.trim()
	}
	r.all[m] = true
}

// trim runs as long as there are mappings.
func (r *mappings) trim() {
	statm, err := os.Open("/proc/self/statm")
	if err != nil {
		return
	}
	defer statm.Close()
	for range time.Tick(look) {
		many := residentFiles(statm) > resident
		r.mu.Lock()
		for m := range r.all {
			if many && len(m.bytes) > 0 {
				_ = unix.Madvise(m.bytes, unix.MADV_DONTNEED) // their content stays in the file
			}
		}
		last := len(r.all) == 0
		r.mu.Unlock()
		if last {
			return
		}
	}
}

// residentFiles returns the bytes of files that are in the memory of the process,
// its program among them.
func residentFiles(statm *os.File) int64 {
	var text [128]byte
	n, _ := statm.ReadAt(text[:], 0)
	var size, all, shared int64
	fmt.Sscan(string(text[:n]), &size, &all, &shared)
	return shared * int64(os.Getpagesize())
}
