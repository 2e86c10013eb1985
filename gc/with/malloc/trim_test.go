//go:build linux

package malloc

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// What cycles free, arenas keep, until the collector trims them; with EAGERGC_TRIM=off they keep it.
func TestCyclesTrim(t *testing.T) {
	const child = "EAGERGC_TEST_TRIM"
	if os.Getenv(child) == "" {
		for _, trim := range []string{"on", "off"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestCyclesTrim$", "-test.v")
			cmd.Env = append(os.Environ(), child+"=1", "EAGERGC_TRIM="+trim)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", trim, err, out)
			}
		}
		return
	}
	trims := os.Getenv("EAGERGC_TRIM") == "on"
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New(), Idle: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const threads, block, bytes = 4, 64 << 10, 200 * mib // blocks below the size from which malloc maps
	var all sync.WaitGroup
	var tops [threads][]byte // on top of their arenas, so that free does not give them back by itself
	for i := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range bytes / threads / block {
				data := mallocBytes(block)
				gc.Own(c, &handle{data: data}, block, freeBytes, data)
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
	before := resident()
	for end := time.Now().Add(20 * time.Second); c.Stats().Freed < bytes*9/10; c.Collect(policy.TriggerExplicit) {
		if time.Now().After(end) {
			t.Fatalf("freed %d of %d bytes", c.Stats().Freed, bytes)
		}
	}
	low := before
	for end := time.Now().Add(20 * time.Second); low > before-bytes/2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if low = min(low, resident()); !trims && time.Until(end) < 18*time.Second {
			break
		}
	}
	if fell := low <= before-bytes/2; fell != trims {
		t.Errorf("trims: %v: %d MiB before, %d after", trims, before>>20, low>>20)
	}
	runtime.KeepAlive(tops)
}
