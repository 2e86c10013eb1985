// Package perfetto writes a trace for ui.perfetto.dev and chrome://tracing, in the
// JSON object form of the Trace Event Format, which Perfetto reads.
//
// Each space is a process. It has
//
//	counters   reachable, garbage and reserved, in bytes; a counter that never
//	           changes is left out
//	slices     syncs (one track for each stream or thread), cycles, refusals,
//	           marks with a duration
//	instants   decisions, named by their reason, and marks without a duration
//
// The format wants two slices on one track to be nested or apart, so slices that
// overlap in part are on different tracks. Times are microseconds with three
// decimals, exact to the ns.
package perfetto

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// The meanings of the numbers in decision and cycle events, as in package gc.
var (
	actions  = [...]string{"skip", "overlap", "block"}
	triggers = [...]string{"policy", "refusal", "natural", "explicit"}
)

// Write writes t, which must be valid (see [trace.Trace.Validate]).
func Write(w io.Writer, t *trace.Trace) error {
	p := &writer{
		t: t, out: bufio.NewWriterSize(w, 64<<10),
		dropFrees: !slices.ContainsFunc(t.Events, func(e trace.Event) bool { return e.Kind == trace.Free }),
		spaces:    make(map[pressure.Space]*space), sizes: make(map[uint64]int64),
	}
	p.head()
	for i, e := range t.Events {
		p.event(e)
		if i+1 == len(t.Events) || t.Events[i+1].Time != e.Time {
			p.counters(e.Time)
		}
	}
	p.out.WriteString("\n]}\n")
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("perfetto: %w", err)
	}
	return nil
}

// A writer writes the rows of one trace. The first error stays in out, and its
// Flush returns it.
type writer struct {
	t         *trace.Trace
	out       *bufio.Writer
	rows      int
	dropFrees bool // the trace has no Free: a drop gives the bytes back
	spaces    map[pressure.Space]*space
	sizes     map[uint64]int64 // of reachable objects
}

// A space is a process: its counters and tracks.
type space struct {
	pid                       int
	reachable, held, reserved int64
	shown                     map[string]int64
	tracks                    map[track]*[]lane
	tids                      int
}

// A track shows the slices of one kind and thread.
type track struct {
	kind   trace.Kind
	stream uint32
}

// A lane is one line of a track. ends are the ends of the slices that are open on
// it, outermost first.
type lane struct {
	tid  int
	ends []int64
}

// head writes the beginning of the file, up to the list of events.
func (p *writer) head() {
	about := map[string]string{"name": p.t.Name}
	if !p.t.Start.IsZero() {
		about["start"] = p.t.Start.Format(time.RFC3339Nano)
	}
	maps.Copy(about, p.t.Meta)
	fmt.Fprintf(p.out, `{"displayTimeUnit":"ns","otherData":%s,"traceEvents":[`, quoted(about))
}

// quoted returns v, a string or a map of strings, as JSON with sorted keys.
func quoted(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always can be written
	}
	return b
}

// row writes one trace event; more is JSON for its further fields.
func (p *writer) row(phase string, pid, tid int, ns int64, name, more string) {
	if p.rows++; p.rows > 1 {
		p.out.WriteByte(',')
	}
	fmt.Fprintf(p.out, "\n{\"ph\":%q,\"pid\":%d,\"tid\":%d,\"ts\":%s,\"name\":%s%s}", phase, pid, tid, micros(ns), quoted(name), more)
}

// micros returns ns in microseconds.
func micros(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return sign + strconv.FormatInt(ns/1000, 10) + fmt.Sprintf(".%03d", ns%1000)
}

func (p *writer) event(e trace.Event) {
	s := p.space(e.Space)
	switch e.Kind {
	case trace.Alloc:
		p.sizes[e.ID] = e.Bytes
		s.reachable += e.Bytes
		s.held += e.Bytes
	case trace.Drop:
		size := p.die(s, e)
		if p.dropFrees {
			s.held -= size
		}
	case trace.Free:
		p.die(s, e)
		s.held -= e.Bytes
	case trace.Reserve:
		s.reserved += e.Bytes
	case trace.Release:
		s.reserved -= e.Bytes
	default:
		p.shown(s, e)
	}
}

