//go:build linux

package malloc

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	_ "github.com/eagergc/eagergc/gc/auto/trim"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// glibc gives back what cycles have freed. With EAGERGC_TRIM=off, and under another allocator,
// nothing is trimmed.
func TestCyclesTrim(t *testing.T) {
	const child = "EAGERGC_TEST_TRIM"
	if os.Getenv(child) != "" {
		trimmed(t, os.Getenv(child) == "yes")
		return
	}
	for name, want := range map[string]string{"": "yes", "EAGERGC_TRIM=off": "no", "libjemalloc.so.2": "no", "libmimalloc.so.2": "no", "libtcmalloc_minimal.so.4": "no"} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "lib") {
				found, _ := filepath.Glob("/usr/lib/*/" + name + "*")
				if len(found) == 0 {
					t.Skip("not on this machine")
				}
				name = "LD_PRELOAD=" + found[0]
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestCyclesTrim$", "-test.v")
			cmd.Env = append(os.Environ(), child+"="+want, "EAGERGC=off", name) // the import's cycles would trim, too
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A trims is a log that counts them.
type trims struct{ n atomic.Int64 }

func (l *trims) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("trimmed C's allocator")) {
		l.n.Add(1)
	}
	return len(line), nil
}

func trimmed(t *testing.T, want bool) {
	var log trims
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New(), Idle: -1, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	const threads, block, size = 4, 64 << 10, 200 * mib // blocks below the size from which malloc maps
	var all sync.WaitGroup
	var handles [threads][size / threads / block]*handle // none is freed before the tops are there
	var tops [threads][]byte                             // on top of their arenas, so that free does not give them back by itself
	for i := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for j := range handles[i] {
				data := mallocBytes(block)
				handles[i][j] = &handle{data: data}
				gc.Own(c, handles[i][j], block, freeBytes, data)
			}
			tops[i] = mallocBytes(block)
		})
	}
	all.Wait()
	resident := func() int64 {
		r, err := pressure.ReadResident()
		if err != nil {
			t.Fatal(err)
		}
		return r.Anonymous
	}
	runtime.KeepAlive(&handles)
	before := resident()
	for end := time.Now().Add(20 * time.Second); c.Stats().Freed < size*9/10; c.Collect(policy.TriggerExplicit) {
		if time.Now().After(end) {
			t.Fatalf("freed %d of %d bytes", c.Stats().Freed, size)
		}
	}
	patience := 2 * time.Second
	if want {
		patience = 20 * time.Second
	}
	low := before
	for end := time.Now().Add(patience); (low > before-size/2 || log.n.Load() == 0) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		low = min(low, resident())
	}
	if fell := low <= before-size/2; want && !fell {
		t.Errorf("%d MiB before, %d after", before>>20, low>>20)
	}
	if did := log.n.Load() > 0; did != want {
		t.Errorf("trimmed: %v, want %v", did, want)
	}
	runtime.KeepAlive(tops)
}

// musl has nothing to trim: a program that is linked with it goes on as without the package.
func TestTrimWithMusl(t *testing.T) {
	compiler, err := exec.LookPath("musl-gcc")
	if err != nil {
		t.Skip("no musl-gcc on this machine")
	}
	root, _ := filepath.Abs("../../..")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n\nrequire github.com/eagergc/eagergc v0.1.0\n\nreplace github.com/eagergc/eagergc => " + root + "\n",
		"main.go": `package main

// #include <stdlib.h>
import "C"

import (
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	_ "github.com/eagergc/eagergc/gc/auto/trim"
	"github.com/eagergc/eagergc/gc/policy"
)

func main() {
	c, _ := gc.New(gc.Config{})
	for c.Stats().Freed == 0 {
		gc.Own(c, new([64]byte), 1<<20, func(p unsafe.Pointer) { C.free(p) }, C.malloc(1<<20))
		c.Collect(policy.TriggerExplicit)
	}
	time.Sleep(300 * time.Millisecond) // for a trim
	println("done")
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range []string{"", "-linkmode=external -extldflags=-static"} {
		build := exec.Command("go", "build", "-mod=mod", "-o", "x", "-ldflags="+flags, ".")
		build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "CC="+compiler, "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := exec.Command(filepath.Join(dir, "x")).CombinedOutput(); err != nil || string(out) != "done\n" {
			t.Errorf("%q: %v\n%s", flags, err, out)
		}
	}
}
