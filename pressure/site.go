package pressure

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// SiteText returns the allocation site that the stack at lies on, as the label
// of a [trace.Event] has it: a line "function\tfile:line" for each frame, the
// innermost first. Frames of functions whose name begins with inside (a package's
// path and a dot), and those of a [Counter], are left out until the first other one; the tests of these
// packages count as others.
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

// StackHash returns a hash of where the caller's stack lies. It tells goroutines
// apart: those that run at the same time mostly get different hashes, and a
// goroutine gets the same one as long as its stack stays where it is and it
// calls from about the same depth. All 64 bits vary. It takes about 1 ns.
func StackHash() uint64 {
	var here byte
	return uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // stacks begin with 2 KiB; 2^64 / golden ratio
}
