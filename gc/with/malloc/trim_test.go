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
