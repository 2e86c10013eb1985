package auto

import (
	"bufio"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// Go's heap among mappings: those of its name where the kernel knows names, otherwise those that border on the one with an object.
func TestTheHeapAmongMappings(t *testing.T) {
	const line = "c000000000-c000400000 rw-p 00000000 00:00 0\nRss: 100 kB\nc000400000-c000800000 rw-p 00000000 00:00 0\nRss: 28 kB\nd000400000-d000800000 rw-p 00000000 00:00 0\nRss: 7 kB\n"
	for address, want := range map[uint64]int64{0xc000000000: 128 << 10, 0xc0007fffff: 128 << 10, 0xd000400000: 7 << 10} {
		if got, err := parseSmaps(bufio.NewScanner(strings.NewReader(line)), address); got != want || err != nil {
			t.Errorf("at %#x: %d, %v; want %d", address, got, err, want)
		}
		named := strings.Replace(strings.Replace(line, "00:00 0\nRss: 28", "00:00 0 [anon: Go: heap]\nRss: 28", 1), "00:00 0\nRss: 7", "00:00 0    [anon: Go: heap]\nRss: 7", 1)
		if got, err := parseSmaps(bufio.NewScanner(strings.NewReader(named)), address); got != 35<<10 || err != nil {
			t.Errorf("by name: %d, %v; want 35 KiB", got, err)
		}
	}
	for bad, address := range map[string]uint64{line: 0xd000800000, line + "Rss: many kB\n": 0xc000000000, line + strings.Repeat("x", bufio.MaxScanTokenSize+1): 0xc000000000} {
		if _, err := parseSmaps(bufio.NewScanner(strings.NewReader(bad)), address); err == nil {
			t.Errorf("%.250s: no error", bad)
		}
	}
}

// Memory that Go has mapped and nobody has touched hides nothing of C's, also once it is given back, or where smaps cannot be read.
func TestUntouchedGoMemoryHidesNothing(t *testing.T) {
	s := &stage{anonymous: 700 * mib, touched: 50 * mib, heap: goMemory{mapped: 10100 * mib, free: 10000 * mib, stacks: 50 * mib}}
	p := newProcess(t, s, Options{})
	see := func(what string, want int64) {
		t.Helper()
		p.now = p.now.Add(time.Hour)
		p.step()
		if got := p.gauge.Look(); got != want*mib {
			t.Errorf("%s: %d MiB outside, want %d", what, got/mib, want)
		}
	}
	see("at first", 600)
	p.set(func() { p.heap.mapped, p.heap.free = 5100*mib, 5000*mib })
	if got := p.gauge.Look(); got != 600*mib {
		t.Errorf("once a half is given back, before the next look: %d MiB", got/mib)
	}
	see("after it", 600)
	p.set(func() { p.anonymous, p.touched = 5700*mib, 5050*mib })
	see("once it is touched", 600)
	p.set(func() {
		p.unread = errors.New("no smaps")
		p.heap.mapped, p.heap.free, p.anonymous = 300*mib, 200*mib, 900*mib
	})
	see("without smaps", 600)
	p.set(func() { p.heap.mapped, p.heap.free, p.anonymous = 60*mib, 10*mib, 660*mib })
	see("small", 600)
}

// What this process reads of itself agrees with MemStats and with the kernel.
func TestTheSystemIsThisOne(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not known on " + runtime.GOOS)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	blocks := make(chan bool) // a finalizer and a cleanup
	defer close(blocks)
	runtime.SetFinalizer(new([64]int), func(*[64]int) { <-blocks })
	runtime.AddCleanup(new([64]int), func(int) { <-blocks }, 0)
	block := make([]byte, 256*mib)
	for i := 0; i < len(block)/4; i += os.Getpagesize() {
		block[i] = 1
	}
	runtime.GC()
	garbage := make([]byte, 30*mib)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g := (system{}).golang()
	if q := g.due; q != [2]queue{} && (q[0].Queued <= q[0].Run || q[1].Queued <= q[1].Run) {
		t.Errorf("due are %+v", q)
	}
	for name, c := range map[string]struct{ got, want uint64 }{
		"mapped": {uint64(g.mapped), m.Sys - m.HeapReleased}, "free": {uint64(g.free), m.HeapIdle - m.HeapReleased},
		"ready": {uint64(g.ready()), m.HeapSys - m.HeapReleased + m.StackInuse}, "objects": {uint64(g.objects), m.HeapAlloc},
		"needs": {uint64(g.needs()), m.Sys - m.HeapReleased - m.HeapInuse - (m.HeapIdle - m.HeapReleased) + m.HeapAlloc - 30*mib}, "cycles": {g.cycles, uint64(m.NumGC)},
	} {
		if diff := int64(c.got) - int64(c.want); diff > 8*mib || diff < -8*mib || name == "cycles" && diff != 0 {
			t.Errorf("%s: %d, and %d of MemStats", name, c.got, c.want)
		}
	}
	resident, err := (system{}).heapResident(uint64(uintptr(unsafe.Pointer(&block[0]))))
	if err != nil || resident < 50*mib || resident > g.ready()-100*mib && g.ready() > 300*mib {
		t.Errorf("%d MiB of the heap's %d are resident, %v", resident/mib, g.ready()/mib, err)
	}
	runtime.KeepAlive(block)
	runtime.KeepAlive(garbage)
	info, err := pressure.HostMemory()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		set        int64
		hard, soft string
		want       int64
	}{
		{0, "", "", pressure.ContainerLimit()}, {0, "123MiB", "", 123 * mib}, {77 * mib, "123MiB", "", 77 * mib}, {1 << 60, "", "", info.Total},
		{0, "2Gib", "1GiB", min(1<<30, info.Total)}, {0, "", "lots", pressure.ContainerLimit()},
	} {
		t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", c.hard)
		t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", c.soft)
		if got := (system{c.set}).limit(); got != c.want {
			t.Errorf("%+v: limit %d", c, got)
		}
	}
}
