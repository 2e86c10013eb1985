package pressure

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Stalls is the kernel's pressure stall information for memory: how much of the
// time tasks waited for memory. (Linux, Documentation/accounting/psi.rst.)
type Stalls struct {
	Some Stall // at least one task waited
	Full Stall // all tasks waited at once
}

// A Stall is one line of pressure stall information.
type Stall struct {
	Avg10, Avg60, Avg300 float64       // share of the last 10, 60 and 300 s, 0..1
	Total                time.Duration // since the start of the group or machine
}

func linuxStalls(root fs.FS) (Stalls, error) {
	for _, g := range cgroups(root) {
		if text, err := fs.ReadFile(root, path.Join(g.dir, "memory.pressure")); err == nil {
			return parseStalls(string(text))
		}
	}
	text, err := fs.ReadFile(root, "proc/pressure/memory")
	if err != nil {
		return Stalls{}, fmt.Errorf("pressure: stall information: %w", err)
	}
	return parseStalls(string(text))
}

func parseStalls(text string) (s Stalls, err error) {
	var seen bool
	for line := range strings.Lines(text) {
		var kind string
		var one Stall
		var micros int64
		n, err := fmt.Sscanf(line, "%s avg10=%f avg60=%f avg300=%f total=%d", &kind, &one.Avg10, &one.Avg60, &one.Avg300, &micros)
		if err != nil || n != 5 {
			return Stalls{}, fmt.Errorf("pressure: stall information: bad line %q", strings.TrimSpace(line))
		}
		one.Avg10, one.Avg60, one.Avg300 = one.Avg10/100, one.Avg60/100, one.Avg300/100
		one.Total = time.Duration(micros) * time.Microsecond
		switch kind {
		case "some":
			s.Some, seen = one, true
		case "full":
			s.Full = one
		}
	}
	if !seen {
		return Stalls{}, fmt.Errorf("pressure: stall information: no line \"some\" in %q", text)
	}
	return s, nil
}
