package pressure

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// linuxStalls is HostStalls over the root of a Linux file system.
func linuxStalls(root fs.FS) (float64, error) {
	for _, g := range cgroups(root) {
		if text, err := fs.ReadFile(root, path.Join(g.dir, "memory.pressure")); err == nil {
			return parseStalls(string(text))
		}
	}
	text, err := fs.ReadFile(root, "proc/pressure/memory")
	if err != nil {
		return 0, fmt.Errorf("pressure: stall information: %w", err)
	}
	return parseStalls(string(text))
}

func parseStalls(text string) (share float64, err error) {
	for line := range strings.Lines(text) {
		if n, _ := fmt.Sscanf(line, "some avg10=%f ", &share); n == 1 {
			return share / 100, nil
		}
	}
	return 0, fmt.Errorf("pressure: stall information: no line \"some\" in %q", text)
}
