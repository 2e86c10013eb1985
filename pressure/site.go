package pressure

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// SiteText returns the allocation site of a stack, as the label of a [trace.Event] has it: a line
// "function\tfile:line" for each frame, the innermost first. It leaves out the first frames whose
// function begins with inside (a package's path and a dot), and those of a [Counter]. It keeps
// frames of the tests of these packages.
//
// [trace.Event]: https://pkg.go.dev/github.com/eagergc/eagergc/trace#Event
func SiteText(at []uintptr, inside string) string {
	frames := runtime.CallersFrames(at)
	var b strings.Builder
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		own := (strings.HasPrefix(f.Function, inside) || strings.HasPrefix(f.Function, counting)) && !strings.HasSuffix(f.File, "_test.go")
		if own && b.Len() == 0 || f.Function == "runtime.goexit" || f.Function == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\t%s:%d", f.Function, f.File, f.Line)
	}
	return b.String()
}

// counting is how the names of this package's functions begin.
const counting = "github.com/eagergc/eagergc/pressure."

// SiteLine returns the innermost line of a site's text, as people read it.
func SiteLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Replace(line, "\t", " ", 1)
}

// StackHash returns a hash of the address of the caller's stack. Goroutines that run at the same
// time mostly get different hashes. A goroutine gets the same one while its stack stays in place
// and it calls from about the same depth. All 64 bits vary. It takes about 1 ns.
func StackHash() uint64 {
	var here byte
	return uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // stacks begin with 2 KiB; 2^64 / golden ratio
}
