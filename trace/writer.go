package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/eagergc/eagergc/pressure"
)

// The largest record batch. A batch is held in memory, and every row has the text of its label. The
// text of an allocation site has some hundred bytes.
const (
	batchRows = 2 << 10 // a file that is cut off loses at most the last of its batches
	batchText = 4 << 20 // bytes of labels
)

// Framing of a stream: https://arrow.apache.org/docs/format/Columnar.html
const (
	continuation = 0xFFFFFFFF // before the length of a message's header
	keySum       = "eagergc.crc32c"
)

// A file begins with the words of the usual spaces. At the first event of another space the writer
// replaces them with a dictionary of all spaces.
const (
	usualSpaces = 11 // of the host, and of 8 devices
	allSpaces   = 256
)

var errClosed = errors.New("trace: write after Close")

// A Writer writes a native file batch by batch. When [Writer.WriteBatch] returns, the whole batch
// is in the underlying writer. A Writer is a [BatchWriter], for one goroutine at a time. It refuses
// what [Read] would refuse: a kind that does not exist, and labels or a Meta over the bounds of the
// reader. After an error every call returns that error.
type Writer struct {
	to      io.Writer
	codec   Codec
	numbers map[string]uint32 // labels in the order in which the file has them
	spaces  int               // whose words are written
	events  int
	err     error

	bytes    int64 // of the file so far
	unpacked int64 // bytes of its packed buffers, unpacked
	text     int64 // bytes of its labels

	message, body, packed []byte
	buffers               []extent
}

// NewWriter starts a file in w with the Name, Start and Meta of t; it ignores the events and labels
// of t. The caller closes w after the Writer.
func NewWriter(w io.Writer, t *Trace) (*Writer, error) {
	f := &Writer{to: w, numbers: map[string]uint32{"": 0}, spaces: usualSpaces}
	if codec := zstd.Load(); codec != nil {
		f.codec = *codec
	}
	f.send(schemaMessage, schemaOf(t))
	f.words(colKind, int(kinds), func(i int) string { return Kind(i).String() })
	if f.knowSpaces(); f.err != nil {
		return nil, f.err
	}
	return f, nil
}

// Unpacked makes later batches uncompressed, for readers of Arrow without zstd. A file is then about
// ten times as large.
func (f *Writer) Unpacked() { f.codec.Compress = nil }

// WriteBatch writes events, sorted or not. The Aux of a labelled event is an index into labels, as
// in a [Trace]. WriteBatch keeps neither slice. It returns the number of events that it has
// written, from the first, and an error if it has not written all.
func (f *Writer) WriteBatch(events []Event, labels []string) (written int, err error) {
	for written < len(events) {
		n := fits(events[written:], labels)
		if f.write(events[written:written+n], labels); f.err != nil {
			return written, f.err
		}
		written += n
	}
	return written, nil
}

// fits returns the number of events, from the first, that make one batch.
func fits(events []Event, labels []string) int {
	view, text := Trace{Labels: labels}, 0
	for i := range events[:min(len(events), batchRows)] {
		if text += len(view.Label(events[i])); text > batchText && i > 0 {
			return i
		}
	}
	return min(len(events), batchRows)
}

func (f *Writer) write(events []Event, labels []string) {
	for i := range events {
		if events[i].Kind >= kinds {
			f.err = fmt.Errorf("trace: write at event %d: kind %d, want one below %d", f.events+i, events[i].Kind, kinds)
			return
		}
		if int(events[i].Space) >= f.spaces {
			f.spaces = allSpaces
			f.knowSpaces()
		}
	}
	pack, before := f.codec.Compress != nil, f.unpacked
	nulls := f.columns(events, labels, pack)
	if f.unpacked > mostUnpacked(f.bytes+int64(len(f.body)), usualBounds.ratio) { // readers would refuse it
		pack, f.unpacked = false, before
		nulls = f.columns(events, labels, pack)
	}
	nodes := make([]extent, columns)
	for c := range nodes {
		nodes[c].at = int64(len(events))
	}
	nodes[colLabel].length = int64(nulls)
	var packing any
	if pack {
		packing = flat{codecZstd, uint8(0)}
	}
	f.send(batchMessage, flat{int64(len(events)), nodes, f.buffers, packing})
	if f.err == nil {
		f.events += len(events)
	}
}

// columns makes the body of a batch, and returns the number of events without a label.
func (f *Writer) columns(events []Event, labels []string, pack bool) (nulls int) {
	f.body, f.buffers = f.body[:0], f.buffers[:0]
	for c := range colLabel {
		f.buffer(nil, pack) // no nulls
		f.buffer(f.column(c, events, labels), pack)
	}
	return f.texts(events, labels, pack)
}

func (f *Writer) knowSpaces() {
	f.words(colSpace, f.spaces, func(i int) string { return pressure.Space(i).String() })
}

