package auto

import (
	"bufio"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
)

// Memory that Go has mapped and not touched is not resident: taken off what is, it would hide as much of C's. How much that is the
// kernel says for each mapping; Go 1.25 and later name theirs, where the kernel knows names. Elsewhere
// Go's heap is the mapping that an object of Go lies in, with those that border on it.
type untouched struct {
	bytes, ready atomic.Int64 // not resident of so many that Go's heap had ready
	next         time.Time    // for a new look
}

const (
	untouchedLeast = 64 << 20 // bytes of Go heap that are worth a look
	untouchedEvery = 5 * time.Second
	untouchedShare = 200 // a look may take a time of this many times as long, for the kernel walks all page tables
)

// of returns how much of Go's memory is taken to be untouched now: what Go has given back since the look was most likely that.
func (u *untouched) of(ready int64) int64 {
	return max(0, u.bytes.Load()-max(0, u.ready.Load()-ready))
}

// look reads the mappings, where that may tell something.
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

// heapReady returns the bytes of Go's heap that are mapped and not given back.
func heapReady() int64 {
	s := [...]metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(s[:])
	var sum uint64
	for i := range s {
		sum += s[i].Value.Uint64()
	}
	return int64(sum)
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

// parseSmaps adds up what is resident of Go's heap: of the mappings of that name or, if there is none, of those around an address.
func parseSmaps(lines *bufio.Scanner, heap uint64) (int64, error) {
	var named, around, run int64 // run: of the mappings that border on one another, up to here
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

// mapping reads the first line of a mapping: c000000000-c000400000 rw-p 00000000 00:00 0 [anon: Go: heap]
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
