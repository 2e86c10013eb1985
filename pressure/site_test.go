package pressure

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// TestSiteOfACount: what a counter does is left out, and so is what is inside, but only before the first other frame; each
// line is a function, a tab, its file and its line.
func TestSiteOfACount(t *testing.T) {
	var at []uintptr
	stop := Listen(func(name string, _ func() (int64, int64)) func(int64, unsafe.Pointer) {
		if name != t.Name() {
			return nil
		}
		return func(int64, unsafe.Pointer) {
			at = make([]uintptr, 16)
			at = at[:runtime.Callers(2, at)]
		}
	})
	defer stop()
	c := NewCounter(t.Name())
	_, file, line, _ := runtime.Caller(0)
	c.Add(1)
	pkg := reflect.TypeFor[Bytes]().PkgPath()
	want := fmt.Sprintf("%s.TestSiteOfACount\t%s:%d\ntesting.tRunner\t", pkg, file, line+1)
	if got := SiteText(at, ""); !strings.HasPrefix(got, want) || len(at) < 4 || strings.Contains(got, "goexit") {
		t.Errorf("%q, want %q", got, want)
	}
	own := Own(c, new(picture), 1, func(int) {}, 0)
	own.Stop()
	if got := SiteLine(SiteText(at, "")); got != fmt.Sprintf("%s.TestSiteOfACount %s:%d", pkg, file, line+7) {
		t.Errorf("%q", got)
	}
	if got := SiteText(nil, "") + SiteText(at[len(at)-2:], "testing."); got != "" {
		t.Errorf("no stack, or all of it inside: %q", got)
	}
	if got := SiteText(at[:1], ""); got != "" {
		t.Errorf("the end of a stack alone: %q", got)
	}
	for text, want := range map[string]string{"": "", "f\ta.go:1": "f a.go:1", "f\ta.go:1\ng\tb.go:2": "f a.go:1"} {
		if got := SiteLine(text); got != want {
			t.Errorf("%q has the line %q, want %q", text, got, want)
		}
	}
}

// TestStackHash: one goroutine has one hash where it is; of many that are there at once most differ, in the bits that parts are chosen by.
func TestStackHash(t *testing.T) {
	once := StackHash()
	if again := StackHash(); again != once {
		t.Error("a goroutine has two")
	}
	const n = 64
	hashes, stop := make(chan uint64), make(chan struct{})
	for range n {
		go func() { hashes <- StackHash(); <-stop }()
	}
	different, parts := map[uint64]bool{}, map[uint64]bool{}
	for range n {
		h := <-hashes
		different[h], parts[h>>(64-counterPartsBits)] = true, true
	}
	close(stop)
	if len(different) < n/2 || len(parts) < counterParts/2 {
		t.Errorf("%d different hashes of %d goroutines on %d parts", len(different), n, len(parts))
	}
}
