//go:build linux

package malloc

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
)

// What nobody frees goes back, whether each object is counted or malloc's own count is watched.
func TestForgottenMemoryGoesBack(t *testing.T) {
	for name, ways := range map[string]struct {
		watch bool
		alloc func(*testing.T, *gc.Collector) *handle
	}{
		"watch": {true, func(*testing.T, *gc.Collector) *handle { return newHandle(mib) }},
		"own": {false, func(t *testing.T, c *gc.Collector) *handle {
			h := new(handle)
			p, _, err := Alloc(c, h, mib)
			if err != nil {
				t.Fatal(err)
			}
			h.data = touched(unsafe.Slice((*byte)(p), mib))
			return h
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := gc.New(gc.Config{Policy: gc.MustParse(gc.HostPolicy).New()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			look := func() {}
			if ways.watch {
				gauge := Watch(c)
				defer gauge.Close()
				look = func() { gauge.Look() }
			}
			before, _ := Stats()
			end := time.Now().Add(20 * time.Second)
			for c.Stats().Cycles[gc.TriggerPolicy] < 3 {
				runtime.KeepAlive(ways.alloc(t, c))
				look()
				if inUse, _ := Stats(); inUse-before > 2<<30 || time.Now().After(end) {
					t.Fatalf("%d bytes of dead memory: %+v", inUse-before, c.Stats())
				}
			}
			for ; ; runtime.GC() {
				if inUse, _ := Stats(); inUse-before < mib {
					return
				} else if time.Now().After(end) {
					t.Fatalf("%d bytes are left", inUse-before)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}
