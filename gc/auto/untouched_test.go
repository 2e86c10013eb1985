package auto

import (
	"bufio"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

const unnamed = `00400000-0049f000 r-xp 00000000 fe:00 11 /bin/app
Rss:                 692 kB
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Size:               4096 kB
Rss:                 100 kB
c000400000-c280000000 rw-p 00000000 00:00 0
Rss:                  28 kB
c280000000-c284000000 ---p 00000000 00:00 0
Rss:                   0 kB
7f3ca6206000-7f3ca6f00000 rw-p 00000000 00:00 0
Rss:               11360 kB
`

func TestParseSmaps(t *testing.T) {
	named := strings.NewReplacer("00:00 0\nSize", "00:00 0 [anon: Go: heap]\nSize", "c000400000-c280000000 rw-p 00000000 00:00 0", "d000400000-d280000000 rw-p 00000000 00:00 0 [anon: Go: heap]").Replace(unnamed)
	for name, text := range map[string]string{"unnamed": unnamed, "named": named} {
		for _, heap := range []uint64{0xc000001000, 0xc000500000} {
			if name == "named" {
				heap = 1
			}
			if got, err := parseSmaps(bufio.NewScanner(strings.NewReader(text)), heap); err != nil || got != 128<<10 {
				t.Errorf("%s at %#x: %d, %v", name, heap, got, err)
			}
		}
	}
	for name, text := range map[string]string{"empty": "", "elsewhere": unnamed, "bad": strings.Replace(unnamed, "100 kB", "many", 1)} {
		if _, err := parseSmaps(bufio.NewScanner(strings.NewReader(text)), 0xd000000000); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Memory that Go has mapped and that nobody has written to is not resident; one that is, is.
func TestUntouchedOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not known on " + runtime.GOOS)
	}
	const size = 256 << 20
	before, err := pressure.ReadResident()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, size)
	if after, err := pressure.ReadResident(); err != nil || after.Anonymous > before.Anonymous+size/8 {
		t.Skip("Go has taken memory that it had to clear")
	}
	var u untouched
	u.look(heapReady(), time.Now(), residentHeap)
	if n := u.of(heapReady()); n < size*7/8 || n > size*9/8 {
		t.Errorf("%d MiB untouched, with %d MiB ready", n/mib, heapReady()/mib)
	}
	for i := 0; i < size/4; i += 4096 {
		block[i] = 1
	}
	u.next = time.Time{}
	u.look(heapReady(), time.Now(), residentHeap)
	if n := u.of(heapReady()); n > size*7/8 {
		t.Errorf("%d MiB untouched after a quarter was written to", n/mib)
	}
	runtime.KeepAlive(block)
}
