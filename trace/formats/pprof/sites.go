package pprof

import (
	"io"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Site is an allocation site of a running program, and what was allocated there.
type Site struct {
	Stack                    string // as in the label of an Alloc event
	Space                    pressure.Space
	AllocObjects, AllocBytes int64 // so far
	InuseObjects, InuseBytes int64 // not yet freed
}

// WriteSites writes a profile of allocation sites as they are now, in the form of
// [Write]. rate is the mean number of bytes between two samples; 1 means that
// every allocation was counted. go tool pprof -comments shows the comments.
func WriteSites(w io.Writer, sites []Site, rate int64, comments ...string) error {
	b := newBuilder()
	for _, s := range sites {
		b.sample(s.Stack, s.Space, [...]float64{
			allocObjects: float64(s.AllocObjects), allocSpace: float64(s.AllocBytes),
			inuseObjects: float64(s.InuseObjects), inuseSpace: float64(s.InuseBytes),
		})
	}
	b.p.Period = max(rate, 1)
	b.p.TimeNanos = time.Now().UnixNano()
	b.p.Comments = comments
	return write(w, b.p)
}
