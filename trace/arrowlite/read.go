package arrowlite

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// ErrOther reports a file that may be a native trace, but not of the kind that this
// package reads.
var ErrOther = errors.New("arrowlite: not of the subset that is read here")

// Bounds of what a file may make its reader do: those of arrowfile by default.
const (
	mostHeader = 16 << 20  // bytes of the header of a message
	mostBatch  = 256 << 20 // bytes of a batch, packed or unpacked
	mostEvents = 1 << 28
	freeBytes  = 64 << 20 // that the smallest file may unpack to
	ratio      = 256      // unpacked bytes that each byte of the file adds
)

// An Unpack returns the size bytes that a frame of zstd unpacks to. They are valid until
// the next call. It need not look at the frame's check sum.
type Unpack func(frame []byte, size int) ([]byte, error)

// Read reads a trace. The order of events and the numbers of labels are those of
// arrowfile.Read.
func Read(r io.Reader, unpack Unpack) (t *trace.Trace, err error) {
	defer func() { // an offset that leads out of a header
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("%w: %v", ErrOther, p)
		}
	}()
	d := decoder{from: r, unpack: unpack, t: &trace.Trace{Meta: make(map[string]string)}}
	d.labels = trace.NewLabeler(d.t)
	if err := d.read(); err != nil {
		return nil, err
	}
	trace.Sort(d.t.Events)
	return d.t, nil
}

type decoder struct {
	from     io.Reader
	unpack   Unpack
	t        *trace.Trace
	labels   *trace.Labeler
	columns  []int             // of the file, by their number in the format
	version  int               // index in format: 0 is version 2, 1 is version 1
	words    map[int64]int     // column of the format whose words a dictionary has, by its number
	tables   [colLabel][]uint8 // numbers of the words of a column; none if they are numbers
	read0    int64             // bytes of the file so far
	unpacked int64             // bytes of all batches so far
}

func (d *decoder) read() error {
	for {
		h, body, err := d.message()
		switch {
		case err == io.EOF:
			if d.columns == nil {
				return ErrOther
			}
			return nil
		case err != nil:
			return err
		case h.kind == kindSchema && d.columns == nil:
			err = d.schema(h.inner())
		case h.kind == kindDictionary && d.columns != nil:
			err = d.dictionary(h.inner(), body)
		case h.kind == kindBatch && d.columns != nil:
			err = d.batch(h.inner(), body)
		default:
			err = ErrOther
		}
		if err != nil {
			return err
		}
	}
}

// message returns the next message, or io.EOF at the end mark.
func (d *decoder) message() (h message, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(d.from, head[:]); err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrOther, io.ErrUnexpectedEOF)
	}
	size := int64(int32(binary.LittleEndian.Uint32(head[4:])))
	switch {
	case binary.LittleEndian.Uint32(head[:]) != 0xFFFFFFFF || size < 0 || size > mostHeader || size%8 != 0:
		return h, nil, ErrOther
	case size == 0:
		if n, err := d.from.Read(head[:1]); n > 0 || err != io.EOF {
			return h, nil, ErrOther // more bytes after the end
		}
		return h, nil, io.EOF
	}
	header, err := d.take(size)
	if err != nil {
		return h, nil, err
	}
	h = newMessage(header)
	body, err = d.take(h.bodyLength())
	d.read0 += 8 + size + h.bodyLength()
	return h, body, err
}

// take reads n bytes. It allocates no more than are really there.
func (d *decoder) take(n int64) ([]byte, error) {
	if n < 0 || n > mostBatch {
		return nil, ErrOther
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, d.from, n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOther, err)
	}
	return b.Bytes(), nil
}

