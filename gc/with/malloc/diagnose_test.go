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
	"github.com/eagergc/eagergc/gc/auto"
	"github.com/eagergc/eagergc/gc/policy"
)

const mib = 1 << 20

// A program has a known cause: it sets up what its process holds, and goes on working beside the
// diagnosis.
type program struct {
	name    string
	want    string // the verdict
	reason  string // part of it
	stack   string // part of a stack that grows
	env     string // EAGERGC=off, unless the import judges the program
	prepare func()
	work    func() // each 10 ms meanwhile; nil = nothing
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
	{name: "a cache of C memory that grows", want: "growth outside Go", stack: "rawHandle", work: func() {
		held, _ := kept.([]*handle)
		for range 2 {
			held = append(held, rawHandle(mib/2), rawHandle(mib/2))
		}
		kept = held
	}},
	{name: "a cache in the Go heap that grows", want: "reachable growth", stack: "touched", work: func() {
		held, _ := kept.([][]byte)
		kept = append(held, touched(nil), touched(nil))
	}},
	{name: "goroutines that wait for ever, each with a handle", want: "growth outside Go", stack: "forEver", work: func() {
		for range 2 {
			go forEver(newHandle(mib))
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
	{name: "a leak under the import", env: "EAGERGC=on", want: "growth outside Go", work: func() { mallocBytes(2 * mib) }},
	{name: "handles under the import", env: "EAGERGC=on", want: "nothing wrong", work: func() { newHandle(mib / 4) }},
	{name: "a finalizer that blocks under the import", env: "EAGERGC=on", want: "finalizers blocked", prepare: func() {
		runtime.SetFinalizer(new(handle), func(*handle) { select {} })
		runtime.GC()
	}, work: func() {
		h := rawHandle(mib / 4)
		runtime.SetFinalizer(h, func(h *handle) { freeBytes(h.data) })
	}},
	{name: "arenas under the import", env: "EAGERGC_TRIM=off", want: "allocator retention", prepare: func() { keepArenas(400 * mib) }},
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
	c := auto.Collector() // nil without the import
	if p.prepare != nil {
		p.prepare()
	}
	if p.work != nil {
		go func() {
			for ; ; time.Sleep(10 * time.Millisecond) {
				p.work()
			}
		}()
		time.Sleep(100 * time.Millisecond)
	}
	if c != nil {
		time.Sleep(15500 * time.Millisecond)
		fmt.Print(c.Diagnose(context.Background(), 0))
		now := c.Snapshot()
		fmt.Printf("page: %s\n", now.Verdict().Verdict)
	} else if c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()}); err == nil {
		fmt.Print(c.Diagnose(context.Background(), time.Second))
	}
	runtime.KeepAlive(kept)
}

// Programs with a known cause, each a process of its own: the diagnosis is right in all. Under the
// import the page and the log agree with it.
func TestDiagnose(t *testing.T) {
	for _, p := range programs {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVariable+"="+p.name, "EAGERGC=off")
			if p.env != "" {
				t.Parallel()
				cmd.Env = append(cmd.Env, "EAGERGC=on", p.env)
			}
			var log strings.Builder
			cmd.Stderr = &log
			out, err := cmd.Output()
			text := string(out)
			if err != nil || !strings.HasPrefix(text, p.want+"\n") || !strings.Contains(text, p.reason) || !strings.Contains(text, p.stack) {
				t.Errorf("want %v %s %s, %v:\n%s%s", p.want, p.reason, p.stack, err, text, &log)
			}
			logged := strings.Contains(log.String(), " eagergc: "+p.want+": ")
			if p.env != "" && (!strings.Contains(text, "page: "+p.want) || logged == (p.want == "nothing wrong")) {
				t.Errorf("the page or the log does not say %s:\n%s%s", p.want, text, &log)
			}
		})
	}
}
