package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// DetectHeaptrack reports whether head, the first bytes of an unpacked file, begins a recording of
// heaptrack: "v", the version of heaptrack and the version of the file.
func DetectHeaptrack(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	return bytes.HasPrefix(line, []byte("v ")) && len(bytes.Fields(line)) == 3 && bytes.ContainsAny(rest[:min(len(rest), 1)], "XAIs#")
}

// ReadHeaptrack reads an unpacked recording of heaptrack (NAME.zst or NAME.gz). Numbers are
// hexadecimal. They count from 1, except those of kinds of allocations.
//
//	s LENGTH TEXT                           a text
//	i ADDRESS MODULE [FUNCTION FILE LINE]*  a place in the program, then the places it is inlined in
//	t PLACE PARENT                          a stack: a place, and the stack that called it
//	a SIZE STACK                            a kind of allocation, from 0
//	+ KIND                                  Alloc in the host's memory, labelled with its stack
//	- KIND                                  Drop: the program freed it
//	c MS                                    a time, every 10 ms: events between two are spread evenly
//	X COMMAND                               what ran, as Trace.Meta["app"]
//
// The file does not say which object of a kind is freed. The reader takes the latest. Recordings pack
// so well that a large one needs more than its budget: use replay --max-memory.
func ReadHeaptrack(r io.Reader) (*trace.Trace, error) {
	t := &trace.Trace{Meta: map[string]string{"source": "heaptrack", "clock": "of the program, every 10 ms; events between are spread evenly"}}
	h := heaptrack{book: newBook(r, 0), t: t}
	h.labels = recording.NewLabeler(t, h.book.budget)
	err := h.book.lines(r, func(line []byte) error {
		if len(line) < 2 || line[1] != ' ' {
			return nil
		}
		return h.line(line[0], string(line[2:]))
	})
	if err == nil && len(t.Events) == 0 {
		err = errors.New("empty trace: nothing was allocated")
	}
	if err != nil {
		return nil, fmt.Errorf("heaptrack: %w", err)
	}
	return t, nil
}

type heaptrack struct {
	book   book
	t      *trace.Trace
	labels *recording.Labeler

	version uint64
	texts   []string
	places  [][]uint64 // functions, files and lines
	stacks  [][2]uint64
	kinds   []heapKind

	now   int64 // of the last stamp, ns
	since int   // events before it
}

type heapKind struct {
	size  int64
	label uint32
	live  []uint64 // objects, by their ID
}

const mostFrames = 96

func (h *heaptrack) line(what byte, rest string) error {
	switch what {
	case 'X':
		h.t.Meta["app"] = recording.Plain(rest)
		return nil
	case 's':
		if _, text, ok := strings.Cut(rest, " "); ok && h.version >= 3 {
			rest = text
		}
		h.book.budget.Hold(int64(len(rest)) + 32)
		h.texts = append(h.texts, rest)
		return nil
	}
	if !strings.ContainsRune("vitac+-", rune(what)) {
		return nil
	}
	var n []uint64
	for _, field := range strings.Fields(rest) {
		v, err := strconv.ParseUint(field, 16, 64)
		if err != nil {
			return err
		}
		n = append(n, v)
	}
	if want := map[byte]int{'v': 2, 'i': 2, 't': 2, 'a': 2}[what]; len(n) < max(1, want) {
		return fmt.Errorf("%c with %d numbers", what, len(n))
	}
	switch what {
	case 'v':
		h.version = n[1]
	case 'i':
		h.places = recording.Append(h.book.budget, h.places, n[2:])
		h.book.budget.Hold(int64(len(n)) * 8)
	case 't':
		h.stacks = recording.Append(h.book.budget, h.stacks, [2]uint64{n[0], n[1]})
	case 'a':
		if n[0] >= uint64(trace.MaxBytes) {
			return fmt.Errorf("%d bytes", n[0])
		}
		h.kinds = recording.Append(h.book.budget, h.kinds, heapKind{size: int64(n[0]), label: h.labels.Label(h.site(n[1]))})
	case 'c':
		return h.stamp(n[0])
	default:
		return h.event(what, n[0])
	}
	return nil
}

// stamp spreads the events since the last stamp up to this one.
func (h *heaptrack) stamp(ms uint64) error {
	if ms > 1<<40 || int64(ms)*int64(time.Millisecond) < h.now {
		return fmt.Errorf("time goes backwards: %d ms after %v", ms, time.Duration(h.now))
	}
	then := int64(ms) * int64(time.Millisecond)
	events := h.t.Events[h.since:]
	for i := range events {
		events[i].Time = h.now + int64(float64(then-h.now)*float64(i)/float64(len(events)))
	}
	h.now, h.since = then, len(h.t.Events)
	return nil
}

func (h *heaptrack) event(what byte, n uint64) error {
	if n >= uint64(len(h.kinds)) {
		return fmt.Errorf("allocation %d of %d", n, len(h.kinds))
	}
	k := &h.kinds[n]
	e := trace.Event{Time: h.now, Kind: trace.Alloc, Bytes: k.size, Space: pressure.Host, Aux: k.label}
	if what == '+' {
		id, err := h.book.objects.New(k.size)
		if err != nil {
			return err
		}
		e.ID, k.live = id, recording.Append(h.book.budget, k.live, id)
	} else {
		last := len(k.live) - 1
		if last < 0 {
			return fmt.Errorf("free of allocation %d, of which none is there", n)
		}
		e.Kind, e.Aux, e.ID, k.live = trace.Drop, 0, k.live[last], k.live[:last]
		h.book.budget.Hold(-8)
	}
	h.t.Events = recording.Append(h.book.budget, h.t.Events, e)
	return nil
}

// site returns a stack as the label of an Alloc: see package trace/formats/pprof.
func (h *heaptrack) site(stack uint64) string {
	var b strings.Builder
	for range mostFrames {
		if stack == 0 || stack > uint64(len(h.stacks)) {
			break
		}
		at := h.stacks[stack-1]
		stack = at[1]
		if at[0] == 0 || at[0] > uint64(len(h.places)) {
			continue
		}
		for frame := h.places[at[0]-1]; len(frame) > 0; frame = frame[min(3, len(frame)):] {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(strings.ReplaceAll(h.text(frame[0]), "\t", " "))
			if len(frame) > 2 && frame[1] > 0 {
				fmt.Fprintf(&b, "\t%s:%d", strings.ReplaceAll(h.text(frame[1]), "\t", " "), frame[2])
			}
		}
	}
	return strings.ToValidUTF8(b.String()[:min(b.Len(), 8<<10)], "")
}

func (h *heaptrack) text(n uint64) string {
	if n == 0 || n > uint64(len(h.texts)) {
		return "(no name)"
	}
	return h.texts[n-1]
}
