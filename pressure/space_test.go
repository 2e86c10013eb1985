package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func TestSpacesOfDevices(t *testing.T) {
	for _, n := range []int{0, 1, 7, MaxDevices - 1} {
		s := Device(n)
		if got, ok := s.Device(); got != n || !ok {
			t.Errorf("device %d is device %d, %v", n, got, ok)
		}
		if want := fmt.Sprint("device", n); s.String() != want {
			t.Errorf("device %d is %s", n, s)
		}
		if got, err := ParseSpace(s.String()); got != s || err != nil {
			t.Errorf("%s is read as %v, %v", s, got, err)
		}
	}
	for name, s := range map[string]Space{"host": Host, "pinned": Pinned, "managed": Managed} {
		if _, ok := s.Device(); ok {
			t.Errorf("%v is a device", s)
		}
		if got, err := ParseSpace(name); got != s || err != nil || s.String() != name {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	if Host != 0 || Pinned != 1 || Managed != 2 || Device(0) != 3 || Device(252) != 255 { // recordings have these
		t.Error("the numbers of spaces have changed")
	}
	for _, text := range []string{"", "device", "5", "device-1", "device+1", "device99999999999999999999", "device01", fmt.Sprint("device", MaxDevices), "devices0", "gpu0", "Host"} {
		if s, err := ParseSpace(text); err == nil || s != 0 || err.Error() != fmt.Sprintf("pressure: unknown space %q (want host, pinned, managed or device0 ... device252)", text) {
			t.Errorf("%q is read as %v, %v", text, s, err)
		}
	}
	for _, n := range []int{-1, MaxDevices} {
		func() {
			defer func() {
				if text := fmt.Sprintf("pressure: device %d out of range [0, 253)", n); recover() != text {
					t.Errorf("there is a device %d", n)
				}
			}()
			Device(n)
		}()
	}
}

func TestSample(t *testing.T) {
	for _, c := range []struct {
		live, limit int64
		pressure    float64
		headroom    int64
	}{{30, 120, 0.25, 90}, {150, 120, 1.25, -30}, {30, 0, 0, -30}, {30, -1, 0, -31}} {
		s := Sample{Live: c.live, Limit: c.limit}
		if s.Pressure() != c.pressure || s.Headroom() != c.headroom {
			t.Errorf("%+v: pressure %v, headroom %d", s, s.Pressure(), s.Headroom())
		}
	}
}

// TestAHostThatSaysNothing: the error names the file, and nothing is made up.
func TestAHostThatSaysNothing(t *testing.T) {
	none := fstest.MapFS{}
	if info, err := linuxMemory(none); !errors.Is(err, fs.ErrNotExist) || info != (Info{}) || !strings.Contains(err.Error(), "proc/meminfo") {
		t.Errorf("memory %+v, %v", info, err)
	}
	if s, err := linuxStalls(none); !errors.Is(err, fs.ErrNotExist) || s != 0 || !strings.Contains(err.Error(), "proc/pressure/memory") {
		t.Errorf("stalls %v, %v", s, err)
	}
}

// TestGoMemoryIsLessWhatWasReleased: what Go has given back to the system is not its own.
func TestGoMemoryIsLessWhatWasReleased(t *testing.T) {
	block := make([]byte, 64<<20)
	with := GoMemory()
	runtime.KeepAlive(block)
	block = nil
	debug.FreeOSMemory()
	if without := GoMemory(); with-without < 60<<20 {
		t.Errorf("%d bytes with 64 MiB in use, %d without", with, without)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if got, want := GoMemory(), int64(m.Sys-m.HeapReleased); got < want-8<<20 || got > want+8<<20 {
		t.Errorf("%d bytes, and %d of MemStats", got, want)
	}
}