// die removes an object from the reachable ones and returns its size, or 0 if it
// was removed before.
func (p *writer) die(s *space, e trace.Event) int64 {
	size := p.sizes[e.ID]
	delete(p.sizes, e.ID)
	s.reachable -= size
	return size
}

// shown writes a slice or an instant.
func (p *writer) shown(s *space, e trace.Event) {
	name, args := cmp.Or(p.t.Label(e), e.Kind.String()), ""
	switch e.Kind {
	case trace.Cycle:
		name = "cycle"
		args = fmt.Sprintf(`"freed_bytes":%d,"trigger":%s`, e.Bytes, quoted(word(triggers[:], int64(e.Aux))))
	case trace.Refuse:
		args = fmt.Sprintf(`"bytes":%d,"step":%d`, e.Bytes, e.Aux)
	case trace.Decision:
		args = fmt.Sprintf(`"action":%s`, quoted(word(actions[:], e.Bytes)))
	case trace.Mark:
		if e.Bytes != 0 {
			args = fmt.Sprintf(`"value":%d`, e.Bytes)
		}
	}
	instant := e.Kind == trace.Decision || e.Kind == trace.Mark && e.Duration == 0
	tid := p.lane(s, e, instant)
	more := fmt.Sprintf(`,"cat":%q,"args":{%s}`, e.Kind.String(), args)
	if instant {
		p.row("i", s.pid, tid, e.Time, name, `,"s":"t"`+more)
		return
	}
	p.row("X", s.pid, tid, e.Time, name, `,"dur":`+micros(int64(e.Duration))+more)
}

func word(words []string, n int64) string {
	if n >= 0 && n < int64(len(words)) {
		return words[n]
	}
	return strconv.FormatInt(n, 10)
}

// lane returns the number of the line that shows e: the first one of its track
// that is free, or whose open slice contains e.
func (p *writer) lane(s *space, e trace.Event, instant bool) int {
	key := track{e.Kind, e.Stream}
	if e.Kind == trace.Cycle || e.Kind == trace.Decision {
		key.stream = 0 // one collector
	}
	lanes := s.tracks[key]
	if lanes == nil {
		lanes = new([]lane)
		s.tracks[key] = lanes
	}
	end := e.Time + int64(e.Duration)
	for i := range *lanes {
		l := &(*lanes)[i]
		for len(l.ends) > 0 && l.ends[len(l.ends)-1] <= e.Time {
			l.ends = l.ends[:len(l.ends)-1]
		}
		if instant || len(l.ends) == 0 || end <= l.ends[len(l.ends)-1] {
			l.ends = append(l.ends, end)
			return l.tid
		}
	}
	s.tids++
	name := e.Kind.String() + "s"
	if e.Kind == trace.Refuse {
		name = "refusals"
	}
	if key.stream != 0 {
		name += " of stream " + strconv.FormatUint(uint64(key.stream), 10)
	}
	p.row("M", s.pid, s.tids, 0, "thread_name", `,"args":{"name":`+string(quoted(name))+`}`)
	*lanes = append(*lanes, lane{tid: s.tids, ends: []int64{end}})
	return s.tids
}

// space returns the process of a space, and names it.
func (p *writer) space(name pressure.Space) *space {
	s := p.spaces[name]
	if s == nil {
		s = &space{pid: int(name) + 1, shown: make(map[string]int64), tracks: make(map[track]*[]lane)}
		p.spaces[name] = s
		p.row("M", s.pid, 0, 0, "process_name", `,"args":{"name":`+string(quoted(name.String()))+`}`)
	}
	return s
}

// counters writes the counters that have changed.
func (p *writer) counters(now int64) {
	for n := range 256 {
		s := p.spaces[pressure.Space(n)]
		if s == nil {
			continue
		}
		s.count(p, now, "reachable", s.reachable)
		s.count(p, now, "garbage", s.held-s.reachable)
		s.count(p, now, "reserved", s.reserved)
	}
}

func (s *space) count(p *writer, now int64, name string, bytes int64) {
	if s.shown[name] == bytes {
		return
	}
	s.shown[name] = bytes
	p.row("C", s.pid, 0, now, name, `,"args":{"bytes":`+strconv.FormatInt(bytes, 10)+`}`)
}
