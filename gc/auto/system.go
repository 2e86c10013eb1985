package auto

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// A host gives a watcher its readings of the system and of Go's runtime.
type host interface {
	resident() (pressure.Resident, error)
	golang() goMemory
	heapResident(address uint64) (int64, error) // bytes of Go's heap that are resident
	limit() int64                               // of the container, the environment or the options; 0 = none
	free() (int64, error)                       // bytes of the container that are free
	stalls() float64                            // share of the last 10 s in which some task waited for memory
}

// A goMemory is the memory of Go's runtime, in bytes.
type goMemory struct {
	mapped                        int64 // mapped and not given back
	objects, free, unused, stacks int64 // parts of mapped that are in the heap
	live                          int64 // the part of objects that the last cycle kept
	cycles                        uint64
	due                           [2]queue // finalizers, and cleanups; 0 if this runtime does not count them
}

// needs returns the memory that Go must keep: live objects, and everything outside the heap.
func (g goMemory) needs() int64 { return g.mapped - g.objects - g.free - g.unused + g.live }

// ready returns the size of the heap, with its free memory.
func (g goMemory) ready() int64 { return g.objects + g.free + g.unused + g.stacks }

// system is the host that the process runs on, with the limit of the options.
type system struct{ set int64 }

func (system) resident() (pressure.Resident, error)       { return pressure.ReadResident() }
func (system) heapResident(address uint64) (int64, error) { return residentHeap(address) }

func (system) golang() goMemory {
	s := [...]metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/finalizers/queued:finalizers"}, {Name: "/gc/finalizers/executed:finalizers"},
		{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"},
	}
	metrics.Read(s[:])
	n := func(i int) int64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return int64(s[i].Value.Uint64())
	}
	due := [2]queue{{Queued: uint64(n(8)), Run: uint64(n(9))}, {Queued: uint64(n(10)), Run: uint64(n(11))}}
	return goMemory{n(0) - n(1), n(2), n(3), n(4), n(5), n(6), uint64(n(7)), due}
}

func (s system) limit() int64 {
	total := func() int64 {
		info, _ := pressure.HostMemory() // without it, a limit that is a share of the memory cannot be read
		return info.Total
	}
	if s.set > 0 {
		return min(s.set, cmp.Or(total(), s.set))
	}
	if bytes, set := pressure.EnvLimit(pressure.Host, total); set {
		return bytes
	}
	return pressure.ContainerLimit()
}

func (system) free() (int64, error) {
	info, err := pressure.HostMemory()
	return info.Free, err
}

func (system) stalls() float64 {
	share, _ := pressure.HostStalls() // 0 if unknown
	return share
}

// An untouched is the memory that Go has mapped and not touched, which is not resident. If it were
// subtracted from resident memory, it would hide as much memory of C. The kernel reports for each
// mapping how much is resident. Go 1.25 and later name their mappings, where the kernel supports
// names. Elsewhere, Go's heap is the mapping that an object of Go lies in, with the mappings that
// border on it.
type untouched struct {
	bytes, ready atomic.Int64 // bytes that were not resident at the last look, and the size of the heap then
	next         time.Time    // time of the next look
}

const (
	untouchedLeast = 64 << 20 // bytes of Go heap that are worth a look
	untouchedEvery = 5 * time.Second
	untouchedShare = 2000 // a look may take 1/2000 of the time, because the kernel walks all page tables
)

// of returns how much of Go's memory is taken to be untouched now. Memory that Go has given back
// since the look was most likely untouched.
func (u *untouched) of(ready int64) int64 {
	return max(0, u.bytes.Load()-max(0, u.ready.Load()-ready))
}

// look reads the mappings if the heap is large and has changed enough.
func (u *untouched) look(ready int64, now time.Time, read func(heap uint64) (resident int64, err error)) {
	last := u.ready.Load()
	moved := max(ready-last, last-ready)
	if ready < untouchedLeast {
		u.bytes.Store(0)
		u.ready.Store(0)
		return
	}
	if now.Before(u.next) || moved < last/8 && u.bytes.Load() < untouchedLeast/2 {
		return
	}
	begin := time.Now()
	resident, err := read(uint64(uintptr(unsafe.Pointer(u))))
	if err != nil {
		resident = ready
	}
	u.next = now.Add(max(untouchedEvery, untouchedShare*time.Since(begin)))
	u.bytes.Store(max(0, ready-resident))
	u.ready.Store(ready)
}

// residentHeap returns the bytes of Go's heap that are resident.
func residentHeap(heap uint64) (int64, error) {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return parseSmaps(bufio.NewScanner(file), heap)
}

// parseSmaps adds up the resident bytes of Go's heap. It takes the mappings with the name of the
// heap. If no mapping has that name, it takes the mappings around an address.
func parseSmaps(lines *bufio.Scanner, heap uint64) (int64, error) {
	var named, around, run int64 // run: of the adjacent mappings up to here
	var end uint64
	var isNamed, anyNamed, holds bool
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "Rss:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("auto: smaps: %q: %w", line, err)
			}
			if run += 1024 * kib; holds {
				around = run
			}
			if isNamed {
				named += 1024 * kib
			}
			continue
		}
		from, to, ok := mapping(line)
		if !ok {
			continue
		}
		if from != end {
			run, holds = 0, false
		}
		end = to
		holds = holds || from <= heap && heap < to
		isNamed = strings.HasSuffix(line, "[anon: Go: heap]")
		anyNamed = anyNamed || isNamed
	}
	switch err := lines.Err(); {
	case err != nil:
		return 0, err
	case anyNamed:
		return named, nil
	case around == 0:
		return 0, fmt.Errorf("auto: no mapping has the address %#x", heap)
	}
	return around, nil
}

// mapping parses the first line of a mapping, such as
//
//	c000000000-c000400000 rw-p 00000000 00:00 0 [anon: Go: heap]
func mapping(line string) (from, to uint64, ok bool) {
	addresses, _, _ := strings.Cut(line, " ")
	first, last, ok := strings.Cut(addresses, "-")
	if !ok {
		return 0, 0, false
	}
	from, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	to, err = strconv.ParseUint(last, 16, 64)
	return from, to, err == nil
}