// schema reads the provenance and checks that the columns are those of the format.
func (d *decoder) schema(s table) error {
	found := s.list(schemaFields)
	if littleEndian := s.GetInt16Slot(schemaEndianness, 0) == 0; !littleEndian || len(found) != len(format) {
		return ErrOther
	}
	meta := make(map[string]string)
	for _, pair := range s.list(schemaMetadata) {
		key, value := pair.texts(pairKey), pair.texts(pairValue)
		if _, twice := meta[key]; twice {
			return ErrOther
		}
		meta[key] = value
		if name, ok := strings.CutPrefix(key, "eagergc.meta."); ok {
			d.t.Meta[name] = value
		}
	}
	switch meta["eagergc.version"] {
	case "2":
	case "1":
		d.version = 1
	default:
		return ErrOther
	}
	d.t.Name = meta["eagergc.name"]
	if start, ok := meta["eagergc.start"]; ok {
		at, err := time.Parse(time.RFC3339Nano, start)
		if err != nil {
			return ErrOther
		}
		d.t.Start = at.UTC()
	}
	return d.locate(found)
}

// locate finds the columns of the format among the fields.
func (d *decoder) locate(found []table) error {
	d.columns, d.words = make([]int, len(format)), make(map[int64]int)
	for c, want := range format {
		at := slices.IndexFunc(found, func(f table) bool { return f.texts(fieldName) == want.name })
		if at < 0 {
			return ErrOther
		}
		got, dictionary, ok := found[at].form()
		if !ok || got != want.form[d.version] {
			return ErrOther
		}
		if got == words {
			if _, shared := d.words[dictionary]; shared {
				return ErrOther
			}
			d.words[dictionary] = c
		}
		d.columns[c] = at
	}
	return nil
}

// dictionary reads the words of a column. An index without a word is of no kind and
// no space that there is.
func (d *decoder) dictionary(b table, body []byte) error {
	number, batch, ok := b.dictionary()
	c, known := d.words[number]
	if !ok || !known {
		return ErrOther
	}
	n, buffers, isPacked, err := batch.rows(1, -1)
	if err != nil || n > 256 || len(buffers) != 3 {
		return ErrOther
	}
	offsets, all, err := d.strings(body, buffers, isPacked, int(n))
	if err != nil {
		return err
	}
	d.tables[c] = make([]uint8, n)
	for i := range int(n) {
		a, b := offsets.at(i), offsets.at(i+1)
		if a < 0 || b < a || b > len(all) {
			return ErrOther
		}
		word := string(all[a:b])
		if c == colKind {
			k, err := trace.ParseKind(word)
			if err != nil {
				return ErrOther
			}
			d.tables[c][i] = uint8(k)
			continue
		}
		s, err := pressure.ParseSpace(word)
		if err != nil {
			return ErrOther
		}
		d.tables[c][i] = uint8(s)
	}
	return nil
}

// Offsets are where texts begin.
type offsets []byte

func (o offsets) at(i int) int { return int(int32(binary.LittleEndian.Uint32(o[4*i:]))) }

// strings returns the offsets and the bytes of n texts.
func (d *decoder) strings(body []byte, buffers []span, isPacked bool, n int) (offsets, []byte, error) {
	var parts [2][]byte
	for i := range parts {
		b, err := d.buffer(body, buffers[i+1], isPacked)
		if err != nil {
			return nil, nil, err
		}
		parts[i] = bytes.Clone(b)
	}
	if n > 0 && len(parts[0]) < 4*(n+1) {
		return nil, nil, ErrOther
	}
	return parts[0], parts[1], nil
}

// batch appends the events of a record batch.
func (d *decoder) batch(b table, body []byte) error {
	rows, buffers, isPacked, err := b.rows(len(format), d.columns[colLabel])
	if err != nil || int64(len(d.t.Events))+rows > mostEvents {
		return ErrOther
	}
	first := make([]int, len(format)) // buffer of each column of the file
	for i, n := 0, 0; i < len(format); i++ {
		first[i] = n
		n += 2
		if d.columns[colLabel] == i {
			n++
		}
	}
	if len(buffers) != 2*len(format)+1 {
		return ErrOther
	}
	from := len(d.t.Events)
	d.t.Events = append(d.t.Events, make([]trace.Event, rows)...)
	events := d.t.Events[from:]
	for c, set := range setters {
		data, err := d.buffer(body, buffers[first[d.columns[c]]+1], isPacked)
		if err != nil {
			return err
		}
		width := format[c].form[0].bits / 8
		if len(data) < width*len(events) {
			return ErrOther
		}
		if format[c].form[d.version] == words {
			if data, err = d.numbers(c, data[:len(events)]); err != nil {
				return err
			}
		}
		for i := range events {
			set(&events[i], data[i*width:])
		}
	}
	return d.label(events, body, buffers[first[d.columns[colLabel]]:][:3], isPacked)
}

