package arrowfile

import (
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Slots of the tables in a message's header, from Message.fbs and Schema.fbs of the
// Arrow format 1.5.
const (
	messageHeaderType = 6
	messageHeader     = 8
	messageBodyLength = 10
	messageMetadata   = 12
	schemaFields      = 6
	schemaMetadata    = 8
	fieldChildren     = 14
	fieldMetadata     = 16
	pairKey           = 4
	pairValue         = 6
	dictionaryData    = 6
	dictionaryDelta   = 8
	batchLength       = 4
	batchNodes        = 6
	batchBuffers      = 8
	batchCompression  = 10
	compressionCodec  = 4

	headerIsSchema     = 1 // a value of the header type
	headerIsDictionary = 2
	headerIsBatch      = 3
	codecZstd          = 1 // a value of the codec; LZ4 is 0
	maxColumns         = 256
)

// A header is the FlatBuffer of a message. The library trusts the counts in it and
// follows nested columns to any depth. Several tables may share one child, so a
// header of a few KB can name more columns or texts than fit into memory; check
// refuses such a header. Methods panic on an offset that leads out of the header,
// as the library does.
type header struct {
	flatbuffers.Table       // Message
	kind              uint8 // of the table in it
	left              int64 // bytes of metadata that the header may still name
}

func newHeader(b []byte, bounds Bounds) *header {
	h := &header{Table: flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}, left: bounds.Metadata}
	h.kind = h.GetByteSlot(messageHeaderType, 0)
	return h
}

func (h *header) bodyLength() int64 { return h.GetInt64Slot(messageBodyLength, 0) }

// inner returns the table in the message.
func (h *header) inner() (t flatbuffers.Table) {
	if at := h.Offset(messageHeader); at != 0 {
		h.Union(&t, flatbuffers.UOffsetT(at))
	}
	return t
}

// check refuses a header for which the library would allocate without bound.
func (h *header) check() error {
	if h.kind != headerIsSchema && h.kind != headerIsDictionary && h.kind != headerIsBatch {
		return fmt.Errorf("message of kind %d, want a schema, a dictionary or a record batch", h.kind)
	}
	if h.Offset(messageHeader) == 0 {
		return errors.New("message without a header")
	}
	if err := h.metadata(h.Table, messageMetadata); err != nil {
		return err
	}
	if h.kind != headerIsSchema {
		return h.checkRows()
	}
	schema := h.inner()
	if err := h.metadata(schema, schemaMetadata); err != nil {
		return err
	}
	fields, err := h.list(schema, schemaFields)
	if err != nil {
		return err
	}
	if len(fields) > maxColumns {
		return overBound("columns", int64(len(fields)), maxColumns)
	}
	for i, field := range fields {
		if at := field.Offset(fieldChildren); at != 0 && field.VectorLen(flatbuffers.UOffsetT(at)) > 0 {
			return fmt.Errorf("column %d is nested", i)
		}
		if err := h.metadata(field, fieldMetadata); err != nil {
			return err
		}
	}
	return nil
}

// batch returns the record batch in the message: that of rows, or of a dictionary's
// words. It reports whether the words are to be added to those of before.
func (h *header) batch() (batch flatbuffers.Table, delta bool) {
	batch = h.inner()
	if h.kind == headerIsDictionary {
		delta = batch.GetBoolSlot(dictionaryDelta, false)
		at := batch.Offset(dictionaryData)
		if at == 0 {
			panic("dictionary without words")
		}
		batch.Pos = batch.Indirect(batch.Pos + flatbuffers.UOffsetT(at))
	}
	return batch, delta
}

// checkRows refuses a batch whose columns are not as long as it says it is, and a
// dictionary that grows: each addition would copy all of it.
func (h *header) checkRows() error {
	batch, delta := h.batch()
	if delta {
		return errors.New("dictionary that grows")
	}
	rows, list := batch.GetInt64Slot(batchLength, 0), flatbuffers.UOffsetT(batch.Offset(batchNodes))
	if list == 0 {
		return nil
	}
	n, first := batch.VectorLen(list), batch.Vector(list)
	for i := range n { // a count beyond the header panics
		if length := batch.GetInt64(first + flatbuffers.UOffsetT(16*i)); length != rows {
			return fmt.Errorf("column %d has %d rows, its batch %d", i, length, rows)
		}
	}
	return nil
}

// A packedBuffer is the place of a buffer in a body. The buffer begins with its
// unpacked length; -1 means that it is not packed.
type packedBuffer struct {
	offset, length int64
	zstd           bool // and not LZ4
}

// packed returns the buffers of a record batch or a dictionary, if it is packed.
func (h *header) packed() []packedBuffer {
	if h.kind == headerIsSchema {
		return nil
	}
	batch, _ := h.batch()
	method, list := batch.Offset(batchCompression), flatbuffers.UOffsetT(batch.Offset(batchBuffers))
	if method == 0 || list == 0 {
		return nil
	}
	compression := flatbuffers.Table{Bytes: h.Bytes, Pos: batch.Indirect(batch.Pos + flatbuffers.UOffsetT(method))}
	isZstd := compression.GetInt8Slot(compressionCodec, 0) == codecZstd
	n, first := batch.VectorLen(list), batch.Vector(list)
	var buffers []packedBuffer
	for i := range n { // a count beyond the header panics
		at := first + flatbuffers.UOffsetT(16*i)
		buffers = append(buffers, packedBuffer{batch.GetInt64(at), batch.GetInt64(at + 8), isZstd})
	}
	return buffers
}

// list returns the tables in a slot of t.
func (h *header) list(t flatbuffers.Table, slot flatbuffers.VOffsetT) ([]flatbuffers.Table, error) {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return nil, nil
	}
	n, first := t.VectorLen(at), t.Vector(at)
	if n < 0 || n > (len(h.Bytes)-int(first))/flatbuffers.SizeUOffsetT {
		return nil, errors.New("a list in the header is longer than the header")
	}
	tables := make([]flatbuffers.Table, n)
	for i := range tables {
		tables[i] = flatbuffers.Table{Bytes: h.Bytes, Pos: t.Indirect(first + flatbuffers.UOffsetT(i*flatbuffers.SizeUOffsetT))}
	}
	return tables, nil
}

// metadata counts the bytes of the key and value pairs in a slot of t.
func (h *header) metadata(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	pairs, err := h.list(t, slot)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		for _, slot := range []flatbuffers.VOffsetT{pairKey, pairValue} {
			if at := pair.Offset(slot); at != 0 {
				h.left -= int64(len(pair.ByteVector(pair.Pos + flatbuffers.UOffsetT(at))))
			}
		}
		if h.left < 0 {
			return fmt.Errorf("texts in the header: %w", ErrBound)
		}
	}
	return nil
}
