package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A Session holds one recording and answers questions about it. The zero value holds none. It is
// for one goroutine at a time.
type Session struct {
	load *sim.Workload
	had  int64 // see experiment.Had
	info info
}

type info struct {
	Name   string        `json:"name"`
	About  string        `json:"about"`
	Source string        `json:"source,omitempty"` // the program or format that made it
	Events int           `json:"events"`
	Allocs int           `json:"allocs"`
	Syncs  int           `json:"syncs"`
	Span   time.Duration `json:"span_ns"`
	Peak   int64         `json:"peak_reachable_bytes"`
	Gross  int64         `json:"allocated_bytes"`
	Space  string        `json:"space"`
}

// errCut reports a recording that is cut off and readable in part: see [Source.Recover].
var errCut = errors.New("cut off")

// A Source is a file to read.
type Source struct {
	Name    string // of the file, for errors
	From    io.Reader
	Recover bool // read the whole part of a recording that is cut off
}

// Load reads a recording, which replaces the previous one unless there is an error. Several
// files belong to one run: a memory snapshot and its profiles, in any order. The errors are
// those of the command line.
func (s *Session) Load(from []Source) (info, error) {
	var all []*trace.Trace
	for _, f := range from {
		t, err := f.read()
		if err != nil {
			return info{}, err
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b *trace.Trace) int { return cmp.Compare(waits(a), waits(b)) })
	t := all[0]
	for _, more := range all[1:] {
		var err error
		if t, err = recording.Merge(t, more); err != nil {
			return info{}, fmt.Errorf("%s with %s: want the profile of the same run: %w", all[0].Name, more.Name, err)
		}
	}
	w, err := experiment.Compile(t)
	if err != nil {
		return info{}, fmt.Errorf("%s: %w", from[0].Name, err)
	}
	s.load, s.had = w, experiment.Had(t)
	s.info = info{
		Name: w.Name, About: chart.About(w), Source: t.Meta["source"], Events: len(t.Events), Allocs: w.Allocs, Syncs: w.Syncs, Span: w.Span,
		Peak: w.PeakReachable, Gross: w.AllocatedBytes, Space: w.Space.String(),
	}
	return s.info, nil
}

func (from Source) read() (*trace.Trace, error) {
	t, err := formats.Opener{}.Read(from.From)
	switch cut := t != nil && errors.Is(err, trace.ErrTruncated); {
	case cut && from.Recover:
	case cut:
		return nil, fmt.Errorf("%s: %w (%w)", from.Name, err, errCut)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", from.Name, err)
	}
	t.Name = recording.Plain(cmp.Or(t.Name, recording.Stem(from.Name)))
	return t, nil
}

// waits counts the waits of a recording. Of the files of one run, the profile has the most.
func waits(t *trace.Trace) (n int) {
	for _, e := range t.Events {
		if e.Kind == trace.Sync {
			n++
		}
	}
	return n
}

// Info describes the loaded recording.
func (s *Session) Info() (info, error) {
	if s.load == nil {
		return info{}, errNothing
	}
	return s.info, nil
}

var errNothing = errors.New("no recording has been loaded")
