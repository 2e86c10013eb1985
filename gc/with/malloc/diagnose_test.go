//go:build linux

package malloc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/gc"
	eagerdebug "github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/policy"
)

const mib = 1 << 20

// A program is one with a known cause: it sets up what its process holds, and goes on
// working beside the diagnosis.
type program struct {
	name    string
	want    string // the verdict
	reason  string // part of it
	stack   string // part of a stack that grows
	prepare func()
	work    func(i int) // each 10 ms meanwhile; nil = nothing
}

var kept any // what a program holds on to

// handle owns memory of C's. It is small, as users' handles are.
type handle struct {
	data    []byte
	another *handle
}

// newHandle returns size bytes of malloc's, written to. A cleanup frees them.
func newHandle(size int) *handle {
	h := rawHandle(size)
	runtime.AddCleanup(h, freeBytes, h.data)
	return h
}

func rawHandle(size int) *handle { return &handle{data: mallocBytes(size)} }

var programs = []program{
	{name: "handles whose cleanups wait for a cycle", want: "garbage lag", prepare: func() {
		for range 200 {
			newHandle(mib)
		}
	}},
	{name: "handles with finalizers, in pairs that take two cycles", want: "garbage lag", prepare: func() {
		for range 100 {
			outer := rawHandle(mib)
			outer.another = rawHandle(mib)
			for _, h := range []*handle{outer, outer.another} {
				runtime.SetFinalizer(h, func(h *handle) { freeBytes(h.data) })
			}
		}
	}},
	{name: "mappings of the program's own that wait for a cycle", want: "garbage lag", prepare: func() {
		for range 50 {
			data := mapBytes(4 * mib)
			runtime.AddCleanup(&handle{data: data}, func(data []byte) { unix.Munmap(data) }, data)
		}
	}},
	{name: "garbage in the Go heap, with GOGC=off", want: "garbage lag", prepare: func() {
		debug.SetGCPercent(-1)
		for range 200 {
			kept = touched(make([]byte, mib))
		}
		kept = nil
	}},
	{name: "a finalizer that blocks", want: "finalizers blocked", reason: "blocks", prepare: func() {
		runtime.SetFinalizer(new(handle), func(*handle) { select {} })
		for range 100 {
			h := rawHandle(mib)
			runtime.SetFinalizer(h, func(h *handle) { freeBytes(h.data) })
		}
	}},
	{name: "a cache of C memory that grows", want: "growth outside Go", stack: "rawHandle", work: func(int) {
		held, _ := kept.([]*handle)
		for range 2 {
			held = append(held, rawHandle(mib/2), rawHandle(mib/2))
		}
		kept = held
	}},
	{name: "a cache in the Go heap that grows", want: "reachable growth", stack: "touched", work: func(int) {
		held, _ := kept.([][]byte)
		kept = append(held, touched(nil), touched(nil))
	}},
	{name: "goroutines that wait for ever, each with a handle", want: "growth outside Go", stack: "forEver", work: func(int) {
		for range 2 {
			go forEver(newHandle(mib))
		}
	}},
	{name: "a cleanup that keeps its own owner alive", want: "growth outside Go", work: func(int) {
		for range 2 {
			h := rawHandle(mib)
			runtime.AddCleanup(h, func(same **handle) { freeBytes((*same).data) }, &h)
		}
	}},
	{name: "arenas that keep what was freed", want: "allocator retention", prepare: func() {
		keepArenas(400 * mib)
	}},
	{name: "pages with one small block each in use", want: "allocator retention", prepare: func() {
		blocks := make([][]byte, 0, 100*mib/1024)
		for range cap(blocks) {
			blocks = append(blocks, mallocBytes(1000))
		}
		for i, b := range blocks {
			if i%64 != 0 {
				freeBytes(b)
			}
		}
	}},
	{name: "a large cache that stays as it is", want: "nothing wrong", prepare: func() {
		var held []*handle
		for range 200 {
			held = append(held, newHandle(mib))
		}
		kept = held
	}},
	{name: "a service that closes what it opens", want: "nothing wrong", prepare: func() { kept = newHandle(32 * mib) }, work: func(int) {
		freeBytes(rawHandle(mib).data)
	}},
	{name: "a large file that is mapped and read", want: "nothing wrong", prepare: func() {
		file, err := os.CreateTemp("", "mapped")
		if err != nil {
			panic(err)
		}
		defer os.Remove(file.Name())
		for part := make([]byte, mib); ; { // not all at once: that would be garbage of the Go heap
			if end, err := file.Write(part); err != nil || end != mib {
				panic(err)
			}
			if at, err := file.Seek(0, io.SeekCurrent); err != nil || at >= 200*mib {
				break
			}
		}
		data, err := unix.Mmap(int(file.Fd()), 0, 200*mib, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		sum := 0
		for i := 0; i < len(data); i += os.Getpagesize() {
			sum += int(data[i])
		}
		kept = sum
	}},
}

//go:noinline
func touched(b []byte) []byte {
	if b == nil {
		b = make([]byte, mib)
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	return b
}

func mallocBytes(size int) []byte {
	return touched(unsafe.Slice((*byte)(malloc(size)), size))
}

func freeBytes(b []byte) { free(unsafe.Pointer(unsafe.SliceData(b))) }

// keepArenas frees what some threads have allocated, but for one block each on top, which
// keeps their arenas as large as they were.
func keepArenas(bytes int) {
	const threads, block = 4, 64 << 10 // below the size from which malloc maps
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var blocks [][]byte
			for range bytes / threads / block {
				blocks = append(blocks, mallocBytes(block))
			}
			mallocBytes(block)
			for _, b := range blocks {
				freeBytes(b)
			}
		})
	}
	all.Wait()
}

//go:noinline
func forEver(h *handle) {
	<-make(chan struct{})
	runtime.KeepAlive(h)
}

func mapBytes(size int) []byte {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	return touched(data)
}

const childVariable = "EAGERGC_TEST_PROGRAM"

func TestMain(m *testing.M) {
	for _, p := range programs {
		if p.name == os.Getenv(childVariable) {
			p.run()
			os.Exit(0)
		}
	}
	m.Run()
}

func (p program) run() {
	if p.stack != "" {
		runtime.MemProfileRate = 16 // handles are small: sample them all
	}
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		panic(err)
	}
	if p.prepare != nil {
		p.prepare()
	}
	if p.work != nil {
		go func() {
			for i := 0; ; i++ {
				p.work(i)
				time.Sleep(10 * time.Millisecond)
			}
		}()
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Print(eagerdebug.Diagnose(context.Background(), c, time.Second))
	runtime.KeepAlive(kept)
}

// Programs with a known cause, each a process of its own: the diagnosis is right in all.
func TestDiagnose(t *testing.T) {
	for _, p := range programs {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVariable+"="+p.name, "EAGERGC=off")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text := string(out)
			if !strings.HasPrefix(text, p.want+"\n") || !strings.Contains(text, p.reason) || !strings.Contains(text, p.stack) {
				t.Errorf("want %v %s %s:\n%s", p.want, p.reason, p.stack, text)
			}
		})
	}
}
