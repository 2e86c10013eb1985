package pressure

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestParseStatm(t *testing.T) {
	got, err := parseStatm("765 410 382 5 0 123 0\n", 4096)
	if want := (Resident{Anonymous: 28 * 4096, Mapped: 382 * 4096}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if out := got.Outside(20 * 4096); out != 8*4096 {
		t.Errorf("outside Go: %d", out)
	}
	if out := got.Outside(1 << 30); out != 0 {
		t.Errorf("outside Go, which has mapped more than is resident: %d", out)
	}
	for _, bad := range []string{"", "1 2", "1 x 3", "1 2 x"} {
		if r, err := parseStatm(bad, 4096); err == nil || r != (Resident{}) || !strings.HasPrefix(err.Error(), "pressure: resident memory: ") {
			t.Errorf("%q: %+v, %v", bad, r, err)
		}
	}
}

// What a program writes to, outside the Go heap, shows; a file that it reads does not.
func TestResidentOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not known on " + runtime.GOOS)
	}
	before, err := ReadResident()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += os.Getpagesize() {
		block[i] = 1
	}
	after, err := ReadResident()
	if grown := after.Anonymous - before.Anonymous; err != nil || grown < 60<<20 {
		t.Errorf("64 MiB more in use: %d bytes more, %v", grown, err)
	}
	if text, err := os.ReadFile("/proc/self/statm"); err != nil {
		t.Error(err)
	} else if want, _ := parseStatm(string(text), int64(os.Getpagesize())); (want.Anonymous-after.Anonymous)>>20 != 0 || (want.Mapped-after.Mapped)>>20 != 0 {
		t.Errorf("%+v, and a moment later %+v", after, want)
	}
	if GoMemory() < 64<<20 {
		t.Errorf("Go has mapped %d bytes", GoMemory())
	}
	runtime.KeepAlive(block)
}

func BenchmarkReadResident(b *testing.B) {
	for b.Loop() {
		if _, err := ReadResident(); err != nil {
			b.Skip(err)
		}
	}
}

func BenchmarkGoMemory(b *testing.B) {
	for b.Loop() {
		GoMemory()
	}
}
