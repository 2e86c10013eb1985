package pprof

import (
	"io"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Site is a place in a running program and what was allocated there.
type Site struct {
	Stack                    string // as the label of an Alloc event says it
	Space                    pressure.Space
	AllocObjects, AllocBytes int64 // so far
	InuseObjects, InuseBytes int64 // not yet freed
}

// WriteSites writes a profile of sites now, as [Write] does that of a trace. Rate
// is the mean number of bytes between two samples of which the sites were
// estimated; 1 says that they are exact. Comments are what go tool pprof -comments
// shows.
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
