package gctest

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/eagergc/eagergc/pressure"
)

// NoLeak fails the test if a library counts more through package pressure at its end than now. It
// runs [Drain] first. The report names the library and the stacks that made the rest. For
// [pressure.Own] these are the stacks of reachable owners. For Add they are the stacks of objects
// of the sizes that are left, because a Sub does not name its object. An Add of 0 bytes has no stack.
// Until the test ends, each Add and Own records a stack. Cleanups of the test that are registered
// before the call run after the check.
func NoLeak(t testing.TB) {
	t.Helper()
	w := &watch{libraries: map[*library]bool{}}
	stop := pressure.Listen(w.join)
	t.Cleanup(func() {
		t.Helper()
		Drain(t)
		stop()
		if text := w.report(); text != "" {
			t.Error(text)
		}
	})
}

// A watch has the counters of all libraries.
type watch struct {
	mu        sync.Mutex
	libraries map[*library]bool
}

// A library is one counter.
type library struct {
	name           string
	live           func() (bytes, objects int64)
	bytes, objects int64 // when the test began

	mu    sync.Mutex
	made  map[made]*group
	freed map[int64]int // how often each size was counted off
}

// made is a place that made objects of one size.
type made struct {
	site  string
	bytes int64
}

type group struct {
	n      int
	owners []weak.Pointer[byte] // of objects that have one
}

func (w *watch) join(name string, live func() (bytes, objects int64)) func(int64, unsafe.Pointer) {
	l := &library{name: name, live: live, made: map[made]*group{}, freed: map[int64]int{}}
	l.bytes, l.objects = live()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.libraries[l] = true
	return l.moved
}

func (l *library) moved(bytes int64, owner unsafe.Pointer) {
	m := made{bytes: bytes}
	switch {
	case bytes > 0 || owner != nil:
		var at [32]uintptr
		m.site = pressure.SiteText(at[:runtime.Callers(2, at[:])], "")
	case bytes == 0:
		return // an Add or a Sub
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes < 0 {
		l.freed[-bytes]++
		return
	}
	g := l.made[m]
	if g == nil {
		g = new(group)
		l.made[m] = g
	}
	g.n++
	if owner != nil {
		g.owners = append(g.owners, weak.Make((*byte)(owner)))
	}
}

func (w *watch) report() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for l := range w.libraries {
		bytes, objects := l.live()
		if bytes -= l.bytes; bytes > 0 || objects > l.objects {
			all = append(all, fmt.Sprintf("gctest: %s counts %v in %s more than when the test began%s",
				l.name, pressure.Bytes(bytes), plural(objects-l.objects), l.stacks()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// stacks lists the places that made the rest, most bytes first.
func (l *library) stacks() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	type place struct {
		text  string
		bytes int64
	}
	left := map[int64]int{} // objects of each size that are not counted off
	for m, g := range l.made {
		left[m.bytes] += g.n
	}
	for bytes, n := range l.freed {
		left[bytes] -= n
	}
	var all []place
	for m, g := range l.made {
		alive := g.n - len(g.owners)
		for _, p := range g.owners {
			if p.Value() != nil {
				alive++
			}
		}
		if alive > 0 && left[m.bytes] > 0 {
			all = append(all, place{
				fmt.Sprintf("\n%s of %v made at\n%s", plural(int64(alive)), pressure.Bytes(m.bytes), indent(m.site)),
				m.bytes * int64(alive),
			})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.text, b.text)) })
	var b strings.Builder
	for _, p := range all[:min(len(all), 10)] {
		b.WriteString(p.text)
	}
	return b.String()
}

func plural(objects int64) string {
	if objects == 1 {
		return "1 object"
	}
	return pressure.Count(objects) + " objects"
}

func indent(text string) string { return "\t" + strings.ReplaceAll(text, "\n", "\n\t") }
