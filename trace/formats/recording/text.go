package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TextHeader is the first line of the text form.
const TextHeader = "eagergc trace 1"

// WriteText writes t in its text form, for people and tests. Each event is one
// line: its time in ns, its kind, and then each field that is not zero.
//
//	eagergc trace 1
//	name "gpt2"
//	0 alloc id=1 bytes=1048576 space=device0
//	1500 sync space=device0 duration=250000 label="cudaStreamSynchronize"
//	2000 drop id=1 bytes=1048576 space=device0
func WriteText(w io.Writer, t *trace.Trace) error {
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintln(out, TextHeader)
	if t.Name != "" {
		fmt.Fprintf(out, "name %q\n", t.Name)
	}
	if !t.Start.IsZero() {
		fmt.Fprintf(out, "start %s\n", t.Start.UTC().Format(time.RFC3339Nano))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		fmt.Fprintf(out, "meta %q %q\n", key, t.Meta[key])
	}
	for _, e := range t.Events {
		fmt.Fprintln(out, Text(t, e)) // the first error stays, and Flush returns it
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("trace: text form: %w", err)
	}
	return nil
}

// Text returns the line of e in the text form of t.
func Text(t *trace.Trace, e trace.Event) string {
	b := fmt.Appendf(nil, "%d %v", e.Time, e.Kind)
	field := func(key string, v any, there bool) {
		if there {
			b = fmt.Appendf(b, " %s=%v", key, v)
		}
	}
	field("id", e.ID, e.ID != 0)
	field("bytes", e.Bytes, e.Bytes != 0)
	field("space", e.Space, e.Space != pressure.Host)
	field("duration", int64(e.Duration), e.Duration != 0)
	field("stream", e.Stream, e.Stream != 0)
	if e.Kind.Labelled() {
		label := t.Label(e)
		field("label", strconv.Quote(label), label != "")
	} else {
		field("aux", e.Aux, e.Aux != 0)
	}
	return string(b)
}

// ReadText reads what [WriteText] writes. It skips empty lines and lines that begin
// with #, and the header may be missing. Times must be in order; ReadText checks
// no other invariant: see [trace.Trace.Validate]. An error gives the line.
func ReadText(r io.Reader) (*trace.Trace, error) {
	t, budget := new(trace.Trace), BudgetOf(r)
	p := textReader{t: t, budget: budget, labels: NewLabeler(t, budget)}
	err := Lines(r, func(n int, line []byte) error {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' || n == 1 && string(line) == TextHeader {
			return nil
		}
		return p.line(string(line))
	})
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return t, nil
}

// maxLine bounds the lines of a text, in bytes.
const maxLine = 1 << 20

// Lines calls each with every line of r, in order, and its number, from 1. An error, of each or
// of reading, gives the number of the line.
func Lines(r io.Reader, each func(n int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if err := each(n, lines.Bytes()); err != nil {
			if !lines.Scan() && lines.Err() != nil { // the line is not whole
				err = lines.Err()
			}
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

type textReader struct {
	t      *trace.Trace
	budget *Budget
	last   int64 // time of the last event
	labels *Labeler
}

func (p *textReader) line(line string) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "name":
		p.t.Name, err = strconv.Unquote(rest)
		return err
	case "start":
		p.t.Start, err = time.Parse(time.RFC3339Nano, rest)
		p.t.Start = p.t.Start.UTC()
		return err
	case "meta":
		return p.meta(rest)
	}
	e := trace.Event{}
	if e.Time, err = strconv.ParseInt(word, 10, 64); err != nil {
		return fmt.Errorf("%q is neither a time nor name, start or meta", word)
	}
	if len(p.t.Events) > 0 && e.Time < p.last {
		return fmt.Errorf("time goes backwards: %d ns after %d ns", e.Time, p.last)
	}
	p.last = e.Time
	kind, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if e.Kind, err = trace.ParseKind(kind); err != nil {
		return err
	}
	if err := p.fields(&e, rest); err != nil {
		return err
	}
	p.t.Events = Append(p.budget, p.t.Events, e)
	return nil
}

func (p *textReader) meta(rest string) error {
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return err
	}
	key, _ := strconv.Unquote(quoted)
	value, err := strconv.Unquote(strings.TrimPrefix(rest[len(quoted):], " "))
	if err != nil {
		return err
	}
	if p.t.Meta == nil {
		p.t.Meta = make(map[string]string)
	}
	p.t.Meta[key] = value
	p.budget.Hold(int64(len(key)+len(value)) + labelBytes)
	return nil
}

// fields reads key=value pairs; a label is the last of them.
func (p *textReader) fields(e *trace.Event, rest string) error {
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, ok := strings.Cut(rest, "=")
		if !ok {
			return fmt.Errorf("%q is no key=value", rest)
		}
		if key == "label" {
			text, err := strconv.Unquote(after)
			if err != nil || !e.Kind.Labelled() {
				return fmt.Errorf("label %s of a %v: want a quoted text, of an alloc, sync, mark or decision", after, e.Kind)
			}
			e.Aux = p.labels.Label(text)
			return nil
		}
		value, tail, _ := strings.Cut(after, " ")
		if err := set(e, key, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		rest = tail
	}
	return nil
}

func set(e *trace.Event, key, value string) (err error) {
	var n int64
	var u uint64
	switch key {
	case "id":
		e.ID, err = strconv.ParseUint(value, 10, 64)
	case "bytes":
		e.Bytes, err = strconv.ParseInt(value, 10, 64)
	case "space":
		e.Space, err = pressure.ParseSpace(value)
	case "duration":
		n, err = strconv.ParseInt(value, 10, 64)
		e.Duration = time.Duration(n)
	case "stream":
		u, err = strconv.ParseUint(value, 10, 32)
		e.Stream = uint32(u)
	case "aux":
		if e.Kind.Labelled() {
			return fmt.Errorf("a %v has a label instead", e.Kind)
		}
		u, err = strconv.ParseUint(value, 10, 32)
		e.Aux = uint32(u)
	default:
		return errors.New("unknown field (want id, bytes, space, duration, stream, aux or label)")
	}
	return err
}
