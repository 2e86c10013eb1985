package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/eagergc/eagergc/pressure"
)

// ErrTruncated reports a native file that is cut off. Files are cut off when the recorded program is
// killed or a copy is not finished. The error of [Read] also has the byte offset of the first message
// that is not whole, and how many batches and events are before it.
var ErrTruncated = errors.New("trace: cut off")

// bounds limit the work and memory that a file can cause.
type bounds struct {
	batch  int64 // bytes of one record batch, packed or unpacked
	header int64 // bytes of the header of one message
	labels int64 // bytes of all different labels, which may overlap in a file
	ratio  int64 // unpacked bytes for each byte of the file, beyond the first freeUnpacked
}

var usualBounds = bounds{batch: 256 << 20, header: 16 << 20, labels: 64 << 20, ratio: 256}

const freeUnpacked = 64 << 20

// mostUnpacked returns the bytes to which a part of a file may unpack.
func mostUnpacked(bytes, ratio int64) int64 { return freeUnpacked + bytes*ratio }

var errBound = errors.New("over the bound of the reader")

func overBound(what string, got, limit int64) error {
	return fmt.Errorf("%s: %d %w of %d", what, got, errBound, limit)
}

// Read reads a native file. Labels are numbered in the order of their first use, and [Sort] puts
// the events in order. If r has the methods Hold(bytes int64) and Err() error, Read counts its memory
// with Hold and stops when Err returns an error. The readers of trace/formats have them.
//
// If the file is cut off, Read returns the events of its whole batches together with
// [ErrTruncated]; the trace is nil if not even the schema is whole. With any other error the
// trace is nil, and the error gives the byte offset of the message.
func Read(r io.Reader) (*Trace, error) { return usualBounds.read(r) }

func (l bounds) read(from io.Reader) (*Trace, error) {
	r := reader{from: bufio.NewReaderSize(from, 64<<10), bounds: l, budget: unbounded{}, t: new(Trace)}
	if b, ok := from.(budget); ok {
		r.budget = b
	}
	if err := r.messages(); err != nil {
		return nil, fmt.Errorf("trace: byte %d: %w", r.offset, err)
	}
	Sort(r.t.Events)
	if r.cut == nil {
		return r.t, nil
	}
	cut := fmt.Errorf("%w at byte %d, after %d whole batches with %d events: %w", ErrTruncated, r.offset, r.batches, len(r.t.Events), r.cut)
	if r.labels == nil {
		return nil, cut
	}
	return r.t, cut
}

// A budget counts the memory of a reader. Err returns an error when it is too much.
type budget interface {
	Hold(bytes int64)
	Err() error
}

type unbounded struct{}

func (unbounded) Hold(int64) {}
func (unbounded) Err() error { return nil }

const labelBytes = 64 // memory of a label besides its text

// A reader turns the messages of a stream into events.
type reader struct {
	from    io.Reader
	bounds  bounds
	budget  budget
	t       *Trace
	labels  map[string]uint32 // their numbers; nil before the schema
	columns [columns]place
	fields  int // columns of the file, which may have others
	buffers int // of each of its batches

	offset   int64 // of the message that is read
	cut      error // why the stream ended without its end mark; nil if it did not
	batches  int
	unpacked int64 // bytes of all batches
	texts    int64 // bytes of the labels
	body     bytes.Buffer
	scratch  [3][]byte // unpacked buffers
}

// A place is where a file has a column, and how.
type place struct {
	field, buffer int // indices in a batch
	form          form
	dictionary    int64
	words         [256]uint8 // numbers of the words: another writer may have another order
	known         int        // number of words
}

func (r *reader) messages() error {
	for {
		size, err := r.message()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		r.offset += size
		if err := r.budget.Err(); err != nil {
			return err
		}
	}
}

// message reads one message and returns its size. It returns io.EOF at the end mark. It also returns
// io.EOF where the stream is cut off, and sets cut.
func (r *reader) message() (size int64, err error) {
	defer func() { // an offset that leads out of a header
		if p := recover(); p != nil {
			err = fmt.Errorf("bad Arrow data: %v", p)
		}
	}()
	header, err := r.header()
	if err != nil {
		return 0, err
	}
	m := rootOf(header)
	length := m.number(3, 8, 0)
	if length < 0 || length > r.bounds.batch {
		return 0, overBound("body of a message", length, r.bounds.batch)
	}
	r.body.Reset()
	if err := r.take(&r.body, length); err != nil {
		return 0, r.short("body of a message", err)
	}
	body := r.body.Bytes()
	if err := checkSum(m, header, body); err != nil {
		return 0, err
	}
	of, ok := m.table(2)
	switch kind := uint8(m.number(1, 1, 0)); {
	case !ok:
		err = errors.New("message without a header")
	case (kind == schemaMessage) != (r.labels == nil):
		err = fmt.Errorf("message of kind %d before the schema, or a second schema", kind)
	case kind == schemaMessage:
		err = r.schema(of)
	case kind == dictionaryMessage:
		err = r.dictionary(of, body)
	case kind == batchMessage:
		if err = r.batch(of, body); err != nil {
			err = fmt.Errorf("batch %d: %w", r.batches, err)
		}
	default:
		err = fmt.Errorf("message of kind %d, want a schema, a dictionary or a record batch", kind)
	}
	return 8 + int64(len(header)) + length, err
}

