// Binding is a program with a library that counts its memory, and no collector. It prints what that took:
// goroutines, calls that read or write files, and open files, each beyond what there was before.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/eagergc/eagergc/pressure"
)

var images = pressure.NewCounter("images")

type image struct {
	pixels uintptr
	next   *image
}

// calls are those of read and write; the reading itself is one.
func calls() (n int) {
	text, _ := os.ReadFile("/proc/self/io")
	for line := range strings.Lines(string(text)) {
		var kind byte
		var k int
		if read, _ := fmt.Sscanf(line, "sysc%c: %d", &kind, &k); read == 2 {
			n += k
		}
	}
	return n
}

func main() {
	runtime.AddCleanup(new(image), func(int) {}, 0) // the runtime's own goroutine for cleanups is there from the first on
	files := func() int { all, _ := os.ReadDir("/proc/self/fd"); return len(all) }
	calls()
	before, goroutines, open := calls(), runtime.NumGoroutine(), files()
	silent := calls() - before
	before = calls()
	for range 1000 {
		images.Add(1 << 20)
		pressure.Own(images, new(image), 1<<20, func(uintptr) {}, 1)
		images.Sub(1 << 20)
	}
	open = files() - open
	fmt.Printf("%d goroutines, %d calls, %d files\n", runtime.NumGoroutine()-goroutines, calls()-before-silent, open)
}
