package arrowlite

import (
	flatbuffers "github.com/google/flatbuffers/go"
)

// Slots of the tables in a message's header, from Message.fbs and Schema.fbs of the
// Arrow format 1.5.
const (
	messageHeaderType = 6
	messageHeader     = 8
	messageBodyLength = 10
	schemaEndianness  = 4
	schemaFields      = 6
	schemaMetadata    = 8
	fieldName         = 4
	fieldTypeType     = 8
	fieldType         = 10
	fieldDictionary   = 12
	fieldChildren     = 14
	encodingID        = 4
	encodingIndex     = 6
	durationUnit      = 4
	dictionaryID      = 4
	dictionaryData    = 6
	dictionaryDelta   = 8
	intBits           = 4
	intSigned         = 6
	pairKey           = 4
	pairValue         = 6
	batchLength       = 4
	batchNodes        = 6
	batchBuffers      = 8
	batchCompression  = 10
	batchVariadic     = 12
	compressionCodec  = 4

	kindSchema     = 1 // values of the header type
	kindDictionary = 2
	kindBatch      = 3
	typeInt        = 2 // values of the type of a field
	typeUtf8       = 5
	typeDuration   = 18
	milliseconds   = 1 // the usual unit of a duration
	nanoseconds    = 3
	codecZstd      = 1
)

// A form is how a column is stored.
type form struct {
	bits   int // 0: text
	signed bool
	other  byte // 'd': a duration in ns, 'w': words
}

var (
	int64s    = form{bits: 64, signed: true}
	uint64s   = form{bits: 64}
	uint32s   = form{bits: 32}
	uint8s    = form{bits: 8}
	text      = form{}
	durations = form{bits: 64, signed: true, other: 'd'}
	words     = form{bits: 8, other: 'w'} // indices in a dictionary of texts
)

// The columns of the format, see package arrowfile.
const (
	colTime = iota
	colKind
	colSpace
	colID
	colBytes
	colDuration
	colStream
	colAux
	colLabel
)

// format has the name of each column, and its forms in versions 2 and 1.
var format = []struct {
	name string
	form [2]form
}{
	{"time", [2]form{durations, int64s}}, {"kind", [2]form{words, uint8s}}, {"space", [2]form{words, uint8s}}, {"id", [2]form{uint64s, uint64s}},
	{"bytes", [2]form{int64s, int64s}}, {"duration", [2]form{durations, int64s}}, {"stream", [2]form{uint32s, uint32s}},
	{"aux", [2]form{uint32s, uint32s}}, {"label", [2]form{text, text}},
}

// A table is one of a FlatBuffer. Its methods panic where an offset leads out of it.
type table struct{ flatbuffers.Table }

// A message is the header of one.
type message struct {
	table
	kind uint8
}

func newMessage(b []byte) message {
	t := table{flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}}
	return message{t, t.GetByteSlot(messageHeaderType, 0)}
}

func (m message) bodyLength() int64 { return m.GetInt64Slot(messageBodyLength, 0) }

// inner returns the table in the message.
func (m message) inner() (t table) {
	m.Union(&t.Table, flatbuffers.UOffsetT(m.Offset(messageHeader)))
	return t
}

// list returns the tables in a slot.
func (t table) list(slot flatbuffers.VOffsetT) []table {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return nil
	}
	n, first := t.VectorLen(at), t.Vector(at)
	_ = t.Bytes[int(first)+4*n-1+boolInt(n == 0)] // panics where the list is longer than the header
	all := make([]table, n)
	for i := range all {
		all[i].Table = flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(first + flatbuffers.UOffsetT(4*i))}
	}
	return all
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (t table) texts(slot flatbuffers.VOffsetT) string {
	at := t.Offset(slot)
	if at == 0 {
		return ""
	}
	return string(t.ByteVector(t.Pos + flatbuffers.UOffsetT(at)))
}

// form reads how a field of the schema is stored, and the number of its dictionary.
func (t table) form() (f form, dictionary int64, ok bool) {
	if len(t.list(fieldChildren)) > 0 {
		return f, 0, false
	}
	kind := t.GetByteSlot(fieldTypeType, 0)
	if at := t.Offset(fieldDictionary); at != 0 {
		d := table{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(at))}}
		index := form{bits: 32, signed: true} // if it is not said
		if at := d.Offset(encodingIndex); at != 0 {
			index = integer(flatbuffers.Table{Bytes: t.Bytes, Pos: d.Indirect(d.Pos + flatbuffers.UOffsetT(at))})
		}
		return words, d.GetInt64Slot(encodingID, 0), kind == typeUtf8 && index == uint8s
	}
	if kind == typeUtf8 {
		return text, 0, true
	}
	var of flatbuffers.Table
	t.Union(&of, flatbuffers.UOffsetT(t.Offset(fieldType)))
	switch kind {
	case typeInt:
		return integer(of), 0, true
	case typeDuration:
		return durations, 0, of.GetInt16Slot(durationUnit, milliseconds) == nanoseconds
	}
	return f, 0, false
}

func integer(t flatbuffers.Table) form {
	return form{bits: int(t.GetInt32Slot(intBits, 0)), signed: t.GetBoolSlot(intSigned, false)}
}

// dictionary returns the number of a dictionary and the batch of its words.
func (t table) dictionary() (number int64, batch table, ok bool) {
	at := t.Offset(dictionaryData)
	if at == 0 || t.GetBoolSlot(dictionaryDelta, false) {
		return 0, t, false
	}
	return t.GetInt64Slot(dictionaryID, 0), table{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(at))}}, true
}

// A span is the place of a buffer in a body.
type span struct{ offset, length int64 }

// rows reads the header of a record batch, whose columns must all be as long as it
// is. Only one of them may have nulls.
func (t table) rows(columns, nullable int) (n int64, buffers []span, isPacked bool, err error) {
	n = t.GetInt64Slot(batchLength, 0)
	nodes := t.pairs(batchNodes)
	if len(nodes) != columns || n < 0 || t.Offset(batchVariadic) != 0 {
		return 0, nil, false, ErrOther
	}
	for i, c := range nodes { // of length, nulls
		if c.offset != n || c.length != 0 && i != nullable {
			return 0, nil, false, ErrOther
		}
	}
	if at := t.Offset(batchCompression); at != 0 {
		c := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(at))}
		if isPacked = true; c.GetInt8Slot(compressionCodec, 0) != codecZstd {
			return 0, nil, false, ErrOther
		}
	}
	return n, t.pairs(batchBuffers), isPacked, nil
}

// pairs returns a vector of structs of two int64.
func (t table) pairs(slot flatbuffers.VOffsetT) []span {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return nil
	}
	n, first := t.VectorLen(at), t.Vector(at)
	_ = t.Bytes[int(first)+16*n-1+boolInt(n == 0)]
	all := make([]span, n)
	for i := range all {
		p := first + flatbuffers.UOffsetT(16*i)
		all[i] = span{t.GetInt64(p), t.GetInt64(p + 8)}
	}
	return all
}