// numbers turns words into the numbers of what they name.
func (d *decoder) numbers(c int, data []byte) ([]byte, error) {
	table, out := d.tables[c], make([]byte, len(data))
	for i, index := range data {
		if int(index) >= len(table) {
			return nil, ErrOther
		}
		out[i] = table[index]
	}
	return out, nil
}

// setters store a number of each column but the label.
var setters = [...]func(*trace.Event, []byte){
	colTime:     func(e *trace.Event, b []byte) { e.Time = int64(binary.LittleEndian.Uint64(b)) },
	colKind:     func(e *trace.Event, b []byte) { e.Kind = trace.Kind(b[0]) },
	colSpace:    func(e *trace.Event, b []byte) { e.Space = pressure.Space(b[0]) },
	colID:       func(e *trace.Event, b []byte) { e.ID = binary.LittleEndian.Uint64(b) },
	colBytes:    func(e *trace.Event, b []byte) { e.Bytes = int64(binary.LittleEndian.Uint64(b)) },
	colDuration: func(e *trace.Event, b []byte) { e.Duration = time.Duration(binary.LittleEndian.Uint64(b)) },
	colStream:   func(e *trace.Event, b []byte) { e.Stream = binary.LittleEndian.Uint32(b) },
	colAux:      func(e *trace.Event, b []byte) { e.Aux = binary.LittleEndian.Uint32(b) },
}

// label numbers the texts of the labelled events, in the order of their first use.
func (d *decoder) label(events []trace.Event, body []byte, buffers []span, isPacked bool) error {
	validity, err := d.buffer(body, buffers[0], isPacked)
	if err != nil {
		return err
	}
	valid := bytes.Clone(validity)
	places, text, err := d.strings(body, buffers, isPacked, len(events))
	if err != nil || len(valid) > 0 && len(valid) < (len(events)+7)/8 {
		return cmp.Or(err, ErrOther)
	}
	last := 0
	for i := range events {
		e := &events[i]
		a, b := places.at(i), places.at(i+1)
		if a < last || b < a || b > len(text) || e.Kind.String() == "unknown" || b-a > 64<<10 {
			return ErrOther
		}
		last = a
		if !e.Kind.Labelled() {
			continue
		}
		e.Aux = 0
		if len(valid) == 0 || valid[i/8]>>(i%8)&1 == 1 {
			e.Aux = d.labels.Label(string(text[a:b]))
		}
	}
	return nil
}

// buffer returns the unpacked bytes of a buffer, valid until the next call.
func (d *decoder) buffer(body []byte, at span, isPacked bool) ([]byte, error) {
	if at.offset < 0 || at.length < 0 || at.offset > int64(len(body)) || at.length > int64(len(body))-at.offset {
		return nil, ErrOther
	}
	data := body[at.offset:][:at.length]
	if !isPacked || len(data) == 0 {
		return data, nil
	}
	if len(data) < 8 {
		return nil, ErrOther
	}
	size := int64(binary.LittleEndian.Uint64(data))
	if size == -1 {
		return data[8:], nil
	}
	d.unpacked += size
	if size < 0 || size > mostBatch || d.unpacked > freeBytes+ratio*d.read0 {
		return nil, ErrOther
	}
	return d.frame(data[8:], int(size))
}

// frame unpacks a frame of zstd, which must have a check sum: the low half of the
// hash of all that it unpacks to (RFC 8878, section 3.1.1).
func (d *decoder) frame(packed []byte, size int) ([]byte, error) {
	const flags, hasSum = 4, 1 << 2
	if len(packed) <= flags+4 || packed[flags]&hasSum == 0 {
		return nil, ErrOther
	}
	data, err := d.unpack(packed, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOther, err)
	}
	if sum := binary.LittleEndian.Uint32(packed[len(packed)-4:]); len(data) != size || sum != uint32(xxhash.Sum64(data)) {
		return nil, ErrOther
	}
	return data, nil
}
