package main

import (
	"fmt"
	"io"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// describeObjects prints which objects a space has: by size, and by how long
// they lived.
func describeObjects(w io.Writer, space pressure.Space, s *trace.Stats, d trace.Demographics) {
	share := func(part, all int64) string { return formatPercent(float64(part) / float64(max(all, 1))) }
	sizes := grid{{space.String() + ", size up to", "objects", "bytes", "of all", "never freed", "lifetime p50", "p90", "p99"}}
	for _, c := range d.Sizes {
		sizes = append(sizes, []string{
			formatBytes(c.Max), formatCount(c.Objects), formatBytes(c.Bytes), share(c.Bytes, s.AllocatedBytes), formatCount(c.Survivors),
			formatDuration(time.Duration(c.Lifetimes.P50)), formatDuration(time.Duration(c.Lifetimes.P90)), formatDuration(time.Duration(c.Lifetimes.P99)),
		})
	}
	lives := grid{{space.String() + ", lived less than", "objects", "of all", "bytes", "of all"}}
	for _, c := range d.Lifetimes {
		name := formatDuration(c.Below)
		if c.Below == 0 {
			name = "not freed"
		}
		lives = append(lives, []string{
			name, formatCount(c.Objects), share(int64(c.Objects), int64(s.Allocs)), formatBytes(c.Bytes), share(c.Bytes, s.AllocatedBytes),
		})
	}
	for _, g := range []grid{sizes, lives} {
		fmt.Fprintln(w)
		g.print(w)
	}
}
