package trace

import "encoding/binary"

// The headers of a native file are FlatBuffers (https://flatbuffers.dev/internals): tables whose
// fields are numbers, or offsets of tables, texts and lists.

// A flat is a table to be written. Its element n is field n. An element is nil (the field is absent),
// a bool, uint8, int16, int32 or int64, a string, a flat, a []flat or a []extent.
type flat []any

// An extent is two numbers of a list: place and length of a buffer, or rows and nulls of a column.
type extent struct{ at, length int64 }

var little = binary.LittleEndian

// appendTo appends the table as a whole FlatBuffer, padded to 8 bytes. It also returns the end of
// the text of the last element.
func (t flat) appendTo(b []byte) (_ []byte, end int) {
	f := flatWriter{b: append(b, 0, 0, 0, 0), from: len(b)}
	f.point(len(b), f.table(t))
	end = len(f.b) - 1 // before its NUL
	f.align(8)
	return f.b, end
}

// A flatWriter writes a table, and after it the targets of its offsets.
type flatWriter struct {
	b    []byte
	from int // where the FlatBuffer begins
}

func (f *flatWriter) align(size int) {
	for (len(f.b)-f.from)%size > 0 {
		f.b = append(f.b, 0)
	}
}

// point writes the offset of a target into the place of an offset.
func (f *flatWriter) point(place, target int) { little.PutUint32(f.b[place:], uint32(target-place)) }

func (f *flatWriter) table(t flat) (at int) {
	f.align(2)
	places := len(f.b)
	f.b = append(f.b, make([]byte, 4+2*len(t))...)
	f.align(8)
	at = len(f.b)
	f.b = little.AppendUint32(f.b, uint32(at-places))
	for n, v := range t {
		size := sizeOf(v)
		if size == 0 {
			continue
		}
		f.align(size)
		little.PutUint16(f.b[places+4+2*n:], uint16(len(f.b)-at))
		f.number(v, size)
	}
	little.PutUint16(f.b[places:], uint16(4+2*len(t)))
	little.PutUint16(f.b[places+2:], uint16(len(f.b)-at))
	for n, v := range t {
		if place := at + int(little.Uint16(f.b[places+4+2*n:])); place > at {
			f.target(place, v)
		}
	}
	return at
}

func sizeOf(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool, uint8:
		return 1
	case int16:
		return 2
	case int64:
		return 8
	}
	return 4 // an int32, or an offset
}

func (f *flatWriter) number(v any, size int) {
	switch v.(type) {
	case bool, uint8, int16, int32, int64:
		f.b, _ = binary.Append(f.b, little, v)
	default:
		f.b = append(f.b, make([]byte, size)...)
	}
}

// target writes v and its offset at place, if v is not a number.
func (f *flatWriter) target(place int, v any) {
	switch v := v.(type) {
	case flat:
		f.point(place, f.table(v))
	case string:
		f.count(place, len(v), 4)
		f.b = append(append(f.b, v...), 0)
	case []extent:
		f.count(place, len(v), 8)
		for _, s := range v {
			f.b = little.AppendUint64(little.AppendUint64(f.b, uint64(s.at)), uint64(s.length))
		}
	case []flat:
		f.count(place, len(v), 4)
		first := len(f.b)
		f.b = append(f.b, make([]byte, 4*len(v))...)
		for i, one := range v {
			f.point(first+4*i, f.table(one))
		}
	}
}

// count begins a list whose elements are aligned to a size.
func (f *flatWriter) count(place, n, size int) {
	f.align(4)
	for (len(f.b)+4-f.from)%size > 0 {
		f.b = append(f.b, 0)
	}
	f.point(place, len(f.b))
	f.b = little.AppendUint32(f.b, uint32(n))
}

// A table is a table of a FlatBuffer that is read. Its methods panic if an offset or a count leads
// out of the FlatBuffer.
type table struct {
	b  []byte
	at int
}

func rootOf(b []byte) table { return table{b, int(little.Uint32(b))} }

// place returns where field n is, or 0 if the table lacks it.
func (t table) place(n int) int {
	places := t.at - int(int32(little.Uint32(t.b[t.at:])))
	if 4+2*n < int(little.Uint16(t.b[places:])) {
		if offset := int(little.Uint16(t.b[places+4+2*n:])); offset > 0 {
			return t.at + offset
		}
	}
	return 0
}

// number returns field n, which has size bytes, or absent.
func (t table) number(n, size int, absent int64) int64 {
	at := t.place(n)
	if at == 0 {
		return absent
	}
	switch size {
	case 1:
		return int64(t.b[at])
	case 2:
		return int64(int16(little.Uint16(t.b[at:])))
	case 4:
		return int64(int32(little.Uint32(t.b[at:])))
	}
	return int64(little.Uint64(t.b[at:]))
}

// table returns the table in field n.
func (t table) table(n int) (_ table, ok bool) {
	at := t.place(n)
	if at == 0 {
		return t, false
	}
	return t.follow(at), true
}

func (t table) follow(at int) table { return table{t.b, at + int(little.Uint32(t.b[at:]))} }

// A list is a vector of elements of one width.
type list struct {
	b     []byte
	at    int // of the first
	n     int
	width int
}

// list returns the list in field n.
func (t table) list(n, width int) list {
	l := list{b: t.b, width: width}
	if at := t.place(n); at > 0 {
		of := t.follow(at).at
		l.at, l.n = of+4, int(little.Uint32(t.b[of:]))
		if l.n < 0 || l.n > (len(t.b)-l.at)/width {
			panic("a list is longer than its header")
		}
	}
	return l
}

func (l list) table(i int) table { return table{b: l.b}.follow(l.at + 4*i) }

func (l list) extent(i int) extent {
	b := l.b[l.at+16*i:]
	return extent{int64(little.Uint64(b)), int64(little.Uint64(b[8:]))}
}

// text returns the text in field n, which is a part of the header.
func (t table) text(n int) []byte {
	l := t.list(n, 1)
	return l.b[l.at:][:l.n]
}