func (f *Writer) words(c, n int, word func(int) string) {
	var all []byte
	offsets := make([]byte, 4, 4*(n+1))
	for i := range n {
		all = append(all, word(i)...)
		offsets = little.AppendUint32(offsets, uint32(len(all)))
	}
	f.body, f.buffers = f.body[:0], f.buffers[:0]
	for _, b := range [][]byte{nil, offsets, all} {
		f.buffer(b, false)
	}
	f.send(dictionaryMessage, flat{int64(c), flat{int64(n), []extent{{int64(n), 0}}, f.buffers}, false})
}

func (f *Writer) buffer(data []byte, pack bool) {
	at := len(f.body)
	f.bound("bytes of a record batch", int64(len(data)), usualBounds.batch)
	if pack && len(data) > 0 {
		f.unpacked += int64(len(data))
		f.body = f.codec.Compress(little.AppendUint64(f.body, uint64(len(data))), data)
	} else {
		f.body = append(f.body, data...)
	}
	f.buffers = append(f.buffers, extent{int64(at), int64(len(f.body) - at)})
	for len(f.body)%8 > 0 {
		f.body = append(f.body, 0)
	}
}

// column returns the numbers of a column other than that of labels, valid until the next call.
func (f *Writer) column(c int, events []Event, labels []string) []byte {
	b, width := f.packed[:0], format[c].form.width()
	for i := range events {
		v := format[c].get(&events[i])
		if c == colAux {
			v = uint64(f.aux(&events[i], labels))
		}
		switch width {
		case 1:
			b = append(b, uint8(v))
		case 4:
			b = little.AppendUint32(b, uint32(v))
		default:
			b = little.AppendUint64(b, v)
		}
	}
	f.packed = b
	return b
}

// aux returns the number of a label in the file, or the Aux of an event without one.
func (f *Writer) aux(e *Event, labels []string) uint32 {
	if !e.Kind.Labelled() {
		return e.Aux
	}
	text := (&Trace{Labels: labels}).Label(*e)
	n, ok := f.numbers[text]
	if !ok {
		n = uint32(len(f.numbers))
		f.numbers[text] = n
		f.text += int64(len(text))
		f.bound("bytes of labels", f.text, usualBounds.labels)
	}
	return n
}

// texts appends the buffers of the labels, and returns the number of events without a label.
func (f *Writer) texts(events []Event, labels []string, pack bool) (nulls int) {
	view := Trace{Labels: labels}
	valid, offsets, all := make([]byte, (len(events)+7)/8), make([]byte, 4, 4*(len(events)+1)), f.packed[:0]
	for i := range events {
		if label := view.Label(events[i]); label != "" {
			valid[i/8] |= 1 << (i % 8)
			all = append(all, label...)
		} else {
			nulls++
		}
		offsets = little.AppendUint32(offsets, uint32(len(all)))
	}
	f.packed = all
	for _, b := range [][]byte{valid, offsets, all} {
		f.buffer(b, pack)
	}
	return nulls
}

// send writes a message with the body, and a check sum of both.
func (f *Writer) send(kind uint8, of flat) {
	if f.err != nil {
		return
	}
	const head = 8
	m := flat{metadataV5, kind, of, int64(len(f.body)), pairs(keySum, "00000000")}
	b, end := m.appendTo(append(f.message[:0], make([]byte, head)...))
	little.PutUint32(b, continuation)
	little.PutUint32(b[4:], uint32(len(b)-head))
	f.bound("bytes of a header", int64(len(b)), usualBounds.header)
	f.bound("bytes of a record batch", int64(len(f.body)), usualBounds.batch)
	copy(b[end-8:], sumOf(b[head:], end-8-head, f.body))
	f.message = append(b, f.body...)
	f.put(fmt.Sprintf("event %d", f.events), f.message)
}

// bound ends the file before a message that readers would refuse.
func (f *Writer) bound(what string, got, limit int64) {
	if got > limit && f.err == nil {
		f.err = fmt.Errorf("trace: write at event %d: %w", f.events, overBound(what, got, limit))
	}
}

func (f *Writer) put(where string, b []byte) {
	if f.err != nil {
		return
	}
	n, err := f.to.Write(b)
	f.bytes += int64(n)
	if err != nil {
		f.err = fmt.Errorf("trace: write at %s: %w", where, err)
	}
}

// Close writes the end mark of the stream; without it the file counts as cut off. It does not close
// the underlying writer.
func (f *Writer) Close() error {
	if f.err == errClosed {
		return nil
	}
	if f.err == nil {
		f.put("the end of the stream", little.AppendUint64(nil, continuation))
	}
	if f.err != nil {
		return f.err
	}
	f.err = errClosed
	return nil
}

// Write writes t to w as a native file. The same trace always gives the same bytes, also after it
// was written and read back. Labels that no event refers to are left out.
func Write(w io.Writer, t *Trace) error {
	f, err := NewWriter(w, t)
	if err != nil {
		return err
	}
	if _, err := f.WriteBatch(t.Events, t.Labels); err != nil {
		return err
	}
	return f.Close()
}