func (r *reader) header() ([]byte, error) {
	var head [8]byte
	n, err := io.ReadFull(r.from, head[:])
	switch {
	case n == 0 && err == io.EOF:
		r.cut = errors.New("no end-of-stream mark")
		return nil, io.EOF
	case err != nil:
		return nil, r.short("length of a message", err)
	case string(head[:6]) == "ARROW1":
		return nil, errors.New("this is Arrow's file format (Feather), want its stream format")
	}
	size := int64(int32(little.Uint32(head[4:])))
	if little.Uint32(head[:]) != continuation || size < 0 || size%8 != 0 {
		return nil, fmt.Errorf("no Arrow message, but % x", head)
	}
	if size == 0 {
		return nil, r.end()
	}
	if size > r.bounds.header {
		return nil, overBound("header of a message", size, r.bounds.header)
	}
	var b bytes.Buffer
	if err := r.take(&b, size); err != nil {
		return nil, r.short("header of a message", err)
	}
	return b.Bytes(), nil
}

// take reads size bytes into b. The buffer grows with the bytes that are read, not with the size that
// the file claims.
func (r *reader) take(b *bytes.Buffer, size int64) error {
	n, err := io.CopyN(b, r.from, size)
	if err == io.EOF {
		return fmt.Errorf("%d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	return err
}

// short handles a message that is not whole: a cut, or an error of reading.
func (r *reader) short(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		r.cut = err
		return io.EOF
	}
	return err
}

// end checks that nothing follows the end mark.
func (r *reader) end() error {
	var next [1]byte
	_, err := io.ReadFull(r.from, next[:])
	if err == nil {
		return errors.New("more bytes after the end of the stream")
	}
	return err
}

// checkSum compares a message with its check sum. Messages of other writers may have none.
func checkSum(m table, header, body []byte) error {
	meta := m.list(4, 4)
	for i := range meta.n {
		pair := meta.table(i)
		if string(pair.text(0)) != keySum {
			continue
		}
		value := pair.list(1, 1)
		if sum := sumOf(header, value.at, body); string(pair.text(1)) != sum {
			return fmt.Errorf("check sum of a message: the bytes have %s, the message says %s", sum, pair.text(1))
		}
	}
	return nil
}

// sumOf returns the check sum of a message in hexadecimal, without the bytes of the header where
// the sum itself is.
func sumOf(header []byte, at int, body []byte) string {
	sum := crc32.Update(0, castagnoli, header[:at])
	sum = crc32.Update(sum, castagnoli, header[at+8:])
	return fmt.Sprintf("%08x", crc32.Update(sum, castagnoli, body))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// schema finds the columns of the format among the fields of a file.
func (r *reader) schema(s table) error {
	if err := r.locate(s.list(1, 4)); err != nil {
		return err
	}
	if err := r.t.provenance(s.list(2, 4), r.bounds.header); err != nil {
		return err
	}
	if s.number(0, 2, 0) != 0 {
		return errors.New("big-endian numbers")
	}
	r.t.Labels, r.labels = []string{""}, map[string]uint32{"": 0}
	return nil
}

func (r *reader) locate(found list) error {
	const most = 256
	if r.fields = found.n; found.n > most {
		return overBound("columns", int64(found.n), most)
	}
	var times [columns]int
	for i := range found.n {
		field := found.table(i)
		f, dictionary, buffers := formOf(field)
		if buffers == 0 {
			return fmt.Errorf("column %d is nested, or of a type that is not read", i)
		}
		for c, want := range format {
			if want.name != string(field.text(0)) {
				continue
			}
			if f != want.form && f != want.form.plain() {
				return fmt.Errorf("column %q is %v, want %v", want.name, f, want.form)
			}
			times[c]++
			r.columns[c] = place{field: i, buffer: r.buffers, form: f, dictionary: dictionary}
		}
		r.buffers += buffers
	}
	for c, n := range times {
		if n != 1 {
			return fmt.Errorf("schema has %d columns %q, want one", n, format[c].name)
		}
	}
	return nil
}

func (r *reader) dictionary(d table, body []byte) error {
	data, ok := d.table(1)
	switch {
	case !ok:
		return errors.New("dictionary without words")
	case d.number(2, 1, 0) != 0: // each addition would copy what came before
		return errors.New("dictionary that grows")
	}
	for c := range r.columns {
		if p := &r.columns[c]; p.form == words && p.dictionary == d.number(0, 8, 0) {
			return r.words(c, data, body)
		}
	}
	return nil // of another column
}

func (r *reader) words(c int, data table, body []byte) error {
	b, err := r.rows(data, body, 1, 3)
	if err != nil {
		return err
	}
	p := &r.columns[c]
	if b.rows > len(p.words) {
		return overBound("words of a dictionary", int64(b.rows), int64(len(p.words)))
	}
	all, err := b.texts(0)
	if err != nil {
		return err
	}
	for i := range b.rows {
		word, err := all.at(i)
		if err != nil {
			return err
		}
		if p.words[i], err = number(c, string(word)); err != nil {
			return err
		}
	}
	p.known = b.rows
	return nil
}

// number returns the number of a word.
func number(column int, word string) (uint8, error) {
	if column == colKind {
		k, err := ParseKind(word)
		return uint8(k), err
	}
	s, err := pressure.ParseSpace(word)
	return uint8(s), err
}

// A batch is the rows of one message.
type batch struct {
	r       *reader
	rows    int
	nulls   list
	buffers list
	packed  bool
	body    []byte
}

// rows reads the header of a batch, whose columns must all be as long as it is.
func (r *reader) rows(t table, body []byte, fields, buffers int) (b batch, err error) {
	b = batch{r: r, nulls: t.list(1, 16), buffers: t.list(2, 16), body: body}
	rows := t.number(0, 8, 0)
	switch {
	case b.nulls.n != fields || b.buffers.n != buffers || t.list(4, 8).n > 0:
		return b, fmt.Errorf("%d columns in %d buffers, want %d in %d", b.nulls.n, b.buffers.n, fields, buffers)
	case rows < 0 || rows > r.bounds.batch: // a byte each, or more
		return b, overBound("rows", rows, r.bounds.batch)
	}
	b.rows = int(rows)
	for i := range fields {
		if n := b.nulls.extent(i).at; n != rows {
			return b, fmt.Errorf("column %d has %d rows, its batch %d", i, n, rows)
		}
	}
	if packing, ok := t.table(3); ok {
		if b.packed = true; uint8(packing.number(0, 1, 0)) != codecZstd {
			return b, errors.New("is packed with LZ4, want zstd or nothing")
		}
	}
	return b, nil
}

// buffer returns a buffer, unpacked. Each use of scratch ends that of the one before.
func (b *batch) buffer(i, scratch int) ([]byte, error) {
	at := b.buffers.extent(i)
	if at.at < 0 || at.length < 0 || at.at > int64(len(b.body)) || at.length > int64(len(b.body))-at.at {
		return nil, fmt.Errorf("buffer %d is %d bytes at %d of a body of %d", i, at.length, at.at, len(b.body))
	}
	data := b.body[at.at:][:at.length]
	if !b.packed || len(data) == 0 {
		return data, nil
	}
	if len(data) < 8 {
		return nil, fmt.Errorf("buffer %d has %d bytes, want its length", i, len(data))
	}
	size, frame := int64(little.Uint64(data)), data[8:]
	if size == -1 { // not packed after all
		return frame, nil
	}
	if err := b.r.allow(size); err != nil {
		return nil, err
	}
	codec := zstd.Load()
	if codec == nil {
		return nil, errors.New(`is packed with zstd: the program that reads it must import _ "github.com/eagergc/eagergc/trace/formats/zstd"`)
	}
	to := &b.r.scratch[scratch]
	out, err := codec.Decompress(slices.Grow((*to)[:0], int(size))[:0:size], frame)
	if err == nil && int64(len(out)) != size {
		err = fmt.Errorf("unpacks to %d bytes, want %d", len(out), size)
	}
	if err != nil {
		return nil, fmt.Errorf("buffer %d: %w", i, err)
	}
	*to = out
	return out, nil
}

// allow limits the unpacked size of a file.
func (r *reader) allow(size int64) error {
	if size < 0 || size > r.bounds.batch {
		return overBound("bytes of a record batch", size, r.bounds.batch)
	}
	r.unpacked += size
	if most := mostUnpacked(r.offset+int64(r.body.Len()), r.bounds.ratio); r.unpacked > most {
		return overBound("unpacked bytes", r.unpacked, most)
	}
	return nil
}

// texts is a column of texts.
type texts struct{ valid, offsets, bytes []byte }

// texts returns the column whose first buffer is i.
func (b *batch) texts(i int) (t texts, err error) {
	for k, part := range []*[]byte{&t.valid, &t.offsets, &t.bytes} {
		if *part, err = b.buffer(i+k, k); err != nil {
			return t, err
		}
	}
	if b.rows > 0 && len(t.offsets) < 4*(b.rows+1) || len(t.valid) > 0 && len(t.valid) < (b.rows+7)/8 {
		return t, fmt.Errorf("texts of %d rows have %d bytes of offsets", b.rows, len(t.offsets))
	}
	return t, nil
}

// at returns text i, nil for a null.
func (t texts) at(i int) ([]byte, error) {
	if len(t.valid) > 0 && t.valid[i/8]>>(i%8)&1 == 0 {
		return nil, nil
	}
	from, to := int(int32(little.Uint32(t.offsets[4*i:]))), int(int32(little.Uint32(t.offsets[4*i+4:])))
	if from < 0 || to < from || to > len(t.bytes) {
		return nil, fmt.Errorf("text %d is bytes %d to %d of %d", i, from, to, len(t.bytes))
	}
	return t.bytes[from:to], nil
}

func (r *reader) batch(t table, body []byte) error {
	b, err := r.rows(t, body, r.fields, r.buffers)
	if err != nil {
		return err
	}
	var events []Event
	for c := range colLabel {
		data, err := b.column(c)
		if err != nil {
			return fmt.Errorf("column %q: %w", format[c].name, err)
		}
		if c == 0 { // by the rows that are there, not by the header
			from := len(r.t.Events)
			r.budget.Hold(int64(b.rows) * eventBytes)
			r.t.Events = slices.Grow(r.t.Events, b.rows)[:from+b.rows]
			events = r.t.Events[from:]
		}
		set(c, events, data)
	}
	all, err := b.texts(r.columns[colLabel].buffer)
	if err == nil {
		err = r.label(events, all)
	}
	if err != nil || b.rows == 0 {
		return err
	}
	r.batches++
	return nil
}

// column returns the numbers of a column other than that of labels.
func (b *batch) column(c int) ([]byte, error) {
	p := &b.r.columns[c]
	if b.nulls.extent(p.field).length != 0 {
		return nil, errors.New("has nulls")
	}
	data, err := b.buffer(p.buffer+1, 0)
	if err != nil {
		return nil, err
	}
	size := b.rows * p.form.width()
	if len(data) < size {
		return nil, fmt.Errorf("%d bytes for %d rows", len(data), b.rows)
	}
	if data = data[:size]; p.form != words {
		return data, nil
	}
	if len(data) > 0 && int(slices.Max(data)) >= p.known {
		return nil, fmt.Errorf("word %d of a dictionary of %d", slices.Max(data), p.known)
	}
	for i, index := range data { // in place: the words are not read again
		data[i] = p.words[index]
	}
	return data, nil
}

// set stores the numbers of a column in the events.
func set(c int, events []Event, data []byte) {
	width := format[c].form.width()
	for i := range events {
		var v uint64
		switch b := data[i*width:]; width {
		case 1:
			v = uint64(b[0])
		case 4:
			v = uint64(little.Uint32(b))
		default:
			v = little.Uint64(b)
		}
		format[c].set(&events[i], v)
	}
}

// label checks the kinds of new events. It sets the Aux of labelled events to the number of their
// text, which replaces the number in the file.
func (r *reader) label(events []Event, all texts) error {
	for i := range events {
		e := &events[i]
		if e.Kind >= kinds {
			return fmt.Errorf("event %d: unknown kind %d", len(r.t.Events)-len(events)+i, e.Kind)
		}
		if !e.Kind.Labelled() {
			continue
		}
		text, err := all.at(i)
		if err == nil {
			e.Aux, err = r.labelled(text)
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", len(r.t.Events)-len(events)+i, err)
		}
	}
	return nil
}

func (r *reader) labelled(text []byte) (uint32, error) {
	if n, ok := r.labels[string(text)]; ok {
		return n, nil
	}
	if r.texts += int64(len(text)); r.texts > r.bounds.labels {
		return 0, overBound("bytes of labels", r.texts, r.bounds.labels)
	}
	r.budget.Hold(int64(len(text)) + labelBytes)
	n, own := uint32(len(r.t.Labels)), string(text)
	r.t.Labels, r.labels[own] = append(r.t.Labels, own), n
	return n, nil
}
